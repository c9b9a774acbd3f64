WITH RECURSIVE word(name) AS (SELECT DISTINCT unnest(string_to_array($1, chr(1)))),
seen(name) AS (SELECT unnest(string_to_array($3, chr(1))) UNION SELECT name FROM word),
start(oid) AS (
  SELECT c.oid FROM word JOIN pg_catalog.pg_class c ON c.relname = word.name
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.oid >= 16384 AND n.nspname IN (SELECT name FROM seen)),
meant(oid) AS (
  SELECT t.oid FROM word JOIN pg_catalog.pg_type t ON t.typname = word.name
  JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
  WHERE t.oid >= 16384 AND (n.nspname ~ '^pg_temp_' OR n.nspname IN (SELECT name FROM seen))),
named(object, fn) AS (
  SELECT p.oid::regprocedure::text, p.oid FROM word JOIN pg_catalog.pg_proc p ON p.proname = word.name
  JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
  WHERE n.nspname ~ '^pg_temp_' OR n.nspname IN (SELECT name FROM seen)
  UNION ALL
  SELECT o.oid::regoperator::text, o.oprcode::oid FROM pg_catalog.pg_operator o
  WHERE o.oid >= 16384 AND o.oprname = ANY (string_to_array($2, chr(1)))),
