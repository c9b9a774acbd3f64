//! Every type keeps its values exactly, by one statement and by many.

use windrow_core::{FaultClass, Rung, Unit, Value};

use crate::support::*;
use windrow_testkit::mariadb::{has_type, shared};
use windrow_testkit::row;

/// A table with a column of each type. MySQL has no type for UUIDs.
async fn bed() -> Bed {
    let any = shared().unwrap();
    match has_type(any.url(), "uuid").unwrap() {
        true => Bed::new(TABLE).await,
        false => Bed::new(&TABLE.replace("u uuid", "u char(36)")).await,
    }
}

const TABLE: &str = "
create table t (
  id int primary key, i8 tinyint, u64 bigint unsigned, i64 bigint, flag boolean, d decimal(30,10), f float, x double,
  b bit(10), y year, day date, at datetime(6), stamp timestamp(3) null, span time(2),
  name varchar(20), fixed char(5), body longtext, e enum('one','two','3'), s set('a','b','c'), j json, `j``n` json,
  bin binary(4), vb varbinary(20), bb longblob, u uuid) character set utf8mb4";

/// A column, what is written, and what comes back.
fn cases() -> Vec<(&'static str, Value, Value)> {
    let same = |column, value: Value| (column, value.clone(), value);
    let long = "\u{1F33E}\u{1F33E} é ' \" \\ ` \0 ; --";
    vec![
        same("i8", (-128).into()),
        same("u64", number("18446744073709551615")),
        (
            "u64",
            "18446744073709551615".into(),
            number("18446744073709551615"),
        ),
        same("i64", Value::Int(i64::MIN)),
        same("flag", true.into()),
        same("flag", 7.into()),
        (
            "d",
            number("12345678901234567890.0123456789"),
            number("12345678901234567890.0123456789"),
        ),
        ("d", number("1.5"), number("1.5000000000")),
        ("d", 3.into(), number("3.0000000000")),
        same("f", number("0.1")),
        same("x", number("0.1")),
        same("x", number("1.7976931348623157e308")),
        ("x", 3.into(), 3.into()),
        same("b", 1023.into()),
        ("b", "5".into(), 5.into()),
        same("y", 2026.into()),
        same("day", "2024-02-29".into()),
        same("at", "1999-12-31T23:59:59.999999".into()),
        (
            "at",
            "2020-01-01 00:00:00.5".into(),
            "2020-01-01T00:00:00.5".into(),
        ),
        (
            "at",
            "2020-01-01T01:00:00+01:00".into(),
            "2020-01-01T00:00:00".into(),
        ),
        same("stamp", "2013-01-01T06:00:00.125Z".into()),
        (
            "stamp",
            "2013-01-01T06:00:00+02:30".into(),
            "2013-01-01T03:30:00Z".into(),
        ),
        same("span", "-838:59:58.5".into()),
        same("name", "\u{1F33E} é".into()),
        ("name", 12.into(), "12".into()),
        ("name", true.into(), "true".into()),
        ("name", number("1.50"), "1.50".into()),
        same("body", long.into()),
        ("fixed", "ab".into(), "ab".into()),
        same("e", "two".into()),
        ("e", 3.into(), "3".into()),
        same("s", "a,c".into()),
        same("j", json("{\"a\": [1, \"\u{1F33E}\"]}")),
        same("j`n", json("{\"a\": [1]}")),
        ("j", "text".into(), json("\"text\"")),
        ("j", 5.into(), json("5")),
        same("bin", vec![0, 1, 2, 255].into()),
        ("vb", "AP8=".into(), vec![0, 255].into()),
        same("vb", Vec::new().into()),
        same("bb", vec![7; 300].into()),
        same("u", "123e4567-e89b-12d3-a456-426614174000".into()),
        same("u", Value::Null),
    ]
}

fn row_of(id: i32, value: &Value) -> Vec<Value> {
    vec![id.into(), value.clone()]
}

#[tokio::test]
async fn values_come_back_as_they_went_in() {
    let mut bed = bed().await;
    for (id, (column, given, back)) in (0..).zip(cases()) {
        let shape = insert("t", &["id", column]).shape();
        bed.succeed(&[unit(&shape, row_of(id, &given))]).await;
        let read = get("t").returning(&[column]).shape();
        let dones = bed.succeed(&[unit(&read, row![id])]).await;
        let returned = dones[0].returned.as_ref().unwrap();
        assert_eq!(returned.rows[0][0], back, "{column} {given:?}");
    }
}

#[tokio::test]
async fn by_one_statement_for_many_it_is_the_same() {
    let mut bed = bed().await;
    for (case, (column, given, back)) in (0..).zip(cases()) {
        let first = case * 10;
        let inserts = insert("t", &["id", column]).shape();
        let units: Vec<Unit> = (first..first + 4)
            .map(|id| unit(&inserts, row_of(id, &given)))
            .collect();
        let report = bed.run(&units).await;
        assert_eq!(
            rung(&report, Rung::Fused),
            4,
            "{column} {given:?} {report:?}"
        );
        let clear = update("t", &[column]).shape();
        let rows = (first..first + 4).map(|id| unit(&clear, row![None::<&str>, id]));
        bed.succeed(&rows.collect::<Vec<_>>()).await;
        let set = update("t", &[column]).shape();
        let units: Vec<Unit> = (first..first + 4)
            .map(|id| unit(&set, vec![given.clone(), id.into()]))
            .collect();
        let report = bed.run(&units).await;
        assert_eq!(
            rung(&report, Rung::Fused),
            4,
            "{column} {given:?} {report:?}"
        );
        let read = get("t").returning(&[column]).shape();
        let units: Vec<Unit> = (first..first + 4).map(|id| unit(&read, row![id])).collect();
        for done in bed.succeed(&units).await {
            assert_eq!(
                done.returned.unwrap().rows[0][0],
                back,
                "{column} {given:?}"
            );
        }
    }
}

#[tokio::test]
async fn what_is_not_given_is_the_default() {
    let mut bed = Bed::new(
        "create table t (id int primary key, a int default 5, at timestamp default current_timestamp, n int)",
    )
    .await;
    let shape = insert("t", &["id"]).returning(&["a", "n"]).shape();
    let units: Vec<Unit> = (0..5).map(|id| unit(&shape, row![id])).collect();
    for done in bed.succeed(&units).await {
        let expected: Box<[Value]> = vec![5.into(), Value::Null].into();
        assert_eq!(done.returned.unwrap().rows[0], expected);
    }
    assert_eq!(bed.sql("select count(*) from t where at is null"), "0");
}

#[tokio::test]
async fn what_does_not_fit_is_the_servers_error() {
    let mut bed = bed().await;
    let cases: Vec<(&str, Value, &str)> = vec![
        ("i8", 128.into(), "22003"),
        ("u64", (-1).into(), "22003"),
        ("u64", number("18446744073709551616"), "22003"),
        ("i64", "old".into(), "22P02"),
        ("d", number("123456789012345678901.5"), "22003"),
        ("x", number("1e400"), "22003"),
        ("b", 1024.into(), "22001"),
        ("day", "2023-02-29".into(), "22007"),
        ("at", "never".into(), "22007"),
        ("name", "x".repeat(21).into(), "22001"),
        ("name", vec![255, 254].into(), "22021"),
        ("e", "four".into(), "22P02"),
        ("b", number("1.5"), "22P02"),
        ("b", json("[]"), "22P02"),
        ("i64", vec![0, 255].into(), "22P02"),
        ("vb", "no base64!".into(), "22P02"),
    ];
    for (id, (column, value, code)) in (0..).zip(cases) {
        let shape = insert("t", &["id", column]).shape();
        let outcomes = bed.outcomes(&[unit(&shape, row_of(id, &value))]).await;
        let fault = fault(&outcomes[0]);
        assert_eq!(
            (fault.class, &*fault.code),
            (FaultClass::Value, code),
            "{column} {value:?}: {fault}"
        );
    }
    assert_eq!(bed.sql("select count(*) from t"), "0");
}

#[tokio::test]
async fn sessions_that_are_not_strict_stay_as_they_are() {
    let mut bed =
        Bed::new("create table t (id int primary key, n tinyint not null, name varchar(3))").await;
    bed.sql("set global sql_mode = ''");
    let mut executor = bed.connect().await;
    bed.sql("set global sql_mode = default");
    let shape = insert("t", &["id", "n", "name"]).shape();
    let mut units: Vec<Unit> = (0..10)
        .map(|id| unit(&shape, row![id, 1000, "long"]))
        .collect();
    // One row of one statement is refused here; among many it would become 0.
    units.push(unit(&shape, row![10, None::<i32>, "x"]));
    let verdicts = executor.execute(&units).await.verdicts;
    let outcomes: Vec<_> = verdicts.into_iter().map(told).collect();
    assert!(outcomes[..10].iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(fault(&outcomes[10]).class, FaultClass::NotNull);
    assert_eq!(
        bed.sql("select count(*), max(n), max(name) from t"),
        "10|127|lon"
    );
    bed.run(&[]).await;
}

/// Two floats, as both servers store them.
#[tokio::test]
async fn vectors_are_stored_and_come_back() {
    let probe = Bed::new("create table plain (id int primary key)").await;
    if server(&probe) < (false, (9, 0)) || server(&probe).0 && server(&probe).1 < (11, 7) {
        return;
    }
    let mut bed = Bed::new("create table t (id int primary key, e vector(2))").await;
    let vector = |n: i64| Value::from([(n as f32).to_le_bytes(), 0.1_f32.to_le_bytes()].concat());
    let (put, set) = (
        insert("t", &["id", "e"]).shape(),
        update("t", &["e"]).shape(),
    );
    let new: Vec<Unit> = (0..9)
        .map(|n| unit(&put, vec![n.into(), vector(n)]))
        .collect();
    let changed: Vec<Unit> = (0..9)
        .map(|n| unit(&set, vec![vector(n + 50), n.into()]))
        .collect();
    bed.succeed(&new[..1]).await;
    bed.succeed(&new[1..]).await;
    bed.succeed(&changed[..1]).await;
    bed.succeed(&changed[1..]).await;
    let read = get("t").shape();
    for n in 0..9 {
        let done = bed.one(unit(&read, row![n])).await.unwrap();
        assert_eq!(done.returned.unwrap().rows[0][1], vector(n + 50));
    }
    let bad = bed.one(unit(&put, row![99, "AAA="])).await.unwrap_err();
    assert_eq!(bad.class, FaultClass::Value, "{bad:?}");
}

/// A value, as it is sent and as a literal of SQL.
type Case = (Value, &'static str);

/// Columns, and values that a prepared statement of MySQL would store otherwise one behind the
/// other: it keeps the type that a value has made of a parameter.
fn following_each_other() -> Vec<(&'static str, &'static str, Vec<Case>)> {
    let whole = || {
        vec![
            (Value::from("2.5"), "'2.5'"),
            (Value::from(".5"), "'.5'"),
            (7.into(), "7"),
            (Value::from("1e-400"), "'1e-400'"),
            (
                Value::from("18446744073709551614.5"),
                "'18446744073709551614.5'",
            ),
            (Value::from("4.5"), "'4.5'"),
        ]
    };
    let long = "123456789012345678901234567890.0123456789";
    vec![
        ("n mediumint", "n", whole()),
        ("u bigint unsigned", "u", whole()),
        (
            "d decimal(40,10)",
            "d",
            vec![
                (Value::from(long), long),
                (5.into(), "5"),
                (Value::from("1e-400"), "'1e-400'"),
                (number("1e3"), "1e3"),
                (true.into(), "1"),
                (number(long), long),
            ],
        ),
        (
            "x double",
            "x",
            vec![
                (Value::from("0.1"), "'0.1'"),
                (1.into(), "1"),
                (number("1.7976931348623157e308"), "1.7976931348623157e308"),
                (Value::from("123456789.123456789"), "'123456789.123456789'"),
            ],
        ),
        (
            "b varbinary(20)",
            "b",
            vec![
                (vec![b'1', b'e', b'1'].into(), "'1e1'"),
                (5.into(), "5"),
                (vec![b'0', b'0', b'7'].into(), "'007'"),
                (true.into(), "1"),
                (vec![0, 255].into(), "x'00ff'"),
            ],
        ),
        (
            "y year",
            "y",
            vec![
                (Value::from("70"), "'70'"),
                (0.into(), "0"),
                (Value::from("0"), "'0'"),
                (Value::from("1e-400"), "'1e-400'"),
                (70.into(), "70"),
                (false.into(), "0"),
                (2026.into(), "2026"),
            ],
        ),
        (
            "k bit(24)",
            "k",
            vec![
                (5.into(), "5"),
                (vec![b'1', b'e', b'1'].into(), "'1e1'"),
                (true.into(), "1"),
                (vec![0, 7].into(), "7"),
            ],
        ),
        (
            "t varchar(20)",
            "t",
            vec![
                (Value::from("1e1"), "'1e1'"),
                (5.into(), "'5'"),
                (Value::from("007"), "'007'"),
            ],
        ),
    ]
}

#[tokio::test]
async fn a_value_is_stored_alike_whatever_came_before_it() {
    for (column, name, cases) in following_each_other() {
        let mut bed = Bed::new(&format!("create table t (id int primary key, {column})")).await;
        let put = insert("t", &["id", name]).shape();
        let set = update("t", &[name]).shape();
        let mut id = 0;
        let mut ids = |n: i32| {
            id += n;
            id - n..id
        };
        let forth = cases.iter().chain(&cases).chain(cases.iter().rev());
        for ((value, literal), joined) in forth.clone().zip([1, 4].into_iter().cycle()) {
            let check = async |bed: &mut Bed, units: Vec<Unit>, of: &str| {
                let outcomes = bed.outcomes(&units).await;
                // Another test changes the server's own mode for a moment.
                let alone = format!(
                    "set sql_mode = 'STRICT_ALL_TABLES'; replace into t values (-1, {literal})"
                );
                let fits = bed.database.exec(&alone).is_ok();
                assert!(
                    outcomes.iter().all(|outcome| outcome.is_ok() == fits),
                    "{column}: {value:?}: {outcomes:?}"
                );
                if !fits {
                    return;
                }
                let stored = bed.sql(&format!(
                    "select distinct hex(concat({name})) from t where id = -1 or id {of}"
                ));
                assert_eq!(stored.lines().count(), 1, "{column}: {value:?}: {stored}");
            };
            let new = ids(joined);
            let of = format!("between {} and {}", new.start, new.end - 1);
            let rows = new.clone().map(|id| unit(&put, row_of(id, value)));
            check(&mut bed, rows.collect(), &of).await;
            bed.sql(&format!("insert ignore into t (id) values ({})", new.start));
            let change = unit(&set, vec![value.clone(), new.start.into()]);
            check(&mut bed, vec![change], &format!("= {}", new.start)).await;
        }
    }
}

/// A number that came as a key makes no other key one.
#[tokio::test]
async fn bytes_are_keys_to_the_letter_whatever_came_before_them() {
    let mut bed = Bed::new(
        "create table t (k varbinary(9) primary key, v int); insert into t values ('10', 1), ('1e1', 2), ('7', 3)",
    )
    .await;
    let read = get("t").shape();
    let mut found = async |key: Value| {
        let done = bed.one(unit(&read, vec![key])).await.unwrap();
        done.returned
            .unwrap()
            .rows
            .first()
            .map(|row| row[1].clone())
    };
    assert_eq!(found(7.into()).await, Some(3.into()));
    assert_eq!(found(b"1e1".to_vec().into()).await, Some(2.into()));
    assert_eq!(found(b"007".to_vec().into()).await, None);
    assert_eq!(found(b"1e1".to_vec().into()).await, Some(2.into()));
}
