//! Arrays: nobody is told what another one did.

use windrow_core::{FaultClass, Rung, Value};
use windrow_testkit::web::{Mishap, Reply};

use crate::support::*;

#[tokio::test]
async fn many_documents_are_one_request() {
    let mut bed = Bed::stand_in().await;
    let insert = bed.insert(&["_key", "n"]);
    let report = bed
        .run(&insert.units((0..1000).map(|n| [n.into(), n.into()])))
        .await;
    assert!(verdicts(&report).iter().all(|v| v == "1"));
    assert_eq!(
        (report.tally.round_trips, rung(&report, Rung::Fused)),
        (1, 1000)
    );
    let gets = bed
        .get()
        .returning(&["n"])
        .units((0..1000).map(|n| [n.into()]));
    let report = bed.run(&gets).await;
    assert_eq!(report.tally.round_trips, 1);
    for (n, verdict) in (0..1000).zip(report.verdicts) {
        assert_eq!(returned(&told(verdict).unwrap()[0]), vec![vec![n.into()]]);
    }
}

#[tokio::test]
async fn every_document_has_its_own_outcome() {
    let mut bed = Bed::new().await;
    let insert = bed.insert(&["_key", "n"]);
    let old = insert.units((0..50).map(|n| [(n * 2).into(), 0.into()]));
    assert!(bed.outcomes(&old).await.iter().all(Result::is_ok));
    let units = insert.units((0..100).map(|n| {
        let key = if n == 33 {
            "no/key".into()
        } else {
            Value::Int(n)
        };
        [key, 1.into()]
    }));
    let outcomes = brief(&bed.outcomes(&units).await);
    for (n, outcome) in outcomes.iter().enumerate() {
        let expected = match n {
            33 => "22P02",
            _ if n % 2 == 0 => "23505",
            _ => "1",
        };
        assert_eq!(outcome, expected, "{n}");
    }
    let updates = bed
        .update(&["n"])
        .units((90..110).map(|n| [2.into(), n.into()]));
    let outcomes = brief(&bed.outcomes(&updates).await);
    assert_eq!(outcomes, [vec!["1"; 10], vec!["0"; 10]].concat());
    let deletes = bed.delete().units((95..105).map(|n| [n.into()]));
    let outcomes = brief(&bed.outcomes(&deletes).await);
    assert_eq!(outcomes, [vec!["1"; 5], vec!["0"; 5]].concat());
}

#[tokio::test]
async fn other_unique_indexes_and_conflicts_are_told_apart() {
    let mut bed = Bed::stand_in().await;
    let table = bed.table.clone();
    bed.kit().unique(&table, "mail");
    bed.kit().conflict("busy");
    let ignore = bed.insert(&["_key", "mail"]).ignore();
    let units = [
        ignore.unit(["a".into(), "x".into()]),
        ignore.unit(["a".into(), "y".into()]),
        ignore.unit(["b".into(), "x".into()]),
        ignore.unit(["busy".into(), "z".into()]),
    ];
    let report = bed.run(&units).await;
    assert_eq!(verdicts(&report), ["1", "0", "23505", "rolled back 40001"]);
    assert!(report.usable);
    let other = told(report.verdicts[2].clone());
    assert_eq!(
        (fault(&other).class, fault(&other).constraint()),
        (FaultClass::Unique, Some("mail_1"))
    );
}

#[tokio::test]
async fn an_array_that_is_refused_as_a_whole_is_halved() {
    let mut bed = Bed::stand_in().await;
    let units = bed.insert(&["_key"]).units((0..8).map(|n| [n.into()]));
    let refused = Reply::json(
        400,
        r#"{"code":400,"error":true,"errorMessage":"bad parameter","errorNum":10}"#,
    );
    for _ in 0..3 {
        bed.kit().next(
            |request| request.body.contains("\"5\""),
            Mishap::Instead(refused.clone()),
        );
    }
    let outcomes = bed.outcomes(&units).await;
    // Refused with all, with half of them, with a neighbour; alone it is taken.
    assert!(outcomes.iter().all(Result::is_ok));
    for _ in 0..4 {
        bed.kit().next(
            |request| request.body.contains("\"15\""),
            Mishap::Instead(refused.clone()),
        );
    }
    let units = bed.insert(&["_key"]).units((10..18).map(|n| [n.into()]));
    let outcomes = brief(&bed.outcomes(&units).await);
    for (n, outcome) in (10..).zip(outcomes) {
        assert_eq!(outcome, if n == 15 { "22023" } else { "1" }, "{n}");
    }
}

#[tokio::test]
async fn a_document_may_hold_whatever_errors_hold() {
    let mut bed = Bed::new().await;
    let columns = ["_key", "error", "errorNum", "errorMessage"];
    let insert = bed
        .insert(&columns)
        .unit(["k".into(), true.into(), 1202.into(), "x".into()]);
    bed.one(insert).await.unwrap();
    assert_eq!(
        bed.read("k", &["error", "errorNum"]).await,
        Some(vec![true.into(), 1202.into()])
    );
}
