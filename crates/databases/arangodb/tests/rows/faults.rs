//! A database that is away, refuses, or does not answer.

use windrow_core::FaultClass;
use windrow_testkit::web::{Mishap, Reply, Request};

use crate::support::*;

fn writes(request: &Request) -> bool {
    request.method == "POST"
}

#[tokio::test]
async fn failures_mean_what_they_say() {
    let mut bed = Bed::stand_in().await;
    let units = bed.insert(&["_key"]).units((0..3).map(|n| [n.into()]));
    for (status, number, verdict) in [
        (503, 503, "rolled back 08001"),
        (503, 21003, "rolled back 08001"),
        (503, 30, "rolled back 08001"),
        (503, 1456, "08007"),
        (409, 1200, "rolled back 40001"),
        (403, 1004, "25006"),
        (403, 11, "42501"),
        (500, 4, "08007"),
        (504, 0, "08007"),
    ] {
        let body = match number {
            0 => "gateway".to_owned(),
            _ => format!(
                r#"{{"code":{status},"error":true,"errorMessage":"m","errorNum":{number}}}"#
            ),
        };
        bed.kit()
            .next(writes, Mishap::Instead(Reply::json(status, body)));
        let report = bed.run(&units).await;
        assert_eq!(verdicts(&report), [verdict; 3], "{status} {number}");
        assert_eq!(
            report.usable,
            verdict != "rolled back 08001",
            "{status} {number}"
        );
    }
}

#[tokio::test]
async fn without_an_answer_nobody_knows() {
    let mut bed = Bed::stand_in().await;
    for (n, mishap) in [Mishap::CutBefore, Mishap::CutAfter, Mishap::CutWithin]
        .into_iter()
        .enumerate()
    {
        let n = i64::try_from(n).unwrap();
        bed.kit().next(writes, mishap.clone());
        let mut units = bed
            .insert(&["_key"])
            .units((0..3).map(|i| [(n * 10 + i).into()]));
        units.push(bed.insert(&["n"]).unit([1.into()]));
        let report = bed.run(&units).await;
        assert_eq!(
            verdicts(&report),
            ["08007", "08007", "08007", "rolled back 08001"],
            "{mishap:?}"
        );
        assert!(!report.usable);
        let there = bed.read(&(n * 10).to_string(), &["_key"]).await.is_some();
        assert_eq!(there, !matches!(mishap, Mishap::CutBefore), "{mishap:?}");
    }
    let get = bed.get().unit([10.into()]);
    bed.kit()
        .next(|request| request.method == "PUT", Mishap::CutAfter);
    let report = bed.run(&[get]).await;
    assert_eq!(verdicts(&report), ["rolled back 08001"]);
}

#[tokio::test]
async fn an_answer_that_is_none_leaves_the_outcome_open() {
    let mut bed = Bed::stand_in().await;
    let units = bed.insert(&["_key"]).units((0..2).map(|n| [n.into()]));
    for body in ["", "{}", "[{}]", "[1"] {
        bed.kit().next(writes, Mishap::Done(Reply::json(202, body)));
        assert_eq!(verdicts(&bed.run(&units).await), ["08007"; 2], "{body}");
    }
}

#[tokio::test]
async fn collections_are_made_where_that_is_asked_for() {
    let bed = Bed::stand_in().await;
    let options = windrow_database::Options::default();
    let mut plain = Bed::at(bed.url.clone(), None, &options).await;
    let units = [
        plain.insert(&["n"]).unit([1.into()]),
        plain.update(&["n"]).unit([1.into(), "k".into()]),
        plain.get().unit(["k".into()]),
    ];
    let outcomes = plain.outcomes(&units).await;
    assert!(
        outcomes
            .iter()
            .all(|o| fault(o).class == FaultClass::NoTable)
    );
    let mut creating = Bed::at(bed.url.clone(), None, &creating()).await;
    // Only a new document makes a collection.
    let update = creating.update(&["n"]).unit([1.into(), "k".into()]);
    assert_eq!(
        creating.one(update).await.unwrap_err().class,
        FaultClass::NoTable
    );
    let units = creating
        .insert(&["_key", "n"])
        .units((0..5).map(|n| [n.into(), n.into()]));
    assert!(creating.outcomes(&units).await.iter().all(Result::is_ok));
    // Somebody else may be quicker.
    let other = Bed::at(bed.url.clone(), None, &crate::support::creating()).await;
    let taken = Reply::json(
        409,
        r#"{"code":409,"error":true,"errorMessage":"duplicate name","errorNum":1207}"#,
    );
    bed.kit().next(
        |request| request.target.ends_with("/collection"),
        Mishap::Done(taken),
    );
    let mut other = other;
    let insert = other.insert(&["n"]).unit([1.into()]);
    assert_eq!(other.one(insert).await.unwrap().rows, 1);
}
