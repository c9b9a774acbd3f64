\set n random(1, 1000)
\startpipeline
INSERT INTO rows (client, n, word) VALUES (:client_id, :n, 'pipelined');
INSERT INTO rows (client, n, word) VALUES (:client_id, 1, 'with it');
UPDATE totals SET n = n + 1 WHERE key = 1;
\endpipeline
