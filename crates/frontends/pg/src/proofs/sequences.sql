
UNION ALL
SELECT 'q', NULL, s.oid::text, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM pg_catalog.pg_class s WHERE s.relkind = 'S' AND s.oid IN (
  SELECT d.refobjid FROM one r JOIN pg_catalog.pg_attrdef f ON f.adrelid = r.oid
  JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_attrdef'::regclass AND d.objid = f.oid
    AND d.refclassid = 'pg_catalog.pg_class'::regclass
  UNION
  SELECT d.objid FROM one r JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_class'::regclass
    AND d.refobjid = r.oid AND d.classid = 'pg_catalog.pg_class'::regclass AND d.deptype IN ('a', 'i')
  UNION
  SELECT r.oid FROM one r)
