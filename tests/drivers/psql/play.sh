#!/usr/bin/env bash
# What psql shows. Usage: play.sh URL [default | stepwise | cursor | single]
set -uo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
export PGOPTIONS='' PSQLRC=/dev/null PAGER=cat LC_ALL=C.UTF-8

# A process number is no part of what is compared.
show() { sed -E 's/PID [0-9]+/PID N/; s/^psql:[^ ]*\.sql:/psql:/; s/pg_temp_[0-9]+/pg_temp_N/' 2>&1; }
psql() { command psql -X -v VERBOSITY=verbose -d "$1" "${@:2}" 2>&1 | show; }

psql "$1" -q -f "$here/../schema.sql"
case ${2:-default} in
    default) psql "$1" -a -f "$here/scenarios.sql" ;;
    # Every statement asks to be rolled back to alone where it fails inside a transaction.
    stepwise) psql "$1" -a -v ON_ERROR_ROLLBACK=on -v AUTOCOMMIT=off -f "$here/scenarios.sql" ;;
    # Results come through a cursor.
    # What a sequence gave cannot be asked for within another statement, such as DECLARE.
    cursor) grep -vE '^SELECT (lastval|currval)' "$here/scenarios.sql" | psql "$1" -a -v FETCH_COUNT=7 ;;
    single)
        psql "$1" -1 -c 'INSERT INTO plain VALUES (1)' -c 'INSERT INTO plain VALUES (1)'
        psql "$1" -c 'INSERT INTO plain VALUES (1); INSERT INTO plain VALUES (2)'
        psql "$1" -c 'INSERT INTO plain VALUES (3)' -c 'INSERT INTO plain VALUES (3)' -c 'SELECT * FROM plain'
        printf 'INSERT INTO plain VALUES (%d);\n' 10 11 12 11 13 | psql "$1"
        psql "$1" -S -c 'SELECT 1' -l >/dev/null
        psql "$1" --csv -c 'TABLE plain'
        for n in {100..160}; do printf "INSERT INTO plain (id, b) VALUES (%d, 'it''s');\nUPDATE plain SET a = 1 WHERE id = %d;\n" "$n" "$n"; done | psql "$1"
        ;;
esac
