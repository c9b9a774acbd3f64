//! What comes back is the write's own.

use std::collections::HashSet;

use windrow_core::{Unit, Value};

use crate::bed::Bed;
use crate::words::*;

pub(crate) async fn generated_keys_go_to_their_own_write(mut bed: Bed) {
    bed.lay(&[table("s", &[("id", Type::Serial), ("a", Type::Text)])])
        .await;
    let put = insert("s", &["a"]).returning(&["id", "a"]);
    let mut ids = HashSet::new();
    for size in [1, 3, 60] {
        let units: Vec<Unit> = (0..size)
            .map(|n| put.of(row![format!("{size}/{n}")]))
            .collect();
        for (n, outcome) in bed.outcomes(&units).await.iter().enumerate() {
            let mut row = rows(done(outcome)).remove(0);
            let own = Value::from(format!("{size}/{n}"));
            assert_eq!((done(outcome).rows, &row[1]), (1, &own));
            let id = row.remove(0);
            assert!(ids.insert(id.clone()), "twice: {id:?}");
            assert_eq!(bed.seen("s", id).await.unwrap()[1], own);
        }
    }
}

pub(crate) async fn what_comes_back_is_its_own(mut bed: Bed) {
    bed.lay(&[plain()]).await;
    let fill = insert("t", &["id", "a", "n"]);
    let units: Vec<Unit> = (0..20)
        .map(|id| fill.of(row![id, "old", id * 10]))
        .collect();
    bed.succeed(&units).await;
    let put = insert("t", &["id", "a"])
        .upsert()
        .returning(&["id", "a", "n"]);
    let set = update("t", &["a"]).returning(&["id", "a", "n"]);
    let drop = delete("t").returning(&["id", "n"]);
    for id in [5, 6, 30] {
        // Alone first, then seven at a time.
        let first = bed.outcomes(&[put.of(row![id, "alone"])]).await.remove(0);
        let n = if id < 20 {
            Value::from(id * 10)
        } else {
            Value::Null
        };
        assert_eq!(rows(done(&first)), [[id.into(), "alone".into(), n]]);
    }
    let mut units: Vec<Unit> = (0..7).map(|id| put.of(row![id, "put"])).collect();
    units.extend((7..14).map(|id| set.of(row!["set", id])));
    units.extend((14..21).map(|id| drop.of(row![id])));
    let outcomes = bed.outcomes(&units).await;
    for (id, outcome) in outcomes.iter().enumerate() {
        let id = i64::try_from(id).unwrap();
        let expected = match id {
            0..7 => vec![row![id, "put", id * 10]],
            7..14 => vec![row![id, "set", id * 10]],
            20 => vec![],
            _ => vec![row![id, id * 10]],
        };
        assert_eq!(rows(done(outcome)), expected);
        assert_eq!(usize::try_from(count(outcome)).unwrap(), expected.len());
    }
    let alone = [
        (set.of(row!["alone", 8]), vec![row![8, "alone", 80]]),
        (set.of(row!["alone", 99]), vec![]),
        (drop.of(row![9]), vec![row![9, 90]]),
        (drop.of(row![9]), vec![]),
    ];
    for (unit, expected) in alone {
        let outcome = bed.outcomes(&[unit]).await.remove(0);
        assert_eq!(rows(done(&outcome)), expected);
    }
    let keep = insert("t", &["id", "a"]).ignore().returning(&["id", "a"]);
    let units: Vec<Unit> = (6..9)
        .chain(40..43)
        .map(|id| keep.of(row![id, "kept"]))
        .collect();
    for (at, outcome) in bed.outcomes(&units).await.iter().enumerate() {
        // An ignored row does not come back.
        let id = i64::try_from(at).unwrap() + 37;
        let expected = if at < 3 {
            vec![]
        } else {
            vec![row![id, "kept"]]
        };
        assert_eq!(rows(done(outcome)), expected);
    }
}

pub(crate) async fn reads_give_each_its_row(mut bed: Bed) {
    bed.lay(&[plain()]).await;
    let put = insert("t", &["id", "a", "n"]);
    let units: Vec<Unit> = (0..20)
        .map(|id| put.of(row![id, format!("row {id}"), -id]))
        .collect();
    bed.succeed(&units).await;
    // Of eighty reads, each row is read twice.
    for size in [1, 4, 80] {
        let units: Vec<Unit> = (0..size)
            .map(|n| get("t").of(row![(n * 7 + 3) % 40]))
            .collect();
        for (n, outcome) in (0..size).zip(bed.outcomes(&units).await) {
            let id = (n * 7 + 3) % 40;
            let found = rows(done(&outcome));
            assert_eq!(count(&outcome), u64::from(id < 20));
            if id < 20 {
                assert_eq!(found, [row![id, format!("row {id}"), -id]]);
            } else {
                assert!(found.is_empty());
            }
        }
    }
}
