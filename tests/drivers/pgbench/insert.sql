\set n random(1, 1000)
INSERT INTO rows (client, n, word) VALUES (:client_id, :n, 'it''s a row');
