rel(oid, reach) AS (
  SELECT oid, 't' FROM start
  UNION
  SELECT x.child, CASE WHEN x.how <> 'i' THEN x.how WHEN rel.reach IN ('c', 'v') THEN rel.reach
      WHEN x.is_part AND rel.reach IN ('t', 'p') THEN 'p'
      WHEN EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'timescaledb') THEN 'k' ELSE 'h' END
  FROM rel CROSS JOIN LATERAL (
    SELECT i.inhrelid, 'i', c.relispartition FROM pg_catalog.pg_inherits i
    JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = rel.oid AND c.relkind IN ('r', 'p', 'f')
    UNION ALL
    SELECT f.conrelid, 'c', false FROM pg_catalog.pg_trigger g
    JOIN pg_catalog.pg_constraint f ON f.oid = g.tgconstraint AND f.contype = 'f' AND f.confrelid = rel.oid
      AND (f.confdeltype IN ('c', 'n', 'd') OR f.confupdtype IN ('c', 'n', 'd'))
    WHERE g.tgrelid = rel.oid
    UNION ALL
    SELECT d.refobjid, 'v', false FROM pg_catalog.pg_rewrite w
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.objid = w.oid
      AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid <> rel.oid
    WHERE w.ev_class = rel.oid
  ) AS x(child, how, is_part)),
typ(oid) AS (
  SELECT unnest(ARRAY(
    SELECT a.atttypid FROM pg_catalog.pg_attribute a
    WHERE a.attrelid = ANY (ARRAY(SELECT oid FROM rel)) AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid >= 12000
    UNION SELECT oid FROM meant))
  UNION
  SELECT x.part FROM typ CROSS JOIN LATERAL (
    SELECT unnest(ARRAY[t.typbasetype, t.typelem]) FROM pg_catalog.pg_type t WHERE t.oid = typ.oid
    UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE r.rngtypid = typ.oid
    UNION ALL SELECT a.atttypid FROM pg_catalog.pg_type t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.typrelid
      WHERE t.oid = typ.oid AND t.typrelid <> 0 AND a.attnum > 0 AND NOT a.attisdropped
  ) AS x(part) WHERE x.part >= 12000),
one(oid, reach, name) AS (
  SELECT DISTINCT rel.oid, rel.reach, format('%I.%I', n.nspname, c.relname) FROM rel
  JOIN pg_catalog.pg_class c ON c.oid = rel.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace),
tree(reach, kind, object, place, tree) AS (
  SELECT r.reach, CASE WHEN a.attgenerated = '' THEN 'd' ELSE 'g' END,
    CASE WHEN a.attgenerated = '' THEN 'default of ' ELSE 'generated column ' END || r.name || '.' || quote_ident(a.attname),
    a.attname::text, f.adbin::text
  FROM one r JOIN pg_catalog.pg_attrdef f ON f.adrelid = r.oid
  JOIN pg_catalog.pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
  UNION ALL
  SELECT r.reach, 'k', 'check ' || quote_ident(c.conname) || ' on ' || r.name, NULL, c.conbin::text
  FROM one r JOIN pg_catalog.pg_constraint c ON c.conrelid = r.oid WHERE c.contype = 'c'
  UNION ALL
  SELECT r.reach, 'x', 'index ' || i.indexrelid::regclass, NULL, concat(i.indexprs::text, i.indpred::text)
  FROM one r JOIN pg_catalog.pg_index i ON i.indrelid = r.oid WHERE i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
  UNION ALL
  SELECT r.reach, 'o', 'partition key of ' || r.name, NULL, p.partexprs::text
  FROM one r JOIN pg_catalog.pg_partitioned_table p ON p.partrelid = r.oid
  UNION ALL
  SELECT r.reach, 'w', 'condition of the trigger ' || quote_ident(g.tgname) || ' on ' || r.name, g.oid::text, g.tgqual::text
  FROM one r JOIN pg_catalog.pg_trigger g ON g.tgrelid = r.oid WHERE g.tgqual IS NOT NULL AND g.tgenabled <> 'D' AND g.tgparentid = 0
  UNION ALL
  SELECT r.reach, 'p', 'policy ' || quote_ident(p.polname) || ' on ' || r.name, NULL,
    concat(p.polqual::text, p.polwithcheck::text)
  FROM one r JOIN pg_catalog.pg_policy p ON p.polrelid = r.oid WHERE pg_catalog.row_security_active(r.oid)
  UNION ALL
  SELECT r.reach, 'v', CASE WHEN w.rulename = '_RETURN' THEN 'view ' ELSE 'rule ' || quote_ident(w.rulename) || ' on ' END || r.name,
    NULL, concat(w.ev_qual::text, w.ev_action::text)
  FROM one r JOIN pg_catalog.pg_rewrite w ON w.ev_class = r.oid
  UNION ALL
  SELECT 't', 'm', 'domain ' || t.oid::regtype, t.oid::text, concat(t.typdefaultbin::text, c.conbin::text)
  FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_constraint c ON c.contypid = t.oid
  WHERE t.typtype = 'd' AND t.oid >= 16384 AND t.oid = ANY (ARRAY(SELECT oid FROM typ))),
called(reach, kind, object, place, fn) AS (
  SELECT t.reach, t.kind, t.object, t.place, coalesce(o.oprcode::oid, m.part[2]::oid)
  FROM tree t CROSS JOIN LATERAL
    regexp_matches(t.tree, ':(funcid|opfuncid|opno|aggfnoid|winfnoid|tsmhandler) ([0-9]+)', 'g') AS m(part)
  LEFT JOIN pg_catalog.pg_operator o ON m.part[1] = 'opno' AND o.oid = m.part[2]::oid
  UNION
  SELECT t.reach, t.kind, t.object, t.place, o.oprcode::oid
  FROM tree t CROSS JOIN LATERAL regexp_matches(t.tree, ':opnos [(]o ([0-9 ]+)[)]', 'g') AS m(part)
  CROSS JOIN LATERAL unnest(string_to_array(btrim(m.part[1]), ' ')) AS n(number)
  JOIN pg_catalog.pg_operator o ON o.oid = n.number::oid
  UNION
  SELECT t.reach, t.kind, t.object, t.place, 'pg_catalog.now()'::pg_catalog.regprocedure::oid FROM tree t
  WHERE t.tree ~ 'SQLVALUEFUNCTION :op [0-8] |:resulttype (1082|1083|1114|1184|1266) '
  UNION
  SELECT r.reach, 'e', 'constraint ' || quote_ident(c.conname) || ' on ' || r.name, NULL, o.oprcode::oid
  FROM one r JOIN pg_catalog.pg_constraint c ON c.conrelid = r.oid
  CROSS JOIN LATERAL unnest(c.conexclop || c.conpfeqop || c.conppeqop || c.conffeqop) AS n(number)
  JOIN pg_catalog.pg_operator o ON o.oid = n.number
  UNION
  SELECT 't', 'y', 'type ' || t.oid::regtype, NULL, x.fn::oid
  FROM pg_catalog.pg_type t
  LEFT JOIN pg_catalog.pg_range g ON g.rngtypid = t.oid
  CROSS JOIN LATERAL (
    SELECT unnest(ARRAY[t.typinput, t.typoutput, t.typreceive, t.typsend, t.typmodin, g.rngcanonical, g.rngsubdiff]::oid[])
    UNION SELECT a.amproc::oid FROM pg_catalog.pg_amproc a WHERE t.oid IN (a.amproclefttype, a.amprocrighttype)
  ) AS x(fn) WHERE x.fn <> 0 AND t.oid >= 16384 AND t.oid = ANY (ARRAY(SELECT oid FROM typ))
  UNION
  SELECT 't', 'z', 'cast from ' || c.castsource::regtype || ' to ' || c.casttarget::regtype, NULL, c.castfunc::oid
  FROM pg_catalog.pg_cast c WHERE c.oid >= 16384 AND c.castfunc <> 0
    AND (c.castsource IN (SELECT oid FROM typ) OR c.castsource < 16384)
    AND (c.casttarget IN (SELECT oid FROM typ) OR c.casttarget < 16384)
  UNION
  SELECT 't', 's', named.object, NULL, named.fn FROM named)
SELECT 'r', r.reach, r.name, c.relkind::text, pg_catalog.row_security_active(c.oid)::text,
  (SELECT min(quote_ident(w.rulename)) FROM pg_catalog.pg_rewrite w WHERE w.ev_class = c.oid AND w.rulename <> '_RETURN'),
  c.xmin::text, (SELECT coalesce(sum(x.xmin::text::int8), 0)::text FROM pg_catalog.pg_trigger x WHERE x.tgrelid = c.oid),
  (SELECT coalesce(sum(x.xmin::text::int8), 0)::text FROM pg_catalog.pg_inherits x WHERE x.inhparent = c.oid),
  EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'timescaledb')::text,
  NULL, NULL, NULL, NULL, c.oid::text, NULL
FROM one r JOIN pg_catalog.pg_class c ON c.oid = r.oid
UNION ALL
SELECT 'g', r.reach, CASE WHEN g.tgisinternal AND k.oid IS NOT NULL
    THEN 'constraint ' || quote_ident(k.conname) || ' on ' || (SELECT format('%I.%I', kn.nspname, kc.relname)
      FROM pg_catalog.pg_class kc JOIN pg_catalog.pg_namespace kn ON kn.oid = kc.relnamespace WHERE kc.oid = k.conrelid)
    ELSE 'trigger ' || quote_ident(g.tgname) || ' on ' || r.name END,
  g.tgtype::text, g.tginitdeferred::text, (g.tgoldtable IS NOT NULL OR g.tgnewtable IS NOT NULL)::text,
  CASE WHEN p.proname LIKE 'RI_FKey_%_upd' AND p.oid < 16384 AND k.oid IS NOT NULL THEN
    (SELECT string_agg(a.attname, chr(1)) FROM pg_catalog.pg_attribute a
      WHERE a.attrelid = g.tgrelid AND a.attnum = ANY (CASE WHEN p.proname LIKE '%_check_%' THEN k.conkey ELSE k.confkey END))
  ELSE
    (SELECT string_agg(a.attname, chr(1)) FROM pg_catalog.pg_attribute a
      WHERE a.attrelid = g.tgrelid AND a.attnum = ANY (string_to_array(g.tgattr::text, ' ')::int2[])
      HAVING bool_and(a.attgenerated = ''))
  END,
  n.nspname || '.' || p.proname, (p.oid < 16384)::text, l.lanname::text, (p.prosecdef OR p.proconfig IS NOT NULL)::text,
  p.prosrc,
  (SELECT string_agg(DISTINCT q.proname, chr(1))
    FROM regexp_matches(lower(p.prosrc COLLATE "C"), '[a-z_][a-z0-9_$]*', 'g') AS m(part)
    JOIN pg_catalog.pg_proc q ON q.proname = m.part[1] AND q.pronamespace <> 'pg_catalog'::regnamespace
    JOIN pg_catalog.pg_language ql ON ql.oid = q.prolang
    WHERE l.lanname = 'plpgsql' AND NOT (ql.lanname IN ('c', 'internal') AND q.provolatile = 'i')),
  g.oid::text, p.oid::text, p.xmin::text
FROM one r JOIN pg_catalog.pg_trigger g ON g.tgrelid = r.oid AND g.tgenabled <> 'D' AND g.tgparentid = 0
JOIN pg_catalog.pg_proc p ON p.oid = g.tgfoid
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
JOIN pg_catalog.pg_language l ON l.oid = p.prolang
LEFT JOIN pg_catalog.pg_constraint k ON k.oid = g.tgconstraint
UNION ALL
SELECT 'f', c.reach, c.object, c.kind, c.place, n.nspname || '.' || p.proname, (p.oid < 16384)::text, l.lanname::text,
  p.provolatile::text, p.prokind::text,
  CASE WHEN p.oid < 16384 AND p.proname = 'current_setting' THEN (
    SELECT string_agg(coalesce(m.part[1], ''), ',') FROM tree t CROSS JOIN LATERAL regexp_matches(t.tree,
      ':funcid ' || p.oid || ' [^{}]*(?::args \(\{CONST [^{}[]*:constvalue [0-9]+ \[ ([-0-9 ]+) \])?', 'g') AS m(part)
    WHERE t.reach = c.reach AND t.kind = c.kind AND t.object = c.object) END,
  NULL, NULL, NULL, p.oid::text, p.xmin::text
FROM called c JOIN pg_catalog.pg_proc p ON p.oid = c.fn
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
JOIN pg_catalog.pg_language l ON l.oid = p.prolang
WHERE NOT (p.oid < 16384 AND p.provolatile = 'i')
UNION ALL
SELECT 'o', 't', 'operator ' || o.oid::regoperator, o.oprname::text, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode
JOIN pg_catalog.pg_language l ON l.oid = p.prolang
WHERE o.oid >= 16384 AND NOT (l.lanname IN ('c', 'internal') AND p.provolatile = 'i')
UNION ALL
SELECT 'm', 't', 'domain ' || t.oid::regtype, t.oid::text, t.xmin::text,
  (SELECT coalesce(sum(x.xmin::text::int8), 0)::text FROM pg_catalog.pg_constraint x WHERE x.contypid = t.oid),
  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM pg_catalog.pg_type t WHERE t.typtype = 'd' AND t.oid >= 16384 AND t.oid = ANY (ARRAY(SELECT oid FROM typ))
