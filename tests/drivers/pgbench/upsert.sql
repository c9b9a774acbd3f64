\set key random(1, 50)
INSERT INTO totals AS t (key, n) VALUES (:key, 1) ON CONFLICT (key) DO UPDATE SET n = t.n + EXCLUDED.n;
