//! The generator for SQL clients against real servers.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests may"
)]

use std::sync::Arc;
use std::time::Duration;

use windrow_bench::generator::pg::Mode;
use windrow_bench::generator::{
    Call, Clients, Connection, Inserts, Job, Live, Lookups, Outcome, Report, Schedule, Style,
    Target, Until,
};
use windrow_bench::reading::{MARIADB_TABLE, NOTE, POSTGRES_TABLE};
use windrow_bench::runtime::block_on;
use windrow_testkit::pgclient::Address;
use windrow_testkit::{mariadb, postgres};

fn run(clients: &mut Clients, schedule: Schedule, job: &Arc<dyn Job>) -> Report {
    let until = Until::after(Duration::from_millis(200));
    let live = Arc::new(Live::default());
    let report = clients.run(schedule, &until, job, &live).unwrap();
    assert_eq!(live.successes() + live.others(), report.calls());
    report
}

/// A protocol on a database with an empty table.
struct Ground<'a> {
    target: Target,
    style: fn(Mode) -> Style,
    /// The SQLSTATE of a key that is there.
    taken: [u8; 5],
    query: &'a dyn Fn(&str) -> String,
}

fn on_each(check: impl Fn(&Ground<'_>)) {
    let database = postgres::shared().unwrap();
    database.exec(POSTGRES_TABLE).unwrap();
    check(&Ground {
        target: Target::Pg(Address::of(database.url()).unwrap()),
        style: Style::Pg,
        taken: *b"23505",
        query: &|sql| database.exec(sql).unwrap(),
    });
    let database = mariadb::shared().unwrap();
    database.exec(MARIADB_TABLE).unwrap();
    check(&Ground {
        target: Target::MySql(Address::of(database.url()).unwrap()),
        style: Style::MySql,
        taken: *b"23000",
        query: &|sql| database.exec(sql).unwrap(),
    });
}

#[test]
fn what_is_reported_is_what_is_there() {
    on_each(|ground| {
        let style = ground.style;
        let job: Arc<dyn Job> = Arc::new(Inserts::from(style(Mode::Prepared), 0));
        let clients = Clients::open(&ground.target, 5).unwrap();
        let mut clients = clients.prepare(3, &*job).unwrap();
        let first = run(&mut clients, Schedule::Closed, &job);
        assert!(first.successes() > 0);
        first.all(Outcome::Success).unwrap();
        // The same rows once more: all of them are there already.
        let again = run(&mut clients, Schedule::Closed, &job);
        let taken = Outcome::Failed(ground.taken);
        assert!(again.outcomes.contains_key(&taken), "{again:?}");

        let others: Arc<dyn Job> = Arc::new(Inserts::from(style(Mode::Simple), 50_000_000));
        let clients = Clients::open(&ground.target, 2).unwrap();
        let mut clients = clients.prepare(2, &*others).unwrap();
        let schedule = Schedule::Poisson {
            rate: 500.0,
            seed: 1,
        };
        let offered = run(&mut clients, schedule, &others);
        assert!(offered.successes() > 0);
        offered.all(Outcome::Success).unwrap();

        let reported = first.successes() + again.successes() + offered.successes();
        let there = (ground.query)("select count(*) from readings");
        assert_eq!(there, reported.to_string());
    });
}

#[test]
fn rows_are_the_same_over_each_protocol_and_are_read() {
    on_each(|ground| {
        let read = "select device, temperature, note from readings where id";
        for (client, mode) in [Mode::Prepared, Mode::Simple].into_iter().enumerate() {
            let style = (ground.style)(mode);
            let (inserts, lookups) = (Inserts::from(style, 0), Lookups { style });
            let call = Call::new(client, 123);
            let id = call.id();
            assert_eq!(one(ground, &inserts, call), "");
            let row = (ground.query)(&format!("{read} = {id}"));
            assert_eq!(row, format!("123|17.3|{NOTE}"));
            (ground.query)(&Lookups::rows());
            let answer = one(ground, &lookups, call);
            assert!(!answer.is_empty(), "{style:?}");
            (ground.query)(&format!(
                "delete from readings where id <= {}",
                Lookups::ROWS
            ));
        }
    });
}

/// Makes one call, which succeeds, and returns the answer.
fn one(ground: &Ground<'_>, job: &dyn Job, call: Call<'_>) -> String {
    let answer = block_on(async {
        let mut connection = Connection::open(&ground.target).await?;
        let mut request = Vec::new();
        job.prepare(&mut request);
        connection.succeed(&request).await?;
        let outcome = connection.call(job, call, &mut request).await?;
        assert_eq!(outcome, Outcome::Success);
        Ok(String::from_utf8_lossy(connection.answer()).into_owned())
    });
    answer.unwrap()
}
