//! Opening, letting in, saying what it can do.

use windrow_core::sink::Purpose;
use windrow_core::{FaultClass, Promise, Unit};
use windrow_cratedb::CrateDb;
use windrow_database::Driver;
use windrow_database::Options;

use crate::support::*;

async fn open(url: &str) -> Result<(), windrow_core::Fault> {
    let sink = Driver::open(&CrateDb, url, &Options::default()).await?;
    sink.connect(Purpose::LockWait).await?;
    sink.ping().await
}

#[tokio::test]
async fn opens_or_says_why_not() {
    let bed = Bed::stand_in("").await;
    open(&bed.url).await.unwrap();
    open(&format!(
        "{}/my_schema",
        bed.url.replace("cratedb:", "crate:")
    ))
    .await
    .unwrap();
    for (url, part) in [
        (format!("{}/a/b", bed.url), "one name"),
        (format!("{}?x=1", bed.url), "\"x\""),
        ("cratedb:nothing".to_owned(), "names no host"),
    ] {
        let fault = open(&url).await.unwrap_err();
        assert_eq!(fault.class, FaultClass::Invalid);
        assert!(fault.message.contains(part), "{fault}");
    }
}

#[tokio::test]
async fn credentials_are_shown_to_the_server_alone() {
    let bed = Bed::stand_in("").await;
    // user:secret
    bed.kit().require("Basic dXNlcjpzZWNyZXQ=");
    let with = |login: &str| bed.url.replace("://", &format!("://{login}@"));
    open(&with("user:secret")).await.unwrap();
    for wrong in [bed.url.clone(), with("user:terces")] {
        let fault = open(&wrong).await.unwrap_err();
        assert_eq!(fault.class, FaultClass::Denied, "{fault}");
        assert!(!format!("{fault:?}").contains("terces"), "{fault:?}");
    }
}

#[tokio::test]
async fn it_says_what_it_lacks() {
    let bed = Bed::new("").await;
    let profile = bed.sink.profile();
    assert_eq!((profile.name, profile.transactional), ("CrateDB", false));
    assert!(profile.limitation(Promise::Atomic).is_some());
    assert!(profile.limitation(Promise::Counts).is_none());
}

#[tokio::test]
async fn rows_are_told_apart_between_flights() {
    let mut bed = Bed::new("id BIGINT PRIMARY KEY, v BIGINT").await;
    let (insert, update) = (bed.insert(&["v", "id"]), bed.update(&["v"]));
    let units = [
        insert.unit([1.into(), 7.into()]),
        update.unit([2.into(), "007".into()]),
        update.unit([2.into(), 8.into()]),
    ];
    let touched = |bed: &Bed, unit: &Unit| {
        let mut hashes = Vec::new();
        bed.sink.touches(unit, &mut hashes);
        hashes
    };
    assert!(touched(&bed, &units[0]).is_empty());
    assert!(bed.outcomes(&units).await.iter().all(Result::is_ok));
    assert_eq!(touched(&bed, &units[0]), touched(&bed, &units[1]));
    assert_ne!(touched(&bed, &units[1]), touched(&bed, &units[2]));
}
