//! Connections that break, and locks of other sessions.

use std::time::Duration;

use windrow_core::sink::Purpose;
use windrow_core::{FaultClass, Unit, Verdict};
use windrow_database::Options;
use windrow_testkit::proxy::{Direction, Proxy};

use crate::bed::Bed;
use crate::words::*;

/// Where the line is cut: a direction, and how many more bytes go over it.
const CUTS: [(Direction, u64); 8] = [
    (Direction::ToClient, 0),
    (Direction::ToClient, 20),
    (Direction::ToClient, 200),
    (Direction::ToServer, 0),
    (Direction::ToServer, 30),
    (Direction::ToServer, 300),
    (Direction::ToServer, 1_000),
    (Direction::ToServer, 3_000),
];

pub(crate) async fn a_broken_connection_gives_no_false_success(bed: Bed) {
    let Some(wire) = bed.ground.wire() else {
        // It is in this process: there is nothing to break.
        return;
    };
    bed.lay(&[plain()]).await;
    let put = insert("t", &["id", "a"]);
    let mut id = 0;
    for (direction, bytes) in CUTS {
        for size in [1, 50] {
            let proxy = Proxy::builder(wire.clone()).start().await.unwrap();
            let through = proxy.through(&bed.ground.url()).unwrap();
            let sink = bed.another(&through, &Options::default()).await;
            let mut executor = sink.connect(Purpose::Batches).await.unwrap();
            let mut next = || {
                id += 1;
                put.of(row![id, "x"])
            };
            // Everything is prepared by then, so what is cut is the batch itself.
            for size in [1, size] {
                let units: Vec<Unit> = (0..size).map(|_| next()).collect();
                for verdict in executor.execute(&units).await.verdicts {
                    told(verdict).unwrap();
                }
            }
            let units: Vec<Unit> = (0..size).map(|_| next()).collect();
            let first = id - i64::from(size) + 1;
            proxy.cut_after(direction, bytes);
            let report = executor.execute(&units).await;
            for (id, verdict) in (first..).zip(&report.verdicts) {
                let there = bed.seen("t", id).await.is_some();
                match verdict {
                    Verdict::Final(Ok(_)) => {
                        assert!(there, "{direction:?} {bytes}: a false success");
                    }
                    Verdict::Final(Err(failed)) => {
                        assert_eq!(failed.fault.class, FaultClass::Unknown, "{failed:?}");
                    }
                    Verdict::RolledBack(_) | Verdict::WaitsForLock(_) | Verdict::NotTried => {
                        assert!(!there, "{direction:?} {bytes}: would be written twice");
                    }
                }
            }
        }
    }
}

pub(crate) async fn a_foreign_lock_holds_up_its_own_write_alone(bed: Bed) {
    bed.lay(&[plain()]).await;
    let options = Options {
        lock_wait: Duration::from_millis(50),
        ..Options::default()
    };
    let sink = bed.another(&bed.ground.url(), &options).await;
    let mut executor = sink.connect(Purpose::Batches).await.unwrap();
    let put = insert("t", &["id", "a"]);
    let units: Vec<Unit> = (0..20).map(|id| put.of(row![id, "old"])).collect();
    for verdict in executor.execute(&units).await.verdicts {
        told(verdict).unwrap();
    }
    let Some(lock) = bed.ground.lock("t", 7).await else {
        return;
    };
    let set = update("t", &["a"]);
    let units: Vec<Unit> = (0..20).map(|id| set.of(row!["new", id])).collect();
    let verdicts = executor.execute(&units).await.verdicts;
    for (id, verdict) in (0..).zip(verdicts) {
        match id {
            7 => match verdict {
                Verdict::WaitsForLock(fault) => assert_eq!(fault.code, "55P03"),
                other => panic!("{other:?}"),
            },
            _ => assert_eq!(count(&told(verdict)), 1),
        }
    }
    let again = executor.execute(&units[7..8]).await.verdicts;
    assert!(matches!(again[..], [Verdict::WaitsForLock(_)]), "{again:?}");
    let mut alone = sink.connect(Purpose::LockWait).await.unwrap();
    let waiting = units[7..8].to_vec();
    let task = tokio::spawn(async move { alone.execute(&waiting).await });
    drop(lock);
    let report = task.await.unwrap();
    assert_eq!(count(&told(report.verdicts.into_iter().next().unwrap())), 1);
    assert_eq!(bed.seen("t", 7).await.unwrap()[1], "new".into());
}
