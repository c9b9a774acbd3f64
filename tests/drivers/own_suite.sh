#!/usr/bin/env bash
# Runs psycopg's own tests twice, directly and through Windrow, and prints each test that ended differently.
#
#   tests/drivers/own_suite.sh CHECKOUT [PYTEST ARGUMENT ..]
#
# CHECKOUT is a work tree of https://github.com/psycopg/psycopg (3.3.4 was tried). Needs what `./test` has built
# (target/debug/windrow, target/debug/with-servers) and libpq. Known differences, each with its reason, are in own_suite.known.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
work=$target/drivers/own-suite

if [ "${1:-}" = --one ]; then
    # Inside with-servers: the server's URL is in the environment.
    how=$2
    shift 2
    dsn=$WINDROW_TEST_POSTGRES
    if [ "$how" = windrow ]; then
        "$target/debug/windrow" serve --to "$dsn" --pg 127.0.0.1:0 --http 127.0.0.1:0 2>"$work/gateway.log" &
        windrow=$!
        trap 'kill "$windrow" 2>/dev/null || true; wait "$windrow" || true' EXIT
        until grep -q 'http listening on' "$work/gateway.log"; do
            kill -0 "$windrow" || { cat "$work/gateway.log" >&2; exit 1; }
            read -rt 0.1 <> <(:) || true
        done
        address=$(sed -nE 's#.*pg listening on postgres://([^/ ]+).*#\1#p' "$work/gateway.log" | head -n 1)
        dsn=$(sed -E "s#@[^/]+/#@$address/#" <<<"$dsn")
    fi
    cd "$CHECKOUT"
    # Tests may fail: what counts is whether the same ones do.
    PSYCOPG_IMPL=python "$work/venv/bin/python" -m pytest -q -p no:randomly -p no:unraisableexception -m 'not slow and not timing' --test-dsn "$dsn" \
        --junitxml="$work/$how.xml" "${@:-tests}" >"$work/$how.log" 2>&1 || true
    tail -n 1 "$work/$how.log"
    if [ "$how" = windrow ]; then psql -XAtq "${dsn%/*}/windrow" -c 'SHOW BYPASS' >"$work/bypass" 2>&1 || true; fi
    exit 0
fi

[ -d "${1:-}/psycopg" ] || { sed -n '2,8p' "${BASH_SOURCE[0]}" >&2; exit 2; }
CHECKOUT=$(cd "$1" && pwd)
export CHECKOUT
shift
mkdir -p "$work"
if [ ! -x "$work/venv/bin/pytest" ]; then
    python3 -m venv --clear "$work/venv"
    "$work/venv/bin/pip" install -q --disable-pip-version-check pytest anyio dnspython pproxy numpy psycopg-pool "$CHECKOUT/psycopg"
fi
for how in direct windrow; do
    printf '%s: ' "$how"
    "$target/debug/with-servers" "${BASH_SOURCE[0]}" --one "$how" "$@"
    # A test's parameters are part of its name; where they hold a port or a process number, that is not.
    "$work/venv/bin/python" - "$work/$how.xml" >"$work/$how.outcomes" <<'PYTHON'
import sys, xml.etree.ElementTree as tree
for case in tree.parse(sys.argv[1]).iter("testcase"):
    kinds = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
    print(f"{case.get('classname')}::{case.get('name')}", kinds[0] if kinds else "passed")
PYTHON
    sort -o "$work/$how.outcomes" "$work/$how.outcomes"
done
known=$here/own_suite.known
differences=$(diff "$work/direct.outcomes" "$work/windrow.outcomes" | grep -E '^[<>]' || true)
if [ -s "$known" ]; then
    differences=$(grep -vF -f <(sed -E '/^#/d; /^$/d' "$known") <<<"$differences" || true)
fi
if [ -n "$differences" ]; then
    printf 'directly (<) and through Windrow (>), other than known:\n%s\nlogs: %s\n' "$differences" "$work" >&2
    exit 1
fi
echo "every test ended as it does directly ($(wc -l <"$work/direct.outcomes") tests)"
