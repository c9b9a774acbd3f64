//! Every write counts its own rows.

use windrow_core::{RowWrite, Unit};

use crate::bed::Bed;
use crate::words::*;

/// Rows 0 to 29.
async fn thirty(bed: &mut Bed) {
    bed.lay(&[plain()]).await;
    let put = insert("t", &["id", "a"]);
    let units: Vec<Unit<RowWrite>> = (0..30).map(|id| put.of(row![id, "old"])).collect();
    bed.succeed(&units).await;
}

pub(crate) async fn missing_rows_count_nothing(mut bed: Bed) {
    thirty(&mut bed).await;
    let (set, drop) = (update("t", &["a"]), delete("t"));
    let mut units: Vec<Unit<RowWrite>> = (20..40).map(|id| set.of(row!["new", id])).collect();
    units.extend((0..60).step_by(3).map(|id| drop.of(row![id])));
    for size in [1, 40] {
        // One alone, then all of them.
        let outcomes = bed.outcomes(&units[..size]).await;
        for (unit, outcome) in units.iter().zip(&outcomes) {
            let write = &unit.work()[0];
            let windrow_core::Value::Int(id) = write.key_values()[0] else {
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
    let mut units: Vec<Unit<RowWrite>> = (25..35).map(|id| put.of(row![id, "put", id])).collect();
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
