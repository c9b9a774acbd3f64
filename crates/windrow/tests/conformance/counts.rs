//! Every write counts its own rows.

use windrow_core::{Unit, Value};

use crate::bed::Bed;
use crate::words::*;

/// Rows 0 to 29.
async fn thirty(bed: &mut Bed) {
    bed.lay(&[plain()]).await;
    let put = insert("t", &["id", "a"]);
    let units: Vec<Unit> = (0..30).map(|id| put.of(row![id, "old"])).collect();
    bed.succeed(&units).await;
}

pub(crate) async fn missing_rows_count_nothing(mut bed: Bed) {
    thirty(&mut bed).await;
    let put = insert("t", &["id", "a"]);
    let units: Vec<Unit> = (100..300)
        .step_by(2)
        .map(|id| put.of(row![id, "old"]))
        .collect();
    bed.succeed(&units).await;
    let (set, drop) = (update("t", &["a"]), delete("t"));
    // Every second row is missing: more than a server reports one by one.
    for make in [&set, &drop] {
        let row = |id: i64| match make.shape().columns.len() {
            0 => row![id],
            _ => row!["new", id],
        };
        let units: Vec<Unit> = (100..300).map(|id| make.of(row(id))).collect();
        for (id, outcome) in (100..).zip(bed.outcomes(&units).await) {
            assert_eq!(count(&outcome), u64::from(id % 2 == 0), "{id}");
        }
    }
    assert_eq!(bed.seen("t", 200).await, None);
    let nothing = [
        set.of(vec!["new".into(), Value::Null]),
        drop.of(vec![Value::Null]),
    ];
    for outcome in bed.outcomes(&nothing).await {
        assert_eq!(count(&outcome), 0, "no row has a NULL key");
    }
    let mut units: Vec<Unit> = (20..40).map(|id| set.of(row!["new", id])).collect();
    units.extend((0..60).step_by(3).map(|id| drop.of(row![id])));
    for size in [1, 40] {
        // One alone, then all of them.
        let outcomes = bed.outcomes(&units[..size]).await;
        for (unit, outcome) in units.iter().zip(&outcomes) {
            let write = &unit.writes()[0];
            let Value::Int(id) = write.key_values()[0] else {
                panic!("{write:?}")
            };
            assert_eq!(count(outcome), u64::from(id < 30), "{write:?}");
        }
    }
    assert_eq!(bed.seen("t", 27).await, None);
    assert_eq!(bed.seen("t", 28).await.unwrap()[1], "new".into());
    assert_eq!(bed.seen("t", 40).await, None);
}

pub(crate) async fn upserts_and_ignores_say_what_they_did(mut bed: Bed) {
    thirty(&mut bed).await;
    let put = insert("t", &["id", "a", "n"]).upsert();
    let keep = insert("t", &["id", "a"]).ignore();
    let mut units: Vec<Unit> = (25..35).map(|id| put.of(row![id, "put", id])).collect();
    units.extend((10..20).chain(50..60).map(|id| keep.of(row![id, "kept"])));
    let outcomes = bed.outcomes(&units).await;
    assert!(outcomes[..10].iter().all(|outcome| count(outcome) == 1));
    assert!(outcomes[10..20].iter().all(|outcome| count(outcome) == 0));
    assert!(outcomes[20..].iter().all(|outcome| count(outcome) == 1));
    for (id, expected) in [
        (24, "old"),
        (25, "put"),
        (34, "put"),
        (15, "old"),
        (55, "kept"),
    ] {
        assert_eq!(bed.seen("t", id).await.unwrap()[1], expected.into(), "{id}");
    }
}

pub(crate) async fn an_update_that_changes_nothing_counts(mut bed: Bed) {
    thirty(&mut bed).await;
    let set = update("t", &["a"]);
    let units: Vec<Unit> = (20..40).map(|id| set.of(row!["old", id])).collect();
    for size in [1, 20] {
        for (id, outcome) in (20..).zip(bed.outcomes(&units[..size]).await) {
            assert_eq!(count(&outcome), u64::from(id < 30), "{id}");
        }
    }
}
