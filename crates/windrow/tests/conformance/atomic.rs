//! A unit of several writes.

use windrow_core::{FaultClass, RowWrite, Unit};

use crate::bed::Bed;
use crate::words::*;

pub(crate) async fn units_are_all_or_nothing(mut bed: Bed) {
    bed.lay(&[plain()]).await;
    let put = insert("t", &["id", "a"]);
    let write = |id: i64| put.row(row![id, "x"]);
    bed.succeed(&[Unit::one(write(0))]).await;
    let mut units = vec![
        Unit::of([write(1), write(2)]),
        Unit::of([write(3), write(0), write(4)]),
        Unit::of([]),
        Unit::of([write(5), update("t", &["a"]).row(row!["y", 5])]),
        Unit::of([write(6), insert("nowhere", &["id"]).row(row![1])]),
        Unit::of([write(7), write(7)]),
    ];
    units.extend((10..50).map(|id| Unit::one(write(id))));
    for round in [1, 2] {
        // Among others first, then each by itself: those that failed fail again, the same way.
        let outcomes = match round {
            1 => bed.outcomes(&units).await,
            _ => {
                let mut outcomes = Vec::new();
                for unit in [&units[1], &units[4], &units[5]] {
                    outcomes.extend(bed.outcomes(std::slice::from_ref(unit)).await);
                }
                vec![
                    outcomes[0].clone(),
                    outcomes[0].clone(),
                    Ok(Default::default()),
                    Ok(Default::default()),
                    outcomes[1].clone(),
                    outcomes[2].clone(),
                ]
            }
        };
        let failed = |at: usize, place: usize, expected: FaultClass| {
            let fault = outcomes[at].as_ref().unwrap_err();
            assert_eq!((fault.at, fault.fault.class), (place, expected), "{at}");
        };
        failed(1, 1, FaultClass::Unique);
        failed(4, 1, FaultClass::NoTable);
        failed(5, 1, FaultClass::Unique);
        if round == 1 {
            assert_eq!(outcomes[0].as_ref().unwrap().len(), 2);
            assert_eq!(outcomes[2].as_ref().unwrap().len(), 0);
            assert!(outcomes[6..].iter().all(|outcome| count(outcome) == 1));
        }
    }
    for id in [1, 2, 5, 10, 49] {
        assert!(bed.seen("t", id).await.is_some(), "{id}");
    }
    for id in [3, 4, 6, 7] {
        assert_eq!(bed.seen("t", id).await, None, "{id}");
    }
    assert_eq!(bed.seen("t", 5).await.unwrap()[1], "y".into());
}

pub(crate) async fn units_keep_their_own_order(mut bed: Bed) {
    bed.lay(&[plain()]).await;
    let unit = |id: i64| {
        Unit::of([
            insert("t", &["id", "a"]).row(row![id, "one"]),
            update("t", &["a"]).row(row!["two", id]),
            delete("t").row(row![id]),
            update("t", &["a"]).row(row!["nobody", id]),
            insert("t", &["id", "a", "n"])
                .upsert()
                .row(row![id, "three", 3]),
            get("t").row(row![id]),
        ])
    };
    let units: Vec<Unit<RowWrite>> = (0..20).map(unit).collect();
    for size in [1, 20] {
        let from = if size == 1 { 0 } else { 1 };
        for outcome in bed.outcomes(&units[from..size]).await {
            let dones = outcome.unwrap();
            let counts: Vec<u64> = dones.iter().map(|done| done.rows).collect();
            assert_eq!(counts, [1, 1, 1, 0, 1, 1]);
            assert_eq!(rows(&dones[5])[0][1], "three".into());
        }
    }
    assert_eq!(bed.seen("t", 19).await.unwrap()[1], "three".into());
}
