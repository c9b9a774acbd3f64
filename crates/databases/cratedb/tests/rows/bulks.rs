//! Bulks: nobody is told what another one did.

use windrow_core::{FaultClass, Rung, Value};

use crate::support::*;

const THINGS: &str = "id BIGINT PRIMARY KEY, v BIGINT, j OBJECT";

#[tokio::test]
async fn many_rows_are_one_request() {
    let mut bed = Bed::stand_in(THINGS).await;
    let units = bed
        .insert(&["id", "v"])
        .units((0..1000).map(|n| [n.into(), n.into()]));
    let warm = bed.insert(&["id"]).unit([(-1).into()]);
    bed.one(warm).await.unwrap();
    let report = bed.run(&units).await;
    assert!(verdicts(&report).iter().all(|v| v == "1"));
    assert_eq!(
        (report.tally.round_trips, rung(&report, Rung::Fused)),
        (1, 1000)
    );
    assert_eq!(bed.count().await, 1001);
}

#[tokio::test]
async fn duplicates_are_told_apart_also_where_the_server_is_silent() {
    let mut bed = Bed::new(THINGS).await;
    let insert = bed.insert(&["id", "v"]);
    let old = insert.units((0..300).map(|n| [n.into(), 0.into()]));
    assert!(bed.outcomes(&old).await.iter().all(Result::is_ok));
    // Every second row is there already, far more than the ten of a shard whose errors are told.
    let units = insert
        .units((0..600).map(|n| [if n % 2 == 0 { n / 2 } else { 1000 + n }.into(), 1.into()]));
    let report = bed.run(&units).await;
    let outcomes: Vec<_> = report.verdicts.iter().cloned().map(told).collect();
    for (n, outcome) in outcomes.iter().enumerate() {
        match n % 2 {
            0 => {
                assert_eq!(fault(outcome).class, FaultClass::Unique);
                assert!(fault(outcome).message.contains("same primary key"), "{n}");
            }
            _ => assert!(outcome.is_ok(), "{n}"),
        }
    }
    // One bulk, and a look at what is there: not a request for each.
    assert!(
        report.tally.round_trips < 12,
        "{}",
        report.tally.round_trips
    );
    assert_eq!(bed.count().await, 600);
}

#[tokio::test]
async fn a_value_that_cannot_be_read_spoils_nobody_else() {
    let mut bed = Bed::new(THINGS).await;
    let insert = bed.insert(&["id", "v"]);
    let units = insert.units((0..100).map(|n| {
        let v = if n == 37 {
            Value::text("notanumber")
        } else {
            n.into()
        };
        [n.into(), v]
    }));
    let outcomes = bed.outcomes(&units).await;
    for (n, outcome) in outcomes.iter().enumerate() {
        assert_eq!(outcome.is_ok(), n != 37, "{n}");
    }
    let bad = fault(&outcomes[37]);
    assert_eq!((bad.class, &*bad.code), (FaultClass::Value, "22P02"));
    assert_eq!(
        &*bad.message,
        "SQLParseException[Cannot cast value `notanumber` to type `bigint`]"
    );
    assert_eq!(bed.count().await, 99);
}

/// Values that look good from here, and that the server refuses: the bulk is halved.
#[tokio::test]
async fn a_bulk_is_halved_until_the_row_is_found() {
    for repeats in [false, true] {
        let mut bed = Bed::stand_in("id BIGINT PRIMARY KEY, at TIMESTAMP WITH TIME ZONE").await;
        if repeats {
            bed.kit().repeat_errors();
        }
        let units = bed.insert(&["id", "at"]).units((0..64).map(|n| {
            let at = if n == 5 || n == 60 {
                "1 o'clock"
            } else {
                "2020-01-01T00:00:00Z"
            };
            [n.into(), at.into()]
        }));
        let report = bed.run(&units).await;
        for (n, verdict) in verdicts(&report).iter().enumerate() {
            assert_eq!(
                verdict,
                if n == 5 || n == 60 { "22P02" } else { "1" },
                "{n}"
            );
        }
        assert!(
            report.tally.round_trips < 30,
            "{}",
            report.tally.round_trips
        );
        assert_eq!(bed.count().await, 62);
    }
}

#[tokio::test]
async fn null_for_a_key_is_one_rows_own_matter() {
    let mut bed = Bed::new(THINGS).await;
    let insert = bed.insert(&["id", "v"]);
    let units =
        insert.units((0..20).map(|n| [if n == 3 { Value::Null } else { n.into() }, n.into()]));
    let outcomes = bed.outcomes(&units).await;
    assert_eq!(outcomes.iter().filter(|o| o.is_ok()).count(), 19);
    assert!(matches!(
        fault(&outcomes[3]).class,
        FaultClass::NotNull | FaultClass::Value
    ));
    // A table's key that the shape does not name fails every row alike, and each is told so.
    let keyless = bed.insert(&["v"]).units((0..3).map(|n| [n.into()]));
    assert!(bed.outcomes(&keyless).await.iter().all(Result::is_err));
    assert_eq!(bed.count().await, 19);
}

#[tokio::test]
async fn a_key_that_comes_twice_is_a_duplicate_of_the_first() {
    let mut bed = Bed::new(THINGS).await;
    let units = bed
        .insert(&["id", "v"])
        .units((0..60).map(|n| [(n % 20).into(), n.into()]));
    let outcomes = brief(&bed.outcomes(&units).await);
    assert!(outcomes[..20].iter().all(|o| o == "1"));
    assert!(outcomes[20..].iter().all(|o| o == "23505"));
    let upserts = bed
        .insert(&["id", "v"])
        .upsert()
        .units((0..60).map(|n| [(n % 20).into(), n.into()]));
    assert!(
        brief(&bed.outcomes(&upserts).await)
            .iter()
            .all(|o| o == "1")
    );
    let get = bed.get().returning(&["v"]).unit([7.into()]);
    assert_eq!(
        returned(&bed.one(get).await.unwrap()),
        vec![vec![47.into()]]
    );
}
