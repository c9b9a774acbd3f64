//! The generator for PostgreSQL's protocol against a real server.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests may"
)]

use std::sync::Arc;
use std::time::Duration;

use windrow_bench::generator::pg::Mode;
use windrow_bench::generator::{
    Clients, Inserts, Job, Live, Outcome, Report, Schedule, Style, Target, Until,
};
use windrow_bench::reading::POSTGRES_TABLE;
use windrow_testkit::pgclient::Address;
use windrow_testkit::postgres::shared;

fn run(clients: &mut Clients, schedule: Schedule, job: &Arc<dyn Job>) -> Report {
    let until = Until::after(Duration::from_millis(200));
    let live = Arc::new(Live::default());
    let report = clients.run(schedule, &until, job, &live).unwrap();
    assert_eq!(live.successes() + live.others(), report.calls());
    report
}

#[test]
fn what_is_reported_is_what_is_there() {
    let database = shared().unwrap();
    database.exec(POSTGRES_TABLE).unwrap();
    let target = Target::Pg(Address::of(database.url()).unwrap());
    let job: Arc<dyn Job> = Arc::new(Inserts::from(Style::Pg(Mode::Prepared), 0));

    let clients = Clients::open(&target, 5).unwrap();
    let mut clients = clients.prepare(3, &*job).unwrap();
    let first = run(&mut clients, Schedule::Closed, &job);
    assert!(first.successes() > 0);
    first.all(Outcome::Success).unwrap();
    // The same rows once more: all of them are there already.
    let again = run(&mut clients, Schedule::Closed, &job);
    assert!(
        again.outcomes.contains_key(&Outcome::Failed(*b"23505")),
        "{again:?}"
    );

    let others: Arc<dyn Job> = Arc::new(Inserts::from(Style::Pg(Mode::Simple), 50_000_000));
    let clients = Clients::open(&target, 2).unwrap();
    let mut clients = clients.prepare(2, &*others).unwrap();
    let schedule = Schedule::Poisson {
        rate: 500.0,
        seed: 1,
    };
    let offered = run(&mut clients, schedule, &others);
    assert!(offered.successes() > 0);
    offered.all(Outcome::Success).unwrap();

    let reported = first.successes() + again.successes() + offered.successes();
    let there = database.exec("select count(*) from readings").unwrap();
    assert_eq!(there, reported.to_string());
}
