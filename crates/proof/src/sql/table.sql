WITH RECURSIVE start(oid) AS (SELECT c.oid FROM pg_catalog.pg_class c WHERE c.oid = to_regclass($1)),
meant(oid) AS (
  SELECT t.oid FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
  WHERE t.typname = ANY (string_to_array($2, chr(1))) AND t.oid >= 16384
    AND (pg_catalog.pg_type_is_visible(t.oid) OR n.nspname ~ '^pg_temp_'
      OR n.nspname = ANY (string_to_array($2, chr(1))))),
named(object, fn) AS (SELECT NULL::text, NULL::oid WHERE false),
