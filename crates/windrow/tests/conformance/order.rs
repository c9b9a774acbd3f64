//! Writes to one row, one after another.

use windrow_core::{RowWrite, Unit};

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

pub(crate) async fn a_success_is_seen_by_everybody(mut bed: Bed) {
    bed.lay(&[plain()]).await;
    let put = insert("t", &["id", "a"]);
    for size in [1, 5, 100] {
        let units: Vec<Unit<RowWrite>> = (0..size)
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
