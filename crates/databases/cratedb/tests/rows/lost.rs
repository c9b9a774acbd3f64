//! Connections that end at the worst moment.

use windrow_core::FaultClass;
use windrow_cratedb::CrateDb;
use windrow_database::Driver;
use windrow_testkit::web::Mishap;

use crate::support::*;

const THINGS: &str = "id BIGINT PRIMARY KEY, v BIGINT";

#[tokio::test]
async fn without_an_answer_nobody_knows() {
    let mut bed = Bed::stand_in(THINGS).await;
    let (insert, table) = (bed.insert(&["id", "v"]), bed.table.clone());
    let mut expected = 0;
    for (n, mishap) in [Mishap::CutBefore, Mishap::CutAfter, Mishap::CutWithin]
        .into_iter()
        .enumerate()
    {
        let n = i64::try_from(n).unwrap();
        bed.kit().next(
            &format!("INSERT INTO \\\"doc\\\".\\\"{table}\\\""),
            mishap.clone(),
        );
        let mut units = insert.units((0..3).map(|i| [(n * 10 + i).into(), 1.into()]));
        // What comes behind it has not left.
        units.push(
            bed.insert(&["v", "id"])
                .unit([1.into(), (n * 10 + 5).into()]),
        );
        let report = bed.run(&units).await;
        assert_eq!(
            verdicts(&report),
            ["08007", "08007", "08007", "rolled back 08001"],
            "{mishap:?}"
        );
        assert!(!report.usable);
        expected += if matches!(mishap, Mishap::CutBefore) {
            0
        } else {
            3
        };
        assert_eq!(bed.count().await, expected);
    }
}

#[tokio::test]
async fn reads_are_given_back() {
    let mut bed = Bed::stand_in(THINGS).await;
    let insert = bed.insert(&["id"]).unit([1.into()]);
    bed.one(insert).await.unwrap();
    let get = bed.get().unit([1.into()]);
    bed.kit().next("SELECT \\\"id", Mishap::CutAfter);
    let report = bed.run(std::slice::from_ref(&get)).await;
    assert_eq!(verdicts(&report), ["rolled back 08001"]);
    // The next batch opens another connection.
    assert_eq!(bed.one(get).await.unwrap().rows, 1);
}

#[tokio::test]
async fn whoever_waits_too_long_is_told_so() {
    let bed = Bed::stand_in(THINGS).await;
    let url = format!("{}?timeout=1", bed.url);
    let sink = Driver::open(&CrateDb, &url, &windrow_database::Options::default())
        .await
        .unwrap();
    let mut executor = sink
        .connect(windrow_core::sink::Purpose::Batches)
        .await
        .unwrap();
    bed.kit().next("INSERT", Mishap::Silent);
    let report = executor
        .execute(&[bed.insert(&["id"]).unit([1.into()])])
        .await;
    let outcome = told(report.verdicts[0].clone());
    assert_eq!(fault(&outcome).class, FaultClass::Unknown);
    assert!(
        fault(&outcome).message.contains("within 1 seconds"),
        "{}",
        fault(&outcome)
    );
}

#[tokio::test]
async fn a_database_that_is_gone_is_away() {
    let mut bed = Bed::stand_in(THINGS).await;
    let insert = bed.insert(&["id"]).unit([1.into()]);
    bed.one(insert.clone()).await.unwrap();
    bed.stand_in = None;
    // Whoever is refused has given all ends of connections the time to be seen.
    while bed.sink.ping().await.is_ok() {}
    let report = bed.run(&[insert]).await;
    assert_eq!(verdicts(&report), ["rolled back 08001"]);
    assert!(!report.usable);
    assert_eq!(
        bed.sink.ping().await.unwrap_err().class,
        FaultClass::Unavailable
    );
}
