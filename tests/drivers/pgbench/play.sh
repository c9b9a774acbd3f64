#!/usr/bin/env bash
# What pgbench says and leaves behind. Usage: play.sh URL [simple | extended | prepared]
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
mode=${2:-simple}

# Counts, no times.
counts() { grep -E '^(number of transactions|number of failed|transaction type|query mode)|^pgbench: (error|fatal)|aborted|ERROR' | sed -E 's/ \(.*//'; }
ask() { psql -XAtq -d "$1" -c "$2"; }

if [ "$mode" = simple ]; then pgbench -i -q -s 2 -d "$1" 2>&1 | sed -E 's/[0-9.]+ s/N s/g'; else pgbench -i -I dtGvpf -s 2 -d "$1" 2>&1 | sed -E 's/[0-9.]+ s/N s/g'; fi
ask "$1" 'CREATE TABLE rows (id bigserial PRIMARY KEY, client int, n int, word text)'
ask "$1" 'CREATE TABLE totals (key int PRIMARY KEY, n int NOT NULL); INSERT INTO totals SELECT n, 0 FROM generate_series(1, 5) n'
for script in tpcb-like simple-update select-only; do
    pgbench -n -M "$mode" -c 8 -j 2 -t 60 --random-seed=7 -b "$script" -d "$1" 2>&1 | counts
done
for script in insert update upsert pipeline; do
    if [ "$script$mode" = pipelinesimple ]; then continue; fi
    pgbench -n -M "$mode" -c 16 -j 2 -t 50 --random-seed=7 -f "$here/$script.sql" -d "$1" 2>&1 | counts | sed -E 's#: .*/#: #'
done
ask "$1" 'SELECT count(*), count(DISTINCT id), sum(n) FROM rows'
ask "$1" 'SELECT * FROM totals ORDER BY key'
ask "$1" 'SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(bbalance) FROM pgbench_branches), (SELECT sum(tbalance) FROM pgbench_tellers),
    (SELECT sum(delta) FROM pgbench_history), (SELECT count(*) FROM pgbench_history)'
# Which client had which number is chance.
ask "$1" 'ALTER TABLE rows DROP COLUMN id'
