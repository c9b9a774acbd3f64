//! Upserts, updates, deletes and reads by key, and what writes give back, alone and joined.

use windrow_core::{FaultClass, Rung, Unit, Value};

use crate::row;
use crate::support::*;

const TABLE: &str = "
create table t (id int primary key, a text, n int not null default 0);
insert into t select seq, concat('old', seq), seq from seq_1_to_100";

fn counts(report: windrow_core::Report) -> Vec<u64> {
    let told = report.verdicts.into_iter().map(told);
    told.map(|outcome| outcome.unwrap()[0].rows).collect()
}

#[tokio::test]
async fn updates_and_deletes_by_key_count_for_themselves() {
    let mut bed = Bed::new(TABLE).await;
    let set = update("t", &["a"]).shape();
    let drop = delete("t").shape();
    let mut units: Vec<Unit> = (90..=110).map(|id| unit(&set, row!["new", id])).collect();
    units.extend((0..10).map(|id| unit(&drop, row![id])));
    let report = bed.run(&units).await;
    assert_eq!(rung(&report, Rung::Fused), 31, "{:?}", report.tally);
    let mut expected = vec![1; 11];
    expected.extend([0; 10]);
    expected.push(0);
    expected.extend([1; 9]);
    assert_eq!(counts(report), expected);
    assert_eq!(bed.sql("select count(*), sum(a = 'new') from t"), "91|11");
}

#[tokio::test]
async fn a_row_that_an_update_finds_counts_though_it_changes_nothing() {
    let mut bed = Bed::new(TABLE).await;
    let set = update("t", &["n"]).shape();
    let same: Vec<Unit> = (1..=20).map(|id| unit(&set, row![id, id])).collect();
    assert_eq!(counts(bed.run(&same).await), [1; 20]);
    assert_eq!(counts(bed.run(&same[..1]).await), [1]);
    assert_eq!(counts(bed.run(&[unit(&set, row![1, 1000])]).await), [0]);
}

#[tokio::test]
async fn upserts_insert_or_update_and_ignores_say_which() {
    let mut bed = Bed::new(TABLE).await;
    let put = insert("t", &["id", "a"]).upsert().shape();
    let keep = insert("t", &["id", "a"]).ignore().shape();
    let bare = insert("t", &["id"]).upsert().shape();
    let mut units: Vec<Unit> = (95..105).map(|id| unit(&put, row![id, "put"])).collect();
    let keeps = (1..10).chain(200..205);
    units.extend(keeps.map(|id| unit(&keep, row![id, "kept"])));
    units.extend((50..56).map(|id| unit(&bare, row![id])));
    let report = bed.run(&units).await;
    // Statements have a power of two of rows; one that is left over goes by itself.
    assert!(rung(&report, Rung::Fused) >= 29, "{:?}", report.tally);
    let told = counts(report);
    assert_eq!(told[..10], [1; 10]);
    assert_eq!(told[10..19], [0; 9]);
    assert_eq!(told[19..], [1; 11]);
    let ask = "select sum(a = 'put'), sum(a = 'kept'), count(*) from t";
    assert_eq!(bed.sql(ask), "10|5|109");
    for (shape, expected) in [(&put, [1, 1]), (&keep, [0, 1]), (&bare, [1, 1])] {
        for (id, rows) in [300, 301].into_iter().zip(expected) {
            let row = if shape.columns.len() == 1 {
                row![id]
            } else {
                row![id, "x"]
            };
            bed.sql(&format!(
                "delete from t where id = 301; insert ignore into t (id) values ({})",
                300
            ));
            assert_eq!(
                counts(bed.run(&[unit(shape, row)]).await),
                [rows],
                "{shape:?} {id}"
            );
        }
    }
}

#[tokio::test]
async fn an_ignore_swallows_its_own_conflict_and_nothing_else() {
    let mut bed = Bed::new(
        "create table t (id int primary key, mail varchar(20) unique, n tinyint check (n < 50));
         insert into t values (1, 'one', 1), (2, 'two', 2)",
    )
    .await;
    let keep = insert("t", &["id", "mail", "n"]).ignore().shape();
    let rows = [
        row![1, "new", 1],
        row![3, "two", 1],
        row![4, "four", 60],
        row![5, "five", 1000],
        row![6, None::<&str>, 1],
    ];
    let check = |outcomes: Vec<windrow_core::UnitOutcome>| {
        assert_eq!(outcomes[0].as_ref().unwrap()[0].rows, 0);
        assert_eq!(fault(&outcomes[1]).constraint(), Some("mail"));
        assert_eq!(fault(&outcomes[2]).class, FaultClass::Check);
        assert_eq!(fault(&outcomes[3]).class, FaultClass::Value);
        assert_eq!(outcomes[4].as_ref().unwrap()[0].rows, 1);
    };
    let units: Vec<Unit> = rows.iter().map(|row| unit(&keep, row.clone())).collect();
    check(bed.outcomes(&units).await);
    bed.sql("delete from t where id = 6");
    let mut alone = Vec::new();
    for unit in &units {
        alone.extend(bed.outcomes(std::slice::from_ref(unit)).await);
    }
    check(alone);
}

#[tokio::test]
async fn an_upsert_never_changes_a_row_that_it_meets_by_another_key() {
    let mut bed = Bed::new(
        "create table t (id int primary key, mail varchar(20) unique, n int);
         insert into t values (1, 'one', 1), (2, 'two', 2)",
    )
    .await;
    let put = insert("t", &["id", "mail", "n"]).upsert().shape();
    let by_mail = insert("t", &["id", "mail", "n"])
        .upsert()
        .key(&["mail"])
        .shape();
    let units = [
        unit(&put, row![1, "uno", 10]),
        unit(&put, row![3, "two", 30]),
        unit(&put, row![4, "four", 40]),
        unit(&by_mail, row![5, "five", 50]),
        unit(&by_mail, row![1, "two", 20]),
    ];
    let outcomes = bed.outcomes(&units).await;
    assert_eq!(outcomes[0].as_ref().unwrap()[0].rows, 1);
    assert_eq!(fault(&outcomes[1]).constraint(), Some("mail"));
    assert!(outcomes[2].is_ok() && outcomes[3].is_ok());
    assert_eq!(fault(&outcomes[4]).constraint(), Some("PRIMARY"));
    assert_eq!(
        bed.sql("select * from t order by id"),
        "1|uno|10\n2|two|2\n4|four|40\n5|five|50"
    );
}

#[tokio::test]
async fn n_writes_to_one_row_are_n_writes() {
    let mut bed = Bed::new(TABLE).await;
    let put = insert("t", &["id", "a"]).upsert().shape();
    let set = update("t", &["a"]).shape();
    let units: Vec<Unit> = (0..60)
        .map(|n| match n % 3 {
            0 => unit(&put, row![1000, format!("put {n}")]),
            _ => unit(&set, row![format!("set {n}"), 1000]),
        })
        .collect();
    let dones = bed.succeed(&units).await;
    assert!(dones.iter().all(|done| done.rows == 1));
    assert_eq!(bed.sql("select a from t where id = 1000"), "set 59");
}

#[tokio::test]
async fn each_gets_its_own_rows_back() {
    let mut bed = Bed::new(TABLE).await;
    let shapes = [
        (insert("t", &["id", "a"]).upsert().all().shape(), true),
        (update("t", &["a"]).returning(&["a", "id"]).shape(), false),
        (delete("t").returning(&["id"]).shape(), false),
    ];
    for (shape, inserts) in &shapes {
        let row = |id: i32| match shape.columns.len() {
            0 => row![id],
            _ if *inserts => row![id, format!("new{id}")],
            _ => row![format!("new{id}"), id],
        };
        for alone in [false, true] {
            let ids: Vec<i32> = if alone {
                vec![30]
            } else {
                (20..29).rev().collect()
            };
            let units: Vec<Unit> = ids.iter().map(|id| unit(shape, row(*id))).collect();
            for (id, done) in ids.iter().zip(bed.succeed(&units).await) {
                let returned = done.returned.unwrap();
                assert_eq!((done.rows, returned.rows.len()), (1, 1));
                assert!(
                    returned.rows[0].contains(&Value::from(*id)),
                    "{shape:?} {returned:?}"
                );
            }
        }
    }
    let read = get("t").shape();
    let ids = [1, 500, 99, 25, 1, 99];
    let units: Vec<Unit> = ids.iter().map(|id| unit(&read, row![*id])).collect();
    let rows: Vec<u64> = bed.succeed(&units).await.iter().map(|d| d.rows).collect();
    assert_eq!(rows, [1, 0, 1, 0, 1, 1]);
}

#[tokio::test]
async fn keys_of_several_columns_and_of_texts_find_their_rows() {
    let mut bed = Bed::new(
        "create table t (a int, b varchar(20), c datetime(3), v int, primary key (a, b, c)) collate utf8mb4_general_ci;
         create table bin (k binary(2) primary key, v int)",
    )
    .await;
    let put = insert("t", &["a", "b", "c", "v"]).shape();
    let at = "2020-01-01T00:00:00.250Z";
    let units: Vec<Unit> = (0..20)
        .map(|n| unit(&put, row![n % 4, format!("Key{n}"), at, n]))
        .collect();
    bed.succeed(&units).await;
    let set = update("t", &["v"]).shape();
    let units: Vec<Unit> = (0..20)
        .map(|n| unit(&set, row![n + 100, n % 4, format!("kEY{n}"), at]))
        .collect();
    let report = bed.run(&units).await;
    assert_eq!(rung(&report, Rung::Fused), 20, "{report:?}");
    assert_eq!(counts(report), [1; 20]);
    assert_eq!(bed.sql("select min(v), max(v) from t"), "100|119");
    let drop = delete("t").shape();
    let units: Vec<Unit> = (0..25)
        .map(|n| unit(&drop, row![n % 4, format!("KEY{n}"), at]))
        .collect();
    let report = bed.run(&units).await;
    assert_eq!(rung(&report, Rung::Fused), 25, "{report:?}");
    assert_eq!(counts(report)[18..], [1, 1, 0, 0, 0, 0, 0]);
    let put = insert("bin", &["k", "v"]).upsert().shape();
    let units: Vec<Unit> = (0..6_u8)
        .map(|n| unit(&put, row![vec![n, 255], i32::from(n)]))
        .collect();
    bed.succeed(&units).await;
    let set = update("bin", &["v"]).shape();
    let units: Vec<Unit> = (0..6_u8)
        .map(|n| unit(&set, row![9, vec![n, 255]]))
        .collect();
    let report = bed.run(&units).await;
    assert_eq!(rung(&report, Rung::Fused), 6, "{report:?}");
    assert_eq!(counts(report), [1; 6]);
}

#[tokio::test]
async fn letters_that_are_equal_to_the_server_are_never_told_apart_here() {
    let mut bed =
        Bed::new("create table t (k varchar(20) primary key, v int) collate utf8mb4_unicode_ci")
            .await;
    let put = insert("t", &["k", "v"]).shape();
    let names = ["straße", "STRASSE", "é", "E", "e", "a"];
    let units: Vec<Unit> = names
        .iter()
        .map(|name| unit(&put, row![*name, 1]))
        .collect();
    let outcomes = bed.outcomes(&units).await;
    let won: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(won, [true, false, true, false, false, true]);
    let set = update("t", &["v"]).shape();
    let units: Vec<Unit> = names
        .iter()
        .zip(10..)
        .map(|(name, v)| unit(&set, row![v, *name]))
        .collect();
    assert_eq!(counts(bed.run(&units).await), [1; 6]);
    assert_eq!(
        bed.sql("select group_concat(v order by v) from t"),
        "11,14,15"
    );
}

#[tokio::test]
async fn a_key_that_is_no_number_finds_no_row_by_accident() {
    let mut bed =
        Bed::new("create table t (id int primary key, v int); insert into t values (0, 0), (7, 7)")
            .await;
    let drop = delete("t").shape();
    let outcomes = bed
        .outcomes(&[
            unit(&drop, row!["abc"]),
            unit(&drop, vec![number("7.5")]),
            unit(&drop, row![None::<i32>]),
            unit(&drop, row!["7"]),
        ])
        .await;
    assert_eq!(fault(&outcomes[0]).class, FaultClass::Value);
    let rows: Vec<u64> = outcomes[1..]
        .iter()
        .map(|o| o.as_ref().unwrap()[0].rows)
        .collect();
    assert_eq!(rows, [0, 0, 1]);
    assert_eq!(bed.sql("select id from t"), "0");
}
