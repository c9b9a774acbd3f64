INSERT INTO kinds (small, whole, big, single, wide, exact, words, bytes, yes, day, at, span, tag, doc, docb, numbers, names, feeling)
    VALUES (-3, 70000, 9223372036854775807, 1.5, 0.1, 3.1415926, 'it''s \ "q"', '\x00ff', true, '2024-02-29', '2024-07-01 12:00+05:30', '3 days',
        '00000000-0000-0000-0000-000000000005', '{"a": 1}', '[1, null]', '{1,NULL,3}', ARRAY['a', NULL, 'b,c'], 'ok');
INSERT INTO kinds (words) VALUES (E'tab\t\x41'), ($$dollar 'quoted'$$), (U&'d\0061t');
INSERT INTO kinds (whole) VALUES (1.7) RETURNING id, whole;
INSERT INTO kinds (whole) VALUES (-5) RETURNING id, whole;
INSERT INTO kinds (whole) VALUES (+5);
INSERT INTO kinds (exact, single) VALUES (1e3, 1e-3);
INSERT INTO kinds (yes) VALUES ('yes'), (NULL);
INSERT INTO kinds (day) VALUES ('today');
DELETE FROM kinds WHERE day = current_date;
INSERT INTO kinds DEFAULT VALUES;
SELECT * FROM kinds ORDER BY id;
\x on
SELECT * FROM kinds WHERE id = 1;
\x off
\d kinds
\dt
\d other.plain

INSERT INTO parent VALUES (1, 'one');
INSERT INTO parent VALUES (1, 'two');
INSERT INTO parent VALUES (2, 'one');
INSERT INTO child (parent_id, quantity) VALUES (1, 5) RETURNING id \gset
\echo :id
INSERT INTO child (parent_id, quantity) VALUES (1, 6);
SELECT lastval();
SELECT currval('child_id_seq');
INSERT INTO child (id, parent_id, quantity, seen_at) VALUES (900, 1, -1, '2000-01-01');
INSERT INTO child (parent_id) VALUES (77);
INSERT INTO child (label, parent_id) VALUES ('longer than ten', 1);
\errverbose
INSERT INTO nowhere VALUES (1);
INSERT INTO plain (nothing) VALUES (1);
INSERT INTO plain (id, a) VALUES (1, 'abc');
INSERT INTO plain (id, a) VALUES (1, 99999999999);
INSERT INTO plain (id VALUES (1);
INSERT INTO late VALUES (1, 999);
\echo :SQLSTATE :ROW_COUNT :ERROR

INSERT INTO plain VALUES (1, 1, 'a');
UPDATE plain SET a = a + 1 WHERE id = 1;
UPDATE plain SET a = a + 1 WHERE id = 99;
UPDATE plain SET a = a + 1, b = upper(b) WHERE id = 1 RETURNING *;
\echo :ROW_COUNT
DELETE FROM plain WHERE id = 99;
DELETE FROM plain WHERE id = 1 RETURNING *;
INSERT INTO counter AS k VALUES ('u', 3) ON CONFLICT (name) DO UPDATE SET n = k.n + excluded.n;
INSERT INTO counter AS k VALUES ('u', 3) ON CONFLICT (name) DO UPDATE SET n = k.n + excluded.n RETURNING n;
INSERT INTO counter VALUES ('u', 3) ON CONFLICT DO NOTHING;
INSERT INTO plain VALUES (2, 1, 'x') \; INSERT INTO plain VALUES (3, 1, 'x') \; SELECT 7 AS seven;
INSERT INTO plain VALUES (4, 1, 'x') \; INSERT INTO plain VALUES (3, 1, 'x');
SELECT format('INSERT INTO plain VALUES (%s, %s)', n, n) FROM generate_series(10, 14) n \gexec
TABLE plain;

INSERT INTO noisy VALUES (1, 'word');
INSERT INTO noisy VALUES (2, 'warn') RETURNING *;
INSERT INTO noisy VALUES (3, 'refuse');
SET client_min_messages = error;
INSERT INTO noisy VALUES (4, 'warn');
RESET client_min_messages;

BEGIN;
INSERT INTO plain VALUES (20);
SAVEPOINT s;
INSERT INTO plain VALUES (20);
SELECT 1;
ROLLBACK TO s;
INSERT INTO plain VALUES (21);
COMMIT;
BEGIN;
INSERT INTO late VALUES (1, 999);
COMMIT;
ROLLBACK;
START TRANSACTION ISOLATION LEVEL SERIALIZABLE READ ONLY;
INSERT INTO plain VALUES (22);
END;
ABORT;
TABLE late;

SET TIME ZONE 'Asia/Tokyo';
INSERT INTO stamped (id, at) VALUES (1, '2024-01-01') RETURNING *;
SET ROLE windrow_guest;
INSERT INTO stamped (id) VALUES (2) RETURNING *;
INSERT INTO plain VALUES (30);
RESET ROLE;
SET search_path = other;
INSERT INTO plain VALUES (1, 1, 'other');
INSERT INTO stamped (id) VALUES (3);
SHOW search_path;
\c
SHOW search_path;
SHOW TimeZone;
COMMIT;
INSERT INTO plain VALUES (31, 1, 'public');
SET standard_conforming_strings = off;
INSERT INTO plain VALUES (32, 1, 'back\\slash') RETURNING b;
RESET ALL;
DO $$ BEGIN INSERT INTO plain VALUES (33); RAISE NOTICE 'done'; END $$;
COMMIT;

CREATE TEMP TABLE passing (id int PRIMARY KEY);
INSERT INTO passing VALUES (1);
INSERT INTO passing VALUES (1);
TABLE passing;
PREPARE mine (int) AS INSERT INTO plain (id) VALUES ($1) RETURNING id;
EXECUTE mine(40);
EXECUTE mine(40);
DEALLOCATE mine;
COMMIT;
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT n FROM generate_series(1, 5) n;
FETCH 2 FROM c;
COMMIT;
FETCH ALL FROM c;
CLOSE c;
COMMIT;
LISTEN bell;
COMMIT;
NOTIFY bell, 'ding';
COMMIT;
SELECT pg_advisory_lock(7), pg_try_advisory_lock(7);
SELECT pg_advisory_unlock_all();

COPY plain (id, a, b) FROM STDIN;
50	1	copied
51	\N	copied too
\.
COPY plain (id, a, b) FROM STDIN;
52	1	copied
50	1	again
\.
COPY (SELECT * FROM plain WHERE id >= 50 ORDER BY id) TO STDOUT WITH (FORMAT csv, HEADER);
\copy (SELECT count(*) FROM plain) TO STDOUT
COMMIT;
SET statement_timeout = 100;
SELECT pg_sleep(60);
COMMIT;
RESET statement_timeout;
;
SELECT count(*), sum(n) FROM generate_series(1, 10000) n;
EXPLAIN (COSTS OFF) INSERT INTO plain VALUES (60);
INSERT INTO other.plain VALUES (2, 2, 'other') RETURNING *;
INSERT INTO plain SELECT n FROM generate_series(70, 75) n;
WITH gone AS (DELETE FROM plain WHERE id >= 70 RETURNING id) SELECT count(*) FROM gone;
MERGE INTO plain p USING (VALUES (70, 5)) v (id, a) ON p.id = v.id WHEN NOT MATCHED THEN INSERT (id, a) VALUES (v.id, v.a);
TRUNCATE other.plain;
COMMIT;
\encoding LATIN1
INSERT INTO plain (id, b) VALUES (80, 'x');
SHOW client_encoding;
COMMIT;
