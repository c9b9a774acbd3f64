//! The protocol client against a real server.

use windrow_testkit::pgclient::{Address, Client, backend, frontend};
use windrow_testkit::postgres::shared;

#[test]
fn simple_and_extended_queries_are_answered() {
    let database = shared().unwrap();
    let address = Address::of(database.url()).unwrap();
    let mut client = Client::connect_with(&address, &[("application_name", "it")]).unwrap();
    let answer = client.query("show application_name").unwrap();
    assert_eq!(backend::first_value(&answer).as_deref(), Some("it"));

    let mut out = Vec::new();
    frontend::parse(&mut out, "s", "select $1::int + 1 as next", &[]);
    frontend::bind(&mut out, ("", "s"), &[], &[Some("41")], &[0]);
    frontend::describe(&mut out, b'P', "");
    frontend::execute(&mut out, "", 0);
    frontend::close(&mut out, b'S', "s");
    frontend::sync(&mut out);
    client.send(&out).unwrap();
    let answer = client.until_ready().unwrap();
    let tags: Vec<u8> = answer.iter().map(|m| m.tag).collect();
    assert_eq!(tags, b"12TDC3Z");
    let columns = answer.iter().find(|m| m.tag == b'T').unwrap().columns();
    assert_eq!(columns.first().unwrap().name, "next");
    assert_eq!(backend::first_value(&answer).as_deref(), Some("42"));
}

#[test]
fn what_runs_is_cancelled_and_who_is_not_known_is_told() {
    let database = shared().unwrap();
    let address = Address::of(database.url()).unwrap();
    let mut client = Client::connect(&address).unwrap();
    let mut out = Vec::new();
    // Notices tell that it runs: a cancel request that comes too early would be for nothing.
    frontend::query(
        &mut out,
        "do $$ begin raise notice 'runs'; perform pg_sleep(60); end $$",
    );
    client.send(&out).unwrap();
    assert_eq!(client.receive().unwrap().unwrap().tag, b'N');
    client.cancel().unwrap();
    let answer = client.until_ready().unwrap();
    assert_eq!(backend::sqlstate(&answer).as_deref(), Some("57014"));
    let nobody = Address {
        database: "nowhere".into(),
        ..address
    };
    let error = Client::connect(&nobody).unwrap_err();
    assert!(error.to_string().contains("3D000"), "{error}");
}
