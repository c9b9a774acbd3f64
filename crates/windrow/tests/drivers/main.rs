//! Real drivers, directly and through Windrow: what they are told must be the same, byte by byte,
//! and so must be the tables that they leave behind.
//!
//! Each driver has a program in `tests/drivers` that plays scenarios and prints what it was told.
//! It runs twice, each time against a server of its own, so that generated ids and the numbers of
//! types are the same. What a driver needs is made ready by `tests/drivers/setup`. A driver that is
//! not ready is left out, or fails with `WINDROW_TEST_DRIVERS=all`, which also plays more modes.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test ends where something is not as expected, in its helpers too"
)]

mod driver;
mod frameworks;
mod place;
mod report;
mod rust;

use driver::Driver;

/// One test for each driver and each of its modes.
macro_rules! drivers {
    ($($test:ident: $driver:ident($mode:literal) joins $joined:literal;)+) => {
        $(
            #[test]
            fn $test() {
                report::same(Driver::$driver, $mode, $joined);
            }
        )+
    };
}

/// The same for modes that speak the protocol as another driver or mode does: left out unless all
/// are asked for.
macro_rules! further_modes {
    ($($test:ident: $driver:ident($mode:literal) joins $joined:literal;)+) => {
        $(
            #[test]
            fn $test() {
                report::same_if_all(Driver::$driver, $mode, $joined);
            }
        )+
    };
}

drivers! {
    psql: Psql("default") joins 0;
    psql_with_a_savepoint_for_each_statement: Psql("stepwise") joins 0;
    psql_with_cursors: Psql("cursor") joins 0;
    psql_commands: Psql("single") joins 100;
    pgbench_prepared: Pgbench("prepared") joins 2000;
    psycopg3: Psycopg3("default") joins 600;
    psycopg3_prepared_at_once: Psycopg3("prepare") joins 600;
    psycopg2: Psycopg2("default") joins 1800;
    asyncpg: Asyncpg("default") joins 5000;
    sqlalchemy_psycopg3: SqlAlchemy("psycopg3") joins 40;
    // Its foreign keys are deferred, so that rows of one of its two tables are not joined.
    django: Django("default") joins 35;
    // Its time zone is set by `set_config` with parameters, which keeps the session on a server
    // connection of its own.
    django_binding_on_the_server: Django("server_side") joins 0;
    node_postgres: NodePostgres("unnamed") joins 600;
    node_postgres_named: NodePostgres("named") joins 600;
    postgres_js: PostgresJs("default") joins 100;
    pgx: Pgx("cache_statement") joins 600;
    pgx_simple_protocol: Pgx("simple_protocol") joins 600;
    pgx_crowd: Pgx("crowd") joins 4800;
    lib_pq_binary: LibPq("binary") joins 600;
    pgjdbc: Pgjdbc("extended") joins 600;
    pgjdbc_binary: Pgjdbc("binary") joins 600;
    pgjdbc_rewriting_batches: Pgjdbc("rewrite") joins 600;
    dbd_pg: DbdPg("server_prepare") joins 600;
    pdo: Pdo("native") joins 600;
    php_functions: Pdo("functions") joins 30;
    // Its session has made a trigger whose function is not proven, and LISTENs: it keeps its
    // connection from then on.
    tokio_postgres: TokioPostgres("default") joins 4500;
}

further_modes! {
    pgbench_simple: Pgbench("simple") joins 2000;
    pgbench_extended: Pgbench("extended") joins 2000;
    psycopg3_binary: Psycopg3("binary") joins 600;
    psycopg3_never_prepared: Psycopg3("never_prepare") joins 600;
    psycopg3_values_in_the_text: Psycopg3("client") joins 600;
    psycopg3_newest_protocol: Psycopg3("newest_protocol") joins 600;
    psycopg3_crowd: Psycopg3("crowd") joins 4800;
    asyncpg_without_a_cache: Asyncpg("uncached") joins 5000;
    sqlalchemy_psycopg2: SqlAlchemy("psycopg2") joins 40;
    django_without_cursors: Django("pooled") joins 35;
    node_postgres_values_in_the_text: NodePostgres("text") joins 600;
    node_postgres_crowd: NodePostgres("crowd") joins 4800;
    postgres_js_unprepared: PostgresJs("simple") joins 100;
    pgx_cached_descriptions: Pgx("cache_describe") joins 600;
    pgx_described_each_time: Pgx("describe_exec") joins 600;
    pgx_exec: Pgx("exec") joins 600;
    lib_pq: LibPq("default") joins 600;
    pgjdbc_simple: Pgjdbc("simple") joins 600;
    pgjdbc_prepares_everything: Pgjdbc("cache") joins 600;
    pgjdbc_crowd: Pgjdbc("crowd") joins 4800;
    dbd_pg_prepared_by_the_client: DbdPg("client_prepare") joins 600;
    pdo_emulated: Pdo("emulated") joins 600;
}
