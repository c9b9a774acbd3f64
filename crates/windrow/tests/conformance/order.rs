//! Writes to one row, one after another.

use std::time::Duration;

use windrow_core::sink::Purpose;
use windrow_core::{FaultClass, SourceId, Unit, Verdict};
use windrow_database::Options;

use crate::bed::Bed;
use crate::words::*;

pub(crate) async fn writes_to_one_row_keep_their_order(mut bed: Bed) {
    bed.lay(&[plain()]).await;
    let mut units = Vec::new();
    for id in 0..20 {
        units.push(insert("t", &["id", "a"]).of(row![id, "one"]));
    }
    for id in 0..20 {
        units.push(update("t", &["a"]).of(row!["two", id]));
        units.push(delete("t").of(row![id]));
        units.push(update("t", &["a"]).of(row!["nobody", id]));
    }
    for id in 0..20 {
        units.push(
            insert("t", &["id", "a", "n"])
                .upsert()
                .of(row![id, "three", 3]),
        );
        units.push(insert("t", &["id", "a"]).ignore().of(row![id, "four"]));
        units.push(update("t", &["n"]).of(row![5, id]));
    }
    let counts: Vec<u64> = bed.outcomes(&units).await.iter().map(count).collect();
    assert_eq!(counts[..20], [1; 20]);
    for three in counts[20..80].chunks(3) {
        assert_eq!(three, [1, 1, 0]);
    }
    for three in counts[80..].chunks(3) {
        assert_eq!(three, [1, 0, 1]);
    }
    for id in 0..20 {
        assert_eq!(bed.seen("t", id).await.unwrap(), row![id, "three", 5]);
    }
}

pub(crate) async fn every_write_to_one_row_counts(mut bed: Bed) {
    bed.lay(&[plain()]).await;
    let (put, set) = (insert("t", &["id", "n"]), update("t", &["n"]));
    let upsert = insert("t", &["id", "n"]).upsert();
    let units: Vec<Unit> = (0..60)
        .map(|n| match n % 3 {
            0 => upsert.of(row![1, n]),
            _ => set.of(row![n, 1]),
        })
        .collect();
    let counts: Vec<u64> = bed.outcomes(&units).await.iter().map(count).collect();
    assert_eq!(counts, [1; 60]);
    assert_eq!(bed.seen("t", 1).await.unwrap()[2], 59.into());
    let units = [
        delete("t").of(row![1]),
        put.of(row![1, 77]),
        put.of(row![1, 78]),
        get("t").of(row![1]),
    ];
    let outcomes = bed.outcomes(&units).await;
    assert_eq!((count(&outcomes[0]), count(&outcomes[1])), (1, 1));
    assert_eq!(&*fault(&outcomes[2]).code, "23505");
    assert!(rows(done(&outcomes[3]))[0].contains(&77.into()));
}

pub(crate) async fn a_success_is_seen_by_everybody(mut bed: Bed) {
    bed.lay(&[plain()]).await;
    let put = insert("t", &["id", "a"]);
    for size in [1, 5, 100] {
        let units: Vec<Unit> = (0..size)
            .map(|n| put.of(row![size * 1000 + n, "x"]))
            .collect();
        bed.succeed(&units).await;
        let last = size * 1000 + size - 1;
        assert!(bed.seen("t", last).await.is_some());
    }
    // Also by somebody who comes later.
    let other = Bed::new(bed.ground, &[]).await.unwrap();
    assert!(other.seen("t", 1000).await.is_some());
}

/// Units as those of one source.
fn of(source: u64, mut units: Vec<Unit>) -> Vec<Unit> {
    for unit in &mut units {
        unit.hand_over(SourceId(source));
    }
    units
}

pub(crate) async fn a_child_sent_before_its_parent_fails(mut bed: Bed) {
    crate::keys::family(&bed).await;
    let (parent, child) = (
        insert("parent", &["id"]),
        insert("child", &["id", "parent"]),
    );
    let mut units = Vec::new();
    for n in 0..30 {
        units.push(child.of(row![n, n]));
        units.push(parent.of(row![n]));
        units.push(child.of(row![100 + n, n]));
    }
    let outcomes = bed.outcomes(&of(1, units)).await;
    for (n, outcome) in outcomes.iter().enumerate() {
        match n % 3 {
            0 => assert_eq!(class(outcome), FaultClass::ForeignKey, "{n}"),
            _ => assert_eq!(count(outcome), 1, "{n}"),
        }
    }
    for n in 0..30 {
        assert!(bed.seen("parent", n).await.is_some());
        assert!(bed.seen("child", 100 + n).await.is_some());
        assert_eq!(bed.seen("child", n).await, None);
    }
}

pub(crate) async fn no_unit_overtakes_one_that_waits_for_a_lock(bed: Bed) {
    bed.lay(&[plain(), table("log", &[("id", Type::Int)])])
        .await;
    let options = Options {
        lock_wait: Duration::from_millis(50),
        ..Options::default()
    };
    let sink = bed.another(&bed.ground.url(), &options).await;
    let mut executor = sink.connect(Purpose::Batches).await.unwrap();
    let put = insert("t", &["id", "n"]);
    let units: Vec<Unit> = (0..40).map(|id| put.of(row![id, 0])).collect();
    for verdict in executor.execute(&units).await.verdicts {
        told(verdict).unwrap();
    }
    let Some(lock) = bed.ground.lock("t", 7).await else {
        return;
    };
    let (set, log) = (update("t", &["n"]), insert("log", &["id"]));
    let mut units = of(1, (0..20).map(|id| set.of(row![5, id])).collect());
    units.extend(of(1, vec![log.of(row![1])]));
    units.extend(of(2, (20..40).map(|id| set.of(row![5, id])).collect()));
    units.extend(of(2, vec![log.of(row![2])]));
    let report = executor.execute(&units).await;
    for (n, verdict) in report.verdicts.iter().enumerate() {
        match verdict {
            Verdict::Final(outcome) => assert!(!(7..=20).contains(&n) && outcome.is_ok(), "{n}"),
            Verdict::WaitsForLock(fault) => assert_eq!((n, &*fault.code), (7, "55P03")),
            Verdict::NotTried => assert!((8..=20).contains(&n), "{n}"),
            Verdict::RolledBack(fault) => panic!("{n}: {fault}"),
        }
    }
    drop(lock);
    assert_eq!(bed.seen("log", 1).await, None);
    assert!(bed.seen("log", 2).await.is_some());
    for id in 0..40 {
        let n = if (7..20).contains(&id) { 0 } else { 5 };
        assert_eq!(bed.seen("t", id).await.unwrap()[2], n.into(), "{id}");
    }
}
