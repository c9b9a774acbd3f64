//! Every operation, and the keys it works by.

use windrow_core::{FaultClass, Unit, Value};

use crate::support::*;

const THINGS: &str = "id BIGINT PRIMARY KEY, name TEXT, n BIGINT";

#[tokio::test]
async fn insert_update_delete_and_get() {
    let mut bed = Bed::new(THINGS).await;
    let insert = bed.insert(&["id", "name"]);
    let update = bed.update(&["name"]);
    let units = [
        insert.unit([1.into(), "a".into()]),
        insert.unit(["2".into(), "b".into()]),
        update.unit(["z".into(), 2.into()]),
        update.unit(["z".into(), 3.into()]),
        update.unit(["z".into(), Value::Null]),
        bed.update(&[]).unit([1.into()]),
        bed.update(&[]).unit([9.into()]),
        bed.get().unit(["2".into()]),
        bed.get().returning(&["name", "id"]).unit([1.into()]),
        bed.get().unit([7.into()]),
        bed.delete().unit([1.into()]),
        bed.delete().unit([1.into()]),
    ];
    let outcomes = bed.outcomes(&units).await;
    assert_eq!(
        brief(&outcomes),
        ["1", "1", "1", "0", "0", "1", "0", "1", "1", "0", "1", "0"]
    );
    let gave = |i: usize| returned(&outcomes[i].as_ref().unwrap()[0]);
    assert_eq!(gave(7), vec![vec![2.into(), "z".into(), Value::Null]]);
    assert_eq!(gave(8), vec![vec!["a".into(), 1.into()]]);
    assert_eq!(gave(9), Vec::<Vec<Value>>::new());
    assert_eq!(bed.count().await, 1);
}

#[tokio::test]
async fn conflicts_are_told_ignored_or_overwritten() {
    let mut bed = Bed::new(THINGS).await;
    let (insert, names) = (bed.insert(&["id", "name"]), ["id", "name"]);
    let units = [
        insert.unit([1.into(), "a".into()]),
        insert.unit([1.into(), "b".into()]),
        bed.insert(&names).ignore().unit([1.into(), "c".into()]),
        bed.insert(&names).ignore().unit([2.into(), "c".into()]),
        bed.insert(&names).upsert().unit([1.into(), "d".into()]),
        bed.insert(&names)
            .upsert()
            .key(&["id"])
            .unit([3.into(), "d".into()]),
        bed.insert(&["id"]).upsert().unit([3.into()]),
        bed.insert(&names)
            .upsert()
            .key(&["name"])
            .unit([3.into(), "x".into()]),
    ];
    let outcomes = bed.outcomes(&units).await;
    assert_eq!(
        brief(&outcomes),
        ["1", "23505", "0", "1", "1", "1", "1", "42P10"]
    );
    let duplicate = fault(&outcomes[1]);
    assert_eq!(duplicate.class, FaultClass::Unique);
    assert_eq!(
        &*duplicate.message,
        "DuplicateKeyException[A document with the same primary key exists already]"
    );
    assert!(duplicate.detail().unwrap().contains("4091"));
    let get = bed.get().returning(&["name"]);
    let done = bed.one(get.unit([1.into()])).await.unwrap();
    assert_eq!(returned(&done), vec![vec!["d".into()]]);
}

#[tokio::test]
async fn what_a_write_gives_back_is_its_own() {
    let mut bed = Bed::new(THINGS).await;
    let insert = bed.insert(&["id", "n"]).returning(&["n", "id"]);
    let units = insert.units((0..5).map(|n| [n.into(), (n * 10).into()]));
    for (n, outcome) in (0..5).zip(bed.outcomes(&units).await) {
        assert_eq!(
            returned(&outcome.unwrap()[0]),
            vec![vec![(n * 10).into(), n.into()]]
        );
    }
    let update = bed.update(&["name"]).all().unit(["x".into(), 3.into()]);
    let done = bed.one(update).await.unwrap();
    assert_eq!(returned(&done), vec![vec![3.into(), "x".into(), 30.into()]]);
    let delete = bed.delete().returning(&["id"]).unit([3.into()]);
    assert_eq!(
        bed.one(delete).await.unwrap_err().class,
        FaultClass::Unsupported
    );
}

#[tokio::test]
async fn keys_of_several_columns_are_looked_up_together() {
    let mut bed =
        Bed::new("id TEXT, at TIMESTAMP WITH TIME ZONE, n BIGINT, PRIMARY KEY (id, at)").await;
    let insert = bed.insert(&["n", "at", "id"]);
    let at = |n: i32| format!("2020-01-01T00:{:02}:{:02}Z", n / 60, n % 60);
    let units = insert.units((0..200).map(|n| [n.into(), at(n).into(), "s".into()]));
    assert!(bed.outcomes(&units).await.iter().all(Result::is_ok));
    let get = bed.get().returning(&["n", "at"]);
    let mut units = get.units((0..200).map(|n| ["s".into(), at(n).into()]));
    units.push(get.unit(["s".into(), "2020-01-01T01:00:05+01".into()]));
    units.push(get.unit(["t".into(), at(0).into()]));
    let outcomes = bed.outcomes(&units).await;
    for n in 0..200 {
        let done = &outcomes[usize::try_from(n).unwrap()].as_ref().unwrap()[0];
        assert_eq!(returned(done), vec![vec![n.into(), at(n).into()]]);
    }
    assert_eq!(brief(&outcomes[200..]), ["1", "0"]);
}

#[tokio::test]
async fn what_makes_no_sense_is_named() {
    let mut bed = Bed::new(THINGS).await;
    let get = bed.get();
    let fault = bed.one(get.unit([1.into(), 2.into()])).await.unwrap_err();
    assert!(
        fault.message.contains("(id): 1 values are needed, 2 given"),
        "{fault}"
    );
    let twice = bed.insert(&["id", "id"]).unit([1.into(), 2.into()]);
    assert_eq!(&*bed.one(twice).await.unwrap_err().code, "42701");
    let several = Unit::of([
        bed.insert(&["id"]).write([1.into()]),
        bed.insert(&["id"]).write([2.into()]),
    ]);
    let fault = bed.one(several).await.unwrap_err();
    assert_eq!(
        (fault.class, &*fault.code),
        (FaultClass::Unsupported, "0A000")
    );
    assert!(fault.message.contains("no transactions"), "{fault}");
    let outcomes = bed.outcomes(&[Unit::of([])]).await;
    assert_eq!(outcomes[0].as_ref().unwrap().len(), 0);
    assert_eq!(bed.count().await, 0);
}

#[tokio::test]
async fn names_are_never_sql() {
    let mut bed = Bed::new("id BIGINT PRIMARY KEY, \"a\"\"; DROP TABLE x; --\" TEXT").await;
    let name = "a\"; DROP TABLE x; --";
    let insert = bed.insert(&["id", name]).returning(&[name]);
    let done = bed
        .one(insert.unit([1.into(), "v'\"?".into()]))
        .await
        .unwrap();
    assert_eq!(returned(&done), vec![vec!["v'\"?".into()]]);
}
