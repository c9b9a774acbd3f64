WITH RECURSIVE start(oid) AS (SELECT c.oid FROM pg_catalog.pg_class c WHERE c.oid = to_regclass($1)),
meant(oid) AS (SELECT NULL::oid WHERE false),
named(object, fn) AS (SELECT NULL::text, NULL::oid WHERE false),
