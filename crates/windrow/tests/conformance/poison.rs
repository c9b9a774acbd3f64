//! Each failure is told to its own write, and to no other.

use windrow_core::{FaultClass, Unit};

use crate::bed::Bed;
use crate::words::*;

pub(crate) async fn one_bad_row_among_many_fails_alone(mut bed: Bed) {
    bed.lay(&[plain()]).await;
    let put = insert("t", &["id", "a"]);
    bed.succeed(&[put.of(row![50, "first"])]).await;
    let mut units: Vec<Unit> = (0..200).map(|id| put.of(row![id, "row"])).collect();
    units.insert(120, insert("nowhere", &["id"]).of(row![1]));
    let outcomes = bed.outcomes(&units).await;
    for (at, outcome) in outcomes.iter().enumerate() {
        match at {
            50 => assert_eq!(class(outcome), FaultClass::Unique, "{outcome:?}"),
            120 => assert_eq!(class(outcome), FaultClass::NoTable, "{outcome:?}"),
            _ => assert_eq!(count(outcome), 1),
        }
    }
    assert_eq!(bed.seen("t", 50).await.unwrap()[1], "first".into());
    assert_eq!(bed.seen("t", 199).await.unwrap()[1], "row".into());
}

pub(crate) async fn nothing_but_bad_rows_are_all_told(mut bed: Bed) {
    bed.lay(&[plain()]).await;
    let put = insert("t", &["id", "a"]);
    let units: Vec<Unit> = (0..100).map(|id| put.of(row![id, "row"])).collect();
    bed.succeed(&units).await;
    let units: Vec<Unit> = (0..100).map(|id| put.of(row![id, "again"])).collect();
    for outcome in bed.outcomes(&units).await {
        assert_eq!(class(&outcome), FaultClass::Unique, "{outcome:?}");
    }
    assert_eq!(bed.seen("t", 0).await.unwrap()[1], "row".into());
}

pub(crate) async fn of_equal_rows_one_is_written(mut bed: Bed) {
    bed.lay(&[plain()]).await;
    let put = insert("t", &["id", "a"]);
    // Ten rows, three times each, and others between them.
    let units: Vec<Unit> = (0..60)
        .map(|n| match n % 2 {
            0 => put.of(row![n / 2 % 10, format!("{n}")]),
            _ => put.of(row![1000 + n, "other"]),
        })
        .collect();
    let outcomes = bed.outcomes(&units).await;
    for id in 0..10_usize {
        let tries: Vec<usize> = (0..60).filter(|n| n % 2 == 0 && n / 2 % 10 == id).collect();
        let (won, lost): (Vec<usize>, Vec<usize>) =
            tries.into_iter().partition(|n| outcomes[*n].is_ok());
        assert_eq!(
            (&*won, lost.len()),
            (&[id * 2][..], 2),
            "the first one wins"
        );
        for n in lost {
            assert_eq!(class(&outcomes[n]), FaultClass::Unique);
        }
        let id = i64::try_from(id).unwrap();
        assert_eq!(
            bed.seen("t", id).await.unwrap()[1],
            format!("{}", won[0]).into()
        );
    }
    assert!(
        outcomes
            .iter()
            .skip(1)
            .step_by(2)
            .all(|outcome| count(outcome) == 1)
    );
}
