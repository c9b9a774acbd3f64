//! The generator for PostgreSQL's protocol against a real server.

use std::sync::Arc;
use std::time::Duration;

use windrow_bench::pg::closed::Clients;
use windrow_bench::pg::open::{self, Open};
use windrow_bench::pg::{CallOutcome, Inserts, Job, Mode};
use windrow_bench::reading::POSTGRES_TABLE;
use windrow_testkit::pgclient::Address;
use windrow_testkit::postgres::shared;

#[test]
fn what_is_told_is_what_is_there() {
    let database = shared().unwrap();
    database.exec(POSTGRES_TABLE).unwrap();
    let address = Address::of(database.url()).unwrap();
    let job: Arc<dyn Job> = Arc::new(Inserts::default());
    let time = Duration::from_millis(200);

    let mut clients = Clients::open(&address, 5).unwrap();
    clients.prepare(3, &*job).unwrap();
    let first = clients.run(3, time, &job).unwrap();
    assert!(first.successes() > 0 && first.successes() == first.requests());
    // The same rows once more: all of them are there already.
    let again = clients.run(3, time, &job).unwrap();
    assert!(
        again.outcomes.contains_key(&CallOutcome::Error(*b"23505")),
        "{again:?}"
    );

    let load = Open {
        rate: 500.0,
        time,
        seed: 1,
    };
    let others: Arc<dyn Job> = Arc::new(Inserts {
        first: 50_000_000,
        mode: Mode::Simple,
    });
    let mut open = open::Clients::open(&address, 2, &*others).unwrap();
    let offered = open.run(&load, &others).unwrap();
    assert!(offered.successes() > 0 && offered.successes() == offered.requests());

    let told = first.successes() + again.successes() + offered.successes();
    let there = database.exec("select count(*) from readings").unwrap();
    assert_eq!(there, told.to_string());
}
