//! The time of a transaction whose rows are previewed.

use windrow_core::Formats;

use super::{Twins, bound, call, texts};
use crate::parsed::insert;

#[tokio::test]
async fn all_rows_of_a_transaction_have_the_time_of_its_first_question() {
    let ddl = "create table t (id serial, a text, at timestamptz default now(), \
        l timestamp default current_timestamp, d date default current_date, \
        u timestamp(3) default (now() at time zone 'utc'), e timestamptz)";
    let mut twins = Twins::new(ddl).await;
    let parsed = || insert("a.t", "a, e", "$1, now() + $2::interval").calls(&["now"]);
    let insert = twins
        .bed
        .describe(parsed().returning("at, e, u").parsed())
        .await;
    let plan = insert.preview().unwrap();
    assert!(plan.ahead.is_none());
    let given = texts(&["x", "0"]);
    let first = twins.ask(&insert, &given, None).await.unwrap();
    let second = twins.ask(&insert, &given, None).await.unwrap();
    assert!(first.is_good && second.is_good && first.time < second.time);
    let again = twins
        .ask(&insert, &given, Some(first.time.clone()))
        .await
        .unwrap();
    assert_eq!(again.time, first.time);
    assert_eq!(again.returned, first.returned);
    assert_eq!(first.returned[0], first.returned[1]);
    twins.store(&insert, &given, &first.computed).await.unwrap();
    twins.store(&insert, &given, &again.computed).await.unwrap();
    let alike = "select count(distinct (at, l, d, u, e)), bool_and(at = e), bool_and(d = at::date), \
        bool_and(l = at::timestamp), bool_and(u = (at at time zone 'utc')::timestamp(3)) from a.t";
    assert_eq!(twins.bed.sql(alike), "1|t|t|t|t");
}

#[tokio::test]
async fn questions_of_one_batch_have_times_of_their_own() {
    let ddl = "create table t (id serial, a text, at timestamptz default now())";
    let mut twins = Twins::new(ddl).await;
    let insert = twins
        .bed
        .describe(insert("a.t", "a", "$1").returning("at").parsed())
        .await;
    let plan = insert.preview().unwrap();
    let mut given = texts(&["x"]);
    given.push((None, true));
    let one = || crate::support::unit_of([call(&plan.question, &given, Formats::Text)]);
    let units: Vec<_> = (0..20).map(|_| one()).collect();
    let (done, report) = twins.bed.succeed(&units).await;
    assert_eq!(report.tally.rungs.iter().sum::<u64>(), 0, "no writes");
    assert_eq!(report.tally.commits, 0);
    let mut times: Vec<_> = done.iter().map(crate::support::said).collect();
    times.sort();
    times.dedup();
    assert_eq!(times.len(), 20);
}

#[tokio::test]
async fn texts_that_name_a_time_are_not_answered_early() {
    let ddl = "create table t (id serial, at timestamptz, a text)";
    let twins = Twins::new(ddl).await;
    let insert = twins
        .bed
        .describe(insert("a.t", "at, a", "$1, $2").parsed())
        .await;
    let lasts = |values: &[&str]| {
        let (arguments, formats) = bound(&texts(values));
        insert.has_lasting_values(&arguments, &formats)
    };
    assert!(lasts(&["2024-01-01", "now"]) && lasts(&["~", "today"]));
    assert!(!lasts(&["now", "x"]) && !lasts(&[" Tomorrow 10:00", "x"]));
}

/// Defaults that are the time of the transaction, and nothing else.
const TIMES: &[&str] = &[
    "timestamptz default now()",
    "timestamptz(2) not null default current_timestamp",
    "timestamptz default transaction_timestamp()",
    "timestamptz default statement_timestamp()",
    "timestamp default current_timestamp",
    "timestamp default localtimestamp",
    "timestamp(0) not null default (now() at time zone 'Europe/Berlin')",
    "timestamp default timezone('utc', now())",
    "date default current_date",
    "date default now()",
    "timestamptz default now() + interval '30 days'",
    "timestamptz default (now() - '1 hour'::interval)",
    "timestamptz default current_date",
];

#[tokio::test]
async fn rows_to_come_have_the_time_of_their_transaction() {
    for columns in TIMES.chunks(4) {
        let named = (0..)
            .zip(columns)
            .map(|(n, column)| format!("c{n} {column}"));
        let ddl = format!(
            "create table t (id serial, a text, n int default 1, {})",
            named.collect::<Vec<_>>().join(", ")
        );
        let mut twins = Twins::new(&ddl).await;
        let parsed = insert("a.t", "a", "$1").returning("c0, n").parsed();
        let insert = twins.bed.describe(parsed).await;
        let plan = insert.preview().unwrap().clone();
        assert!(plan.ahead_has_time, "{ddl}");
        let ahead = plan.ahead.clone().unwrap();
        let given = texts(&["x"]);
        let asked = twins.ask(&insert, &given, None).await.unwrap();
        for time in [Some(asked.time), None] {
            let count = (Some(b"3".to_vec()), false);
            let mut known = time.clone();
            let call = call(&ahead, &[count, (time, true)], Formats::Binary);
            let rows = twins.rows_of(call).await.unwrap();
            assert_eq!(rows.len(), 3);
            for row in rows {
                let time = row.last().cloned().unwrap();
                assert_eq!(row[row.len() - 2], Some(vec![1]));
                // All have one time: the given one, or that of the question.
                let known = known.get_or_insert_with(|| time.clone().unwrap());
                assert_eq!(time.as_ref(), Some(&*known));
                let alone = twins.ask(&insert, &given, time).await.unwrap();
                let place = plan.sequence.unwrap().1;
                for (at, value) in row.iter().take(plan.computed).enumerate() {
                    assert!(at == place || *value == alone.computed[at], "{ddl} {at}");
                }
            }
        }
    }
}

#[tokio::test]
async fn times_that_differ_within_a_transaction_are_asked_for_singly() {
    for column in [
        "timestamptz default clock_timestamp()",
        "timestamptz default coalesce(now(), clock_timestamp())",
        "timestamptz default now() + random() * '1 day'::interval",
        "timestamptz default greatest(now(), clock_timestamp())",
        "text default now()",
    ] {
        let ddl = format!("create table t (id serial, a text, c {column})");
        let twins = Twins::new(&ddl).await;
        let insert = twins
            .bed
            .describe(insert("a.t", "a", "$1").returning("id").parsed())
            .await;
        let ahead = insert.preview().and_then(|plan| plan.ahead.as_ref());
        assert!(ahead.is_none(), "{column}");
    }
}
