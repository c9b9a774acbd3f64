#!/usr/bin/env bash
# Runs a driver's own tests twice, directly and through Windrow, and prints each test that ended differently.
#
#   tests/drivers/own_suite.sh SUITE CHECKOUT [ARGUMENT ..]
#
# SUITE      CHECKOUT is a work tree of ..                     tried        arguments
# psycopg    https://github.com/psycopg/psycopg                3.3.4        of pytest
# asyncpg    https://github.com/MagicStack/asyncpg             0.31.0       of pytest
# pgx        https://github.com/jackc/pgx                      5.10.0       packages
# dbdpg      https://github.com/bucardo/dbdpg                  3.21.0       tests (t/*.t); has to be built: perl Makefile.PL && make
#
# Needs what `./test` has built (target/debug/windrow, target/debug/with-servers), psql, and what the suite is written in.
# Known differences, each with its reason, are in own_suite.known.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}

# --- one suite each: make ready, run, and what became of each test: `NAME OUTCOME` ------------------------------------

venv() {
    [ -x "$work/venv/bin/pytest" ] && return 0
    python3 -m venv --clear "$work/venv"
    "$work/venv/bin/pip" install -q --disable-pip-version-check pytest "$@"
}

# Of pytest's report. A test's parameters are part of its name.
of_junit() {
    "$work/venv/bin/python" - "$work/$1.xml" <<'PYTHON'
import sys, xml.etree.ElementTree as tree
for case in tree.parse(sys.argv[1]).iter("testcase"):
    kinds = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
    print(f"{case.get('classname')}::{case.get('name')}", kinds[0] if kinds else "passed")
PYTHON
}

ready_psycopg() { venv anyio dnspython pproxy numpy psycopg-pool "$CHECKOUT/psycopg"; }
run_psycopg() {
    PSYCOPG_IMPL=python "$work/venv/bin/python" -m pytest -q -p no:randomly -p no:unraisableexception -m 'not slow and not timing' \
        --test-dsn "$dsn" --junitxml="$work/$how.xml" "${@:-tests}"
}
outcomes_psycopg() { of_junit "$1"; }

# The tests need the built package of their version, and would find the one beside them that is not built.
ready_asyncpg() {
    venv uvloop distro "asyncpg==$(sed -nE "s/^__version__.*= '(.*)'/\1/p" "$CHECKOUT/asyncpg/_version.py")"
    rm -rf "$work/tests"
    cp -r "$CHECKOUT/tests" "$work/tests"
}
run_asyncpg() {
    cd "$work"
    venv/bin/python -m pytest -q --junitxml="$work/$how.xml" "${@:-tests}"
}
outcomes_asyncpg() { of_junit "$1"; }

ready_pgx() { :; }
run_pgx() {
    psql -XqAt "$dsn" -f "$CHECKOUT/testsetup/postgresql_setup.sql"
    export PGX_TEST_DATABASE="$dsn" PGX_TEST_TCP_CONN_STRING="$dsn"
    go test -count=1 -p 1 -json "${@:-./...}" >"$work/$how.json"
}
outcomes_pgx() {
    sed -nE 's/.*"Action":"(pass|fail|skip)","Package":"([^"]*)","Test":"([^"]*)".*/\2::\3 \1/p' "$work/$1.json"
}

ready_dbdpg() { :; }
run_dbdpg() {
    local tests=("$@")
    [ ${#tests[@]} -gt 0 ] || tests=(t/*.t)
    export DBI_DSN="dbi:Pg:dbname=$PGDATABASE;host=$PGHOST;port=$PGPORT" DBI_USER=$PGUSER DBI_PASS='' DBDPG_TEST_ALWAYS_ENV=1
    env -u PGDATABASE -u PGHOST -u PGPORT -u PGUSER prove -b -v "${tests[@]}"
}
# A loop over a hash comes in another order each time: so neither numbers nor the order count. One name holds what was measured.
outcomes_dbdpg() {
    awk '/^t\/.*\.t \.+/ { file = $1 }
        /^(not )?ok [0-9]+/ { end = /^ok/ ? "passed" : "failed"; sub(/^(not )?ok [0-9]+( - )?/, ""); sub(/ \([0-9]+ kB\)/, ""); print file "::" $0, end }' "$work/$1.log"
}

# --- both ways --------------------------------------------------------------------------------------------------------

if [ "${1:-}" = --one ]; then
    # Inside with-servers: the server's URL is in the environment.
    suite=$2 how=$3 work=$target/drivers/own-suite/$2
    shift 3
    dsn=$WINDROW_TEST_POSTGRES
    if [ "$how" = windrow ]; then
        : >"$work/gateway.log"
        "$target/debug/windrow" serve --to "$dsn" --pg 127.0.0.1:0 --http 127.0.0.1:0 2>>"$work/gateway.log" &
        windrow=$!
        trap 'kill "$windrow" 2>/dev/null || true; wait "$windrow" || true' EXIT
        until grep -q 'http listening on' "$work/gateway.log"; do
            kill -0 "$windrow" || { cat "$work/gateway.log" >&2; exit 1; }
            read -rt 0.1 <> <(:) || true
        done
        address=$(sed -nE 's#.*pg listening on postgres://([^/ ]+).*#\1#p' "$work/gateway.log" | head -n 1)
        dsn=$(sed -E "s#@[^/]+/#@$address/#" <<<"$dsn")
    fi
    place=${dsn#*@}
    PGUSER=$(sed -E 's#^[^/]*//([^:@]*).*#\1#' <<<"$dsn") PGHOST=${place%%:*} PGPORT=$(sed -E 's#^[^:]*:([0-9]+)/.*#\1#' <<<"$place")
    PGDATABASE=$(sed -E 's#^[^/]*/([^?]*).*#\1#' <<<"$place")
    export PGUSER PGHOST PGPORT PGDATABASE
    cd "$CHECKOUT"
    # Tests may fail: what counts is whether the same ones do.
    ("run_$suite" "$@") >"$work/$how.log" 2>&1 || true
    if [ "$how" = windrow ]; then psql -XAtq "${dsn%/*}/windrow" -c 'SHOW BYPASS' >"$work/bypass" 2>&1 || true; fi
    exit 0
fi

suite=${1:-}
if ! declare -F "ready_$suite" >/dev/null || [ ! -d "${2:-}" ]; then
    sed -n '2,13p' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
CHECKOUT=$(cd "$2" && pwd)
export CHECKOUT
shift 2
work=$target/drivers/own-suite/$suite
mkdir -p "$work"
"ready_$suite"
for how in direct windrow; do
    "$target/debug/with-servers" "${BASH_SOURCE[0]}" --one "$suite" "$how" "$@"
    "outcomes_$suite" "$how" | sort >"$work/$how.outcomes"
    [ -s "$work/$how.outcomes" ] || { echo "$how: no test was run; log: $work/$how.log" >&2; exit 1; }
    printf '%s: ' "$how"
    sed -E 's/.* //' "$work/$how.outcomes" | sort | uniq -c | sed -E 's/^ +//' | paste -sd, -
done
differences=$(diff "$work/direct.outcomes" "$work/windrow.outcomes" | grep -E '^[<>]' || true)
known=$(sed -nE "/^\[$suite\]/,/^\[/ { /^(#|\[|$)/d; p }" "$here/own_suite.known")
if [ -n "$known" ]; then
    differences=$(grep -vF -f <(printf '%s\n' "$known") <<<"$differences" || true)
fi
if [ -n "$differences" ]; then
    printf 'directly (<) and through Windrow (>), other than known:\n%s\nlogs: %s\n' "$differences" "$work" >&2
    exit 1
fi
echo "every test ended as it does directly, but for those that are known ($(wc -l <"$work/direct.outcomes") tests)"
