//! Upserts, updates, deletes and reads by key, and what writes give back, alone and joined.

use windrow_core::{FaultClass, Rung, Unit, Value};

use crate::support::*;
use windrow_testkit::mariadb::{has_type, shared};
use windrow_testkit::row;

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

/// The same of every operation, under collations that differ in what they take for equal.
#[tokio::test]
async fn in_one_batch_keys_are_as_equal_as_their_collation_has_them() {
    let names = [
        "straße", "STRASSE", "é", "E", "e ", "e", "ﬀ", "ff", "a\u{308}", "ä",
    ];
    let mut bed = Bed::new("select 1").await;
    // Those that take blanks at the end for a part of the text have other names on MySQL.
    let [exact, nopad] = match server(&bed).0 {
        true => ["utf8mb4_nopad_bin", "utf8mb4_unicode_520_nopad_ci"],
        false => ["utf8mb4_0900_bin", "utf8mb4_0900_ai_ci"],
    };
    for collation in [
        "utf8mb4_bin",
        exact,
        "utf8mb4_general_ci",
        "utf8mb4_unicode_520_ci",
        nopad,
        "utf8mb4_german2_ci",
        "utf8mb4_swedish_ci",
    ] {
        for how in 0..6 {
            let mut told = Vec::new();
            for together in [false, true] {
                bed.sql(&format!(
                    "drop table if exists t; create table t (k varchar(20) primary key, v int) collate {collation}"
                ));
                bed.executor = bed.connect().await;
                let shape = match how {
                    0 => insert("t", &["v", "k"]).shape(),
                    1 => insert("t", &["v", "k"]).ignore().shape(),
                    2 => insert("t", &["v", "k"]).upsert().shape(),
                    3 => update("t", &["v"]).shape(),
                    4 => delete("t").shape(),
                    _ => delete("t").all().shape(),
                };
                if how > 2 {
                    let some = "('straße', 0), ('E', 0), ('ff', 0), ('ä', 0)";
                    bed.sql(&format!("insert into t values {some}"));
                }
                let row = |n: i32, name: &str| match how > 3 {
                    true => row![name],
                    false => row![n, name],
                };
                let units = (0..20).zip(names.iter().cycle());
                let mut units: Vec<Unit> = units.map(|(n, k)| unit(&shape, row(n, k))).collect();
                for unit in &mut units {
                    unit.hand_over(windrow_core::SourceId(1));
                }
                let mut outcomes = Vec::new();
                for batch in units.chunks(if together { 20 } else { 1 }) {
                    outcomes.extend(bed.outcomes(batch).await);
                }
                let shown = outcomes.iter().map(|outcome| match outcome {
                    Ok(dones) => format!("{dones:?}"),
                    Err(_) => fault(outcome).code.to_string(),
                });
                let shown: Vec<String> = shown.collect();
                told.push((shown, bed.sql("select hex(k), v from t order by hex(k)")));
            }
            assert_eq!(told[1], told[0], "{collation}, {how}");
        }
    }
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

#[tokio::test]
async fn an_ignore_has_its_values_judged_in_company_as_alone() {
    let mut bed = Bed::new(
        "create table t (id int primary key, v varchar(3), n int, must int not null, e enum('a', 'b'),
           check (n < 10));
         insert into t values (1, 'x', 1, 1, 'a'), (2, 'x', 1, 1, 'a'), (3, 'x', 1, 1, 'a'), (4, 'x', 1, 1, 'a')",
    )
    .await;
    let keep = insert("t", &["id", "v", "n", "must", "e"]).ignore().shape();
    let lacks = insert("t", &["id", "v"]).ignore().shape();
    let codes = |outcomes: Vec<windrow_core::UnitOutcome>| -> Vec<String> {
        let code = |outcome: &windrow_core::UnitOutcome| match outcome {
            Ok(dones) => dones[0].rows.to_string(),
            Err(fault) => fault.fault.code.to_string(),
        };
        outcomes.iter().map(code).collect()
    };
    let units = [
        unit(&keep, row![1, "ok", 1, 1, "a"]),
        unit(&keep, row![2, "too long", 1, 1, "a"]),
        unit(&keep, row![3, "ok", 10, 1, "a"]),
        unit(&keep, row![4, "ok", 1, 1, "z"]),
        unit(&keep, row![9, "ok", 1, 1, "b"]),
        unit(&keep, row![1, "ok", "word", 1, "a"]),
        unit(&keep, row![2, "ok", 1, 2, "a"]),
        unit(&keep, row![3, "ok", 1, None::<i32>, "a"]),
        unit(&lacks, row![1, "ok"]),
        unit(&lacks, row![2, "ok"]),
        unit(&keep, row![2, "ok", 2, 2, "b"]),
        unit(&keep, row![3, "ok", 3, 2, "b"]),
    ];
    let expected = [
        "0", "22001", "23514", "22P02", "1", "22P02", "0", "23502", "23502", "23502", "0", "0",
    ];
    let together = bed.outcomes(&units).await;
    assert_eq!(codes(together), expected);
    bed.sql("delete from t where id = 9");
    let mut alone = Vec::new();
    for unit in &units {
        alone.extend(bed.outcomes(std::slice::from_ref(unit)).await);
    }
    assert_eq!(codes(alone), expected);
    assert_eq!(
        bed.sql("select count(*), max(n), max(must) from t"),
        "5|1|1"
    );
}

/// The server warns of such a row once, as it does of one that is merely there.
#[tokio::test]
async fn rows_that_are_there_and_violate_a_check_are_refused_in_company_as_alone() {
    for (table, bad) in [
        (
            "create table t (id int primary key, n int check (n < 10))",
            10.into(),
        ),
        (
            "create table t (id int primary key, n decimal(5,2))",
            "12abc".into(),
        ),
        ("create table t (id int primary key, n json)", "[".into()),
    ] {
        let mut bed = Bed::new(&format!(
            "{table}; insert into t (id) values (1), (2), (3), (4)"
        ))
        .await;
        let keep = insert("t", &["id", "n"]).ignore().shape();
        let units: Vec<Unit> = (1..=4)
            .map(|id| match (id % 2, &bad) {
                (0, Value::Text(text)) if &**text == "[" => unit(&keep, vec![id.into(), json("{")]),
                (0, bad) => unit(&keep, vec![id.into(), (*bad).clone()]),
                _ => unit(&keep, row![id, None::<i64>]),
            })
            .collect();
        let together = bed.outcomes(&units).await;
        for (id, outcome) in (1..).zip(together) {
            let alone = bed.outcomes(&units[id - 1..id]).await.remove(0);
            let code = |outcome: &windrow_core::UnitOutcome| match outcome {
                Ok(dones) => dones[0].rows.to_string(),
                Err(fault) => fault.fault.code.to_string(),
            };
            assert_eq!(code(&outcome), code(&alone), "{table}, {id}");
            assert_eq!(outcome.is_err(), id % 2 == 0, "{table}, {id}: {outcome:?}");
        }
    }
}

#[tokio::test]
async fn duplicates_that_are_ignored_are_judged_by_one_statement() {
    let mut bed = Bed::new(TABLE).await;
    let keep = insert("t", &["id", "a"]).ignore().shape();
    let units: Vec<Unit> = (1..=100).map(|id| unit(&keep, row![id, "again"])).collect();
    bed.run(&units).await;
    let report = bed.run(&units).await;
    assert_eq!(rung(&report, Rung::Fused), 100, "{:?}", report.tally);
    // MySQL is asked what it warned of.
    assert!(report.tally.round_trips <= 7, "{:?}", report.tally);
    assert_eq!(counts(report), [0; 100]);
}

/// A second unique key whose value no write gives: it is computed, or a trigger fills it, or it is
/// of another kind.
#[tokio::test]
async fn an_upsert_changes_no_row_that_it_meets_by_a_key_that_is_not_given() {
    for (table, key) in [
        ("v varchar(20), g varchar(20) as (lower(v)) unique", "g"),
        (
            "v varchar(20), g varchar(20) as (lower(v)) stored unique",
            "g",
        ),
        ("v varchar(20), unique p (v(3))", "p"),
        (
            "v varchar(20), h varchar(20) invisible default (lower(v)) unique",
            "h",
        ),
        ("v varchar(20), f varchar(20) unique", "f"),
    ] {
        let mut bed = Bed::new(&format!(
            "create table t (id int primary key, {table}, n int default 0)"
        ))
        .await;
        if key == "f" {
            bed.sql("create trigger fill before insert on t for each row set new.f = lower(new.v)");
        }
        bed.sql("insert into t (id, v) values (1, 'one'), (2, 'two')");
        let put = insert("t", &["id", "v"]).upsert().shape();
        let back = insert("t", &["id", "v"]).upsert().all().shape();
        let alone = bed.outcomes(&[unit(&put, row![9, "ONE"])]).await;
        assert_eq!(fault(&alone[0]).constraint(), Some(key), "{table}");
        for shape in [&put, &back] {
            let units: Vec<Unit> = [(1, "one"), (5, "TWO"), (6, "six"), (7, "sEVen"), (8, "Six")]
                .map(|(id, v)| unit(shape, row![id, v]))
                .into();
            let outcomes = bed.outcomes(&units).await;
            let won: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
            assert_eq!(
                won,
                [true, false, true, true, false],
                "{table}: {outcomes:?}"
            );
            assert_eq!(fault(&outcomes[1]).constraint(), Some(key), "{table}");
            let rows = bed.sql("select id, v from t order by id");
            assert_eq!(rows, "1|one\n2|two\n6|six\n7|sEVen", "{table}");
        }
    }
}

/// All that a key can be made of, met by an upsert: the row is changed, and its key stays as it is.
#[tokio::test]
async fn an_upsert_leaves_keys_of_every_type_as_they_are() {
    let any = shared().unwrap();
    for (kind, values) in [
        ("int", ["1", "-5", "7"]),
        ("decimal(5,2)", ["1.50", "-0.25", "100.00"]),
        ("double", ["0.1", "-1e100", "3"]),
        ("float", ["0.5", "0.1", "2"]),
        ("bit(9)", ["1", "256", "300"]),
        ("year", ["2001", "2002", "2003"]),
        ("date", ["2001-01-01", "2002-01-01", "2003-01-01"]),
        (
            "datetime(3)",
            [
                "2001-01-01T01:01:01.125",
                "2002-01-01T00:00:00",
                "2003-01-01T00:00:00",
            ],
        ),
        ("time(2)", ["01:01:01.25", "-10:00:00", "00:00:00"]),
        ("enum('x','y','z')", ["x", "y", "z"]),
        ("set('x','y','z')", ["x", "x,y", "z"]),
        ("char(5) character set latin1", ["x", "é", "xx"]),
        ("varchar(9) collate utf8mb4_bin", ["x", "X", "ß"]),
        ("varbinary(5)", ["AP8=", "AQ==", "eA=="]),
        (
            "uuid",
            [
                "00000000-0000-0000-0000-000000000001",
                "00000000-0000-0000-0000-000000000002",
                "00000000-0000-0000-0000-000000000003",
            ],
        ),
        ("inet6", ["::1", "::2", "::3"]),
    ] {
        if !has_type(any.url(), kind).unwrap() {
            continue;
        }
        let mut bed = Bed::new(&format!("create table t (k {kind} primary key, n int)")).await;
        let put = insert("t", &["k", "n"]).upsert().shape();
        let row = |k: &str, n: i32| match kind {
            "bit(9)" | "year" => unit(&put, vec![number(k), n.into()]),
            _ => unit(&put, row![k, n]),
        };
        let mut before = String::new();
        for n in [1, 2] {
            let units: Vec<Unit> = values.iter().map(|k| row(k, n)).collect();
            let dones = bed.succeed(&units).await;
            assert!(dones.iter().all(|done| done.rows == 1), "{kind}");
            let keys = bed.sql("select hex(k), cast(k as char) from t order by 1, 2");
            assert!(n == 1 || keys == before, "{kind}: {before} {keys}");
            before = keys;
            assert_eq!(bed.sql("select count(*), min(n) from t"), format!("3|{n}"));
        }
    }
}
