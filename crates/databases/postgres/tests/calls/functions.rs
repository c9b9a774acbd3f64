//! Functions of the server that tell something of the session, the connection or the value's form:
//! the list of those that are joined is held against the server that runs.

use std::collections::BTreeSet;

use windrow_proof::{Company, company};
use windrow_testkit::pgclient::backend::{first_value, sqlstate};
use windrow_testkit::pgclient::{Address, Client};
use windrow_testkit::postgres::shared;

/// Moments and chance: each evaluation has its own.
const CHANGES: &str = "now transaction_timestamp statement_timestamp clock_timestamp timeofday random random_normal \
    gen_random_uuid uuidv4 uuidv7";

/// Parts of the name of a function that returns the backend, the session, the client, the text,
/// the plan, the transaction, the statistics or the form in which a value is stored.
const TELLS: [&str; 24] = [
    "activity",
    "addr",
    "backend",
    "client_",
    "column_size",
    "compression",
    "cursor",
    "depth",
    "export_snapshot",
    "listening",
    "_lsn",
    "pid",
    "_port",
    "prepared",
    "current_query",
    "_setting",
    "snapshot",
    "stat_",
    "temp_schema",
    "toast_chunk",
    "txid",
    "typeof",
    "wal",
    "xact",
];

/// Functions with such a name that return something else.
const INNOCENT: &str = "pg_client_encoding";

/// Each built-in function's name, `provolatile` and number of parameters; of plain functions only.
fn functions(client: &mut Client) -> BTreeSet<(String, u8, usize)> {
    let sql = "select string_agg(distinct concat(proname, ' ', provolatile, ' ', pronargs), ',') \
         from pg_proc where oid < 16384 and prokind = 'f' and not proretset";
    let all = first_value(&client.query(sql).unwrap()).unwrap();
    let read = |function: &str| {
        let mut parts = function.split(' ');
        let name = parts.next().unwrap().to_owned();
        let volatility = parts.next().unwrap().as_bytes()[0];
        (name, volatility, parts.next().unwrap().parse().unwrap())
    };
    all.split(',').map(read).collect()
}

#[test]
fn no_function_that_tells_the_connection_is_joined() {
    let database = shared().unwrap();
    let address = Address::of(database.url()).unwrap();
    let mut one = Client::connect(&address).unwrap();
    let all = functions(&mut one);
    assert!(all.len() > 2_000, "{}", all.len());
    let listed = |list: &str, name: &str| list.split_ascii_whitespace().any(|n| n == name);
    for (name, volatility, _) in &all {
        let tells = TELLS.iter().any(|word| name.contains(word));
        // An immutable function knows nothing but its values.
        let knows = *volatility != b'i' && !listed(INNOCENT, name);
        assert!(
            !(tells && knows && company(name, *volatility) == Company::Same),
            "{name}"
        );
    }
    // What can be asked without any value is the same in sessions that differ in all else.
    let mut other = Client::connect(&address).unwrap();
    for sql in [
        "set application_name = 'other'",
        "set lock_timeout = '11s'",
        "set statement_timeout = '12s'",
        "create temp table mine (id serial)",
        "insert into mine default values",
        "select pg_advisory_lock(1)",
        "listen channel",
    ] {
        assert_eq!(sqlstate(&other.query(sql).unwrap()), None, "{sql}");
    }
    let same = |name: &str, volatility| {
        company(name, volatility) == Company::Same && !listed(CHANGES, name)
    };
    let mut asked = 0;
    for (name, volatility, _) in all
        .iter()
        .filter(|(name, volatility, parameters)| *parameters == 0 && same(name, *volatility))
    {
        let sql = format!("select pg_catalog.\"{name}\"()::text");
        let answers = [&mut one, &mut other].map(|client| {
            let answer = client.query(&sql).unwrap();
            (sqlstate(&answer), first_value(&answer))
        });
        assert_eq!(answers[0], answers[1], "{name} {volatility}");
        asked += usize::from(answers[0].0.is_none());
    }
    assert!(asked >= 5, "{asked}");
}

#[test]
fn functions_that_tell_the_session_differ_in_company() {
    for name in [
        "pg_backend_pid",
        "pg_column_size",
        "pg_typeof",
        "inet_client_addr",
        "inet_client_port",
        "inet_server_port",
        "pg_my_temp_schema",
        "pg_trigger_depth",
        "pg_current_xact_id",
        "pg_current_snapshot",
        "txid_current",
    ] {
        assert_eq!(company(name, b's'), Company::Differs, "{name}");
    }
    assert_eq!(company("current_query", b'v'), Company::Differs);
    assert_eq!(company("current_setting", b's'), Company::Setting);
}
