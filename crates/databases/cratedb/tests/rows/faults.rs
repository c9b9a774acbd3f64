//! A database that cannot take writes now.

use windrow_core::FaultClass;
use windrow_testkit::web::{Mishap, Reply};

use crate::support::*;

const THINGS: &str = "id BIGINT PRIMARY KEY, v BIGINT";

fn away() -> Reply {
    Reply::json(
        503,
        r#"{"error":{"message":"MasterNotDiscoveredException[no known master node]","code":5031}}"#,
    )
}

#[tokio::test]
async fn what_was_not_written_is_given_back() {
    let mut bed = Bed::stand_in(THINGS).await;
    let insert = bed.insert(&["id", "v"]);
    // A bulk of which nothing was written, and one write alone.
    bed.kit().next("INSERT", Mishap::Instead(away()));
    let units = insert.units((0..5).map(|n| [n.into(), 1.into()]));
    let report = bed.run(&units).await;
    assert_eq!(verdicts(&report), ["rolled back 08001"; 5]);
    assert!(!report.usable);
    bed.kit().next("INSERT", Mishap::Instead(away()));
    let report = bed.run(&units[..1]).await;
    assert_eq!(verdicts(&report), ["rolled back 08001"]);
    assert_eq!(bed.count().await, 0);
}

/// The shards that could take their rows have taken them.
#[tokio::test]
async fn of_a_bulk_that_was_written_in_part_each_row_is_told_the_truth() {
    let mut bed = Bed::stand_in(THINGS).await;
    let insert = bed.insert(&["id", "v"]);
    let units = insert.units((0..4).map(|n| [n.into(), 1.into()]));
    bed.kit().next("INSERT", Mishap::Done(away()));
    let report = bed.run(&units).await;
    assert_eq!(verdicts(&report), ["08007"; 4]);
    let deletes = bed.delete().units((2..6).map(|n| [n.into()]));
    bed.kit().next("DELETE", Mishap::Instead(away()));
    let report = bed.run(&deletes).await;
    // Two are there still, of the others it cannot be known who took them.
    assert_eq!(
        verdicts(&report),
        ["rolled back 08001", "rolled back 08001", "08007", "08007"]
    );
    // The same values once more change nothing.
    let updates = bed
        .update(&["v"])
        .units((0..4).map(|n| [7.into(), n.into()]));
    bed.kit().next("UPDATE", Mishap::Done(away()));
    let report = bed.run(&updates).await;
    assert_eq!(verdicts(&report), ["rolled back 08001"; 4]);
}

#[tokio::test]
async fn proxies_breakers_and_blocks_are_understood() {
    let mut bed = Bed::stand_in(THINGS).await;
    let unit = bed.insert(&["id"]).unit([1.into()]);
    for (status, body, verdict) in [
        (503, "<html>no upstream</html>", "rolled back 08001"),
        (
            429,
            r#"{"error":{"message":"too many","code":4290}}"#,
            "rolled back 08001",
        ),
        (
            500,
            r#"{"error":{"message":"CircuitBreakingException[Allocating 2mb failed]","code":5000}}"#,
            "rolled back 53200",
        ),
        (
            500,
            r#"{"error":{"message":"UnavailableShardsException[primary shard is not active]","code":5002}}"#,
            "rolled back 08001",
        ),
        (
            403,
            r#"{"error":{"message":"ClusterBlockException[table read-only]","code":4033}}"#,
            "25006",
        ),
        (
            400,
            r#"{"error":{"message":"OperationOnInaccessibleRelationException[The relation doesn't allow INSERT operations, as it is read-only]","code":4007}}"#,
            "25006",
        ),
        (
            401,
            r#"{"error":{"message":"MissingPrivilegeException[Missing 'DML' privilege]","code":4011}}"#,
            "42501",
        ),
        (
            500,
            r#"{"error":{"message":"something","code":5000}}"#,
            "08007",
        ),
        (502, "bad gateway", "08007"),
        (
            409,
            r#"{"error":{"message":"VersionConflictException[]","code":4092}}"#,
            "rolled back 40001",
        ),
    ] {
        bed.kit()
            .next("INSERT", Mishap::Instead(Reply::json(status, body)));
        let report = bed.run(std::slice::from_ref(&unit)).await;
        assert_eq!(verdicts(&report), [verdict], "{body}");
        assert_eq!(
            report.usable,
            !(verdict.starts_with("rolled back") && status != 409),
            "{body}"
        );
    }
    assert_eq!(bed.count().await, 0);
}

#[tokio::test]
async fn what_concerns_the_statement_is_told_to_all_of_its_rows_at_once() {
    let mut bed = Bed::stand_in(THINGS).await;
    let units = bed.insert(&["id"]).units((0..50).map(|n| [n.into()]));
    let denied =
        r#"{"error":{"message":"MissingPrivilegeException[Missing 'DML' privilege]","code":4011}}"#;
    bed.kit()
        .next("INSERT", Mishap::Instead(Reply::json(401, denied)));
    let report = bed.run(&units).await;
    assert_eq!(verdicts(&report), ["42501"; 50]);
    assert_eq!(report.tally.round_trips, 3);
}

#[tokio::test]
async fn an_answer_that_is_none_leaves_the_outcome_open() {
    let mut bed = Bed::stand_in(THINGS).await;
    let units = bed.insert(&["id"]).units((0..3).map(|n| [n.into()]));
    for body in ["", "{}", r#"{"results":[{"rowcount":1}]}"#, "[1"] {
        bed.kit()
            .next("INSERT", Mishap::Done(Reply::json(200, body)));
        let report = bed.run(&units).await;
        assert_eq!(verdicts(&report), ["08007"; 3], "{body}");
    }
    let get = bed.get().unit([1.into()]);
    bed.kit().next(
        "SELECT",
        Mishap::Instead(Reply::json(500, r#"{"error":{"message":"x","code":5003}}"#)),
    );
    let outcomes = bed.outcomes(&[get]).await;
    assert_eq!(fault(&outcomes[0]).class, FaultClass::Other);
}
