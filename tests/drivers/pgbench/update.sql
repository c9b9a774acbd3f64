\set key random(1, 5)
UPDATE totals SET n = n + 1 WHERE key = :key;
