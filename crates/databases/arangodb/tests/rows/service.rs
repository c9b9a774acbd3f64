//! Opening, letting in, saying what it can do.

use windrow_core::sink::Purpose;
use windrow_core::{FaultClass, Promise};
use windrow_database::Driver;
use windrow_database::Options;
use windrow_testkit::arangodb::ArangoDb;

use crate::support::*;

async fn open(url: &str) -> Result<(), windrow_core::Fault> {
    let sink = Driver::open(&windrow_arangodb::ArangoDb, url, &Options::default()).await?;
    sink.connect(Purpose::LockWait).await?;
    sink.ping().await
}

#[tokio::test]
async fn opens_or_says_why_not() {
    let kit = ArangoDb::start().await.unwrap();
    let at = kit.address();
    open(&kit.url()).await.unwrap();
    open(&format!("arangodb://{at}")).await.unwrap();
    for (url, class, part) in [
        (
            format!("arangodb://{at}/none"),
            FaultClass::NoTable,
            "database not found",
        ),
        (
            format!("arangodb://{at}/a/b"),
            FaultClass::Invalid,
            "one name",
        ),
        (
            format!("arangodb://{at}?auth=x"),
            FaultClass::Invalid,
            "basic or jwt",
        ),
        (
            format!("arangodb://{at}?x=1"),
            FaultClass::Invalid,
            "auth, token",
        ),
    ] {
        let fault = open(&url).await.unwrap_err();
        assert_eq!(fault.class, class, "{fault}");
        assert!(fault.message.contains(part), "{fault}");
    }
    drop(kit);
    let fault = open(&format!("arangodb://{at}?timeout=1"))
        .await
        .unwrap_err();
    assert_eq!(fault.class, FaultClass::Unavailable);
}

#[tokio::test]
async fn passwords_and_tokens_open_the_door() {
    let kit = ArangoDb::start().await.unwrap();
    kit.require("user", "secret");
    let with =
        |login: &str, query: &str| format!("arangodb://{login}{}/shop{query}", kit.address());
    open(&with("user:secret@", "")).await.unwrap();
    open(&with("user:secret@", "?auth=jwt")).await.unwrap();
    open(&with("", "?token=token.0")).await.unwrap();
    for wrong in [
        with("", ""),
        with("user:terces@", ""),
        with("user:terces@", "?auth=jwt"),
        with("", "?token=terces"),
    ] {
        let fault = open(&wrong).await.unwrap_err();
        assert_eq!(fault.class, FaultClass::Denied, "{fault}");
        assert!(!format!("{fault:?}").contains("terces"), "{fault:?}");
    }
}

#[tokio::test]
async fn a_token_that_has_expired_is_asked_for_anew() {
    let kit = ArangoDb::start().await.unwrap();
    kit.require("user", "secret");
    let url = format!("arangodb://user:secret@{}/shop?auth=jwt", kit.address());
    let mut bed = Bed::at(url, Some(kit), &creating()).await;
    let insert = bed.insert(&["_key"]);
    bed.one(insert.unit([1.into()])).await.unwrap();
    bed.kit().expire();
    bed.one(insert.unit([2.into()])).await.unwrap();
    let asked = bed.kit().requests();
    let logins = asked
        .iter()
        .filter(|request| request.target == "/_open/auth");
    assert_eq!(logins.count(), 2);
}

#[tokio::test]
async fn it_says_what_it_lacks() {
    let bed = Bed::new().await;
    let profile = bed.sink.profile();
    assert_eq!((profile.name, profile.transactional), ("ArangoDB", false));
    assert!(profile.limitation(Promise::Atomic).is_some());
    assert!(profile.limitation(Promise::Errors).is_none());
    let mut hashes = Vec::new();
    for unit in [
        bed.insert(&["n", "_key"]).unit([1.into(), 7.into()]),
        bed.delete().unit(["7".into()]),
    ] {
        bed.sink.touches(&unit, &mut hashes);
    }
    assert_eq!((hashes.len(), hashes[0]), (2, hashes[1]));
}
