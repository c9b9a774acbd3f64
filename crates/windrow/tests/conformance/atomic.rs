//! A unit of several writes.

use windrow_core::{FaultClass, Unit};

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

pub(crate) async fn the_first_failure_of_a_large_unit_is_named(mut bed: Bed) {
    bed.lay(&[plain()]).await;
    let put = insert("t", &["id", "a"]);
    bed.succeed(&[put.of(row![333, "first"]), put.of(row![450, "first"])])
        .await;
    let large = || Unit::of((0..500).map(|id| put.row(row![id, "x"])));
    let small = |ids: [i64; 2]| Unit::of(ids.map(|id| put.row(row![id, "x"])));
    let units = [small([1000, 1001]), large(), small([1002, 333])];
    // Among others first, then by itself.
    let mut outcomes = bed.outcomes(&units).await;
    outcomes.extend(bed.outcomes(&[large()]).await);
    assert_eq!(outcomes[0].as_ref().unwrap().len(), 2);
    for (outcome, at) in outcomes[1..].iter().zip([333, 1, 333]) {
        let failed = outcome.as_ref().unwrap_err();
        assert_eq!((failed.at, failed.fault.class), (at, FaultClass::Unique));
    }
    for (id, is_there) in [(0, false), (499, false), (1000, true), (1002, false)] {
        assert_eq!(bed.seen("t", id).await.is_some(), is_there, "{id}");
    }
    assert_eq!(bed.seen("t", 333).await.unwrap()[1], "first".into());
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
    let units: Vec<Unit> = (0..20).map(unit).collect();
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
