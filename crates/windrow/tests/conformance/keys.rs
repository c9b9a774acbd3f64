//! Unique keys besides the primary key, and foreign keys.

use windrow_core::{FaultClass, Unit};

use crate::bed::Bed;
use crate::words::*;

/// `parent (id)` and `child (id, parent, mail)`.
pub(crate) async fn family(bed: &Bed) {
    let parent = table("parent", &[("id", Type::Int)]);
    let child = table("child", &[("id", Type::Int), ("parent", Type::Int)]).refers("parent");
    let unique = table("mails", &[("id", Type::Int), ("mail", Type::Int)])
        .must()
        .unique();
    bed.lay(&[parent, child, unique]).await;
}

pub(crate) async fn other_unique_keys_are_kept(mut bed: Bed) {
    family(&bed).await;
    let put = insert("mails", &["id", "mail"]);
    bed.succeed(&[put.of(row![0, 7])]).await;
    let units: Vec<Unit> = (1..40).map(|id| put.of(row![id, id])).collect();
    let outcomes = bed.outcomes(&units).await;
    for (id, outcome) in (1..).zip(&outcomes) {
        match id {
            7 => assert_eq!(class(outcome), FaultClass::Unique),
            _ => assert_eq!(count(outcome), 1),
        }
    }
    assert_eq!(bed.seen("mails", 7).await, None);
}

pub(crate) async fn a_named_key_names_one_row(mut bed: Bed) {
    bed.lay(&[plain()]).await;
    let put = insert("t", &["id", "n"]);
    bed.succeed(&[put.of(row![1, 7]), put.of(row![2, 7])]).await;
    let several = [
        delete("t").key(&["n"]).of(row![7]),
        update("t", &["n"]).key(&["n"]).of(row![8, 7]),
        get("t").key(&["n"]).of(row![7]),
        insert("t", &["id", "n"])
            .upsert()
            .key(&["n"])
            .of(row![3, 7]),
    ];
    for outcome in bed.outcomes(&several).await {
        let fault = fault(&outcome);
        assert_eq!((fault.class, &*fault.code), (FaultClass::NoColumn, "42P10"));
    }
    for id in [1, 2] {
        let row = bed.seen("t", id).await.unwrap();
        assert!(row.contains(&7.into()), "{row:?}");
    }
    let named = [
        update("t", &["n"]).key(&["id"]).of(row![8, 1]),
        delete("t").key(&["id"]).of(row![2]),
    ];
    for outcome in bed.outcomes(&named).await {
        assert_eq!(count(&outcome), 1);
    }
}

pub(crate) async fn foreign_keys_are_kept(mut bed: Bed) {
    family(&bed).await;
    bed.succeed(&[insert("parent", &["id"]).of(row![1])]).await;
    let put = insert("child", &["id", "parent"]);
    let units: Vec<Unit> = (0..40)
        .map(|id| put.of(row![id, if id == 30 { 99 } else { 1 }]))
        .collect();
    let outcomes = bed.outcomes(&units).await;
    for (id, outcome) in outcomes.iter().enumerate() {
        match id {
            30 => assert_eq!(class(outcome), FaultClass::ForeignKey),
            _ => assert_eq!(count(outcome), 1),
        }
    }
    let drop = bed
        .outcomes(&[delete("parent").of(row![1])])
        .await
        .remove(0);
    assert_eq!(class(&drop), FaultClass::ForeignKey);
    assert!(bed.seen("parent", 1).await.is_some());
}
