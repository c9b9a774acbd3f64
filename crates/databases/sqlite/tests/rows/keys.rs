//! A row is found by the key that it was written with, in a body and as a path spells it.

use proptest::prelude::*;
use windrow_core::{Unit, Value};
use windrow_database::Options;

use crate::support::*;

/// One of each affinity, those with a meaning of their own, and the same in STRICT tables and
/// without row numbers.
const KEYS: [(&str, &str); 20] = [
    ("", ""),
    ("ANY", " STRICT"),
    ("ANY", ""),
    ("INTEGER", ""),
    ("INT", ""),
    ("INT", " STRICT"),
    ("REAL", ""),
    ("REAL", " STRICT"),
    ("DOUBLE PRECISION", " WITHOUT ROWID"),
    ("NUMERIC", ""),
    ("DATE", " WITHOUT ROWID"),
    ("DECIMAL(10,2)", ""),
    ("TEXT", ""),
    ("TEXT COLLATE NOCASE", " STRICT"),
    ("VARCHAR(20)", " WITHOUT ROWID"),
    ("DECIMAL_TEXT", ""),
    ("BOOLEAN", ""),
    ("JSON", ""),
    ("BLOB", ""),
    ("BLOB", " STRICT"),
];

fn texts() -> impl Strategy<Value = String> {
    let odd = [
        "1",
        "1.0",
        "1.50",
        "-0",
        "0",
        "007",
        "+1",
        " 1 ",
        "1e3",
        "1e400",
        ".5",
        "true",
        "false",
        "null",
        "\"\"",
        "\"a\"",
        "a\"b",
        "[1]",
        "9007199254740993",
        "9007199254740993.5",
        "99999999999999999999",
        "aGk=",
        "1234",
        "NaN",
        "inf",
        "%2C",
    ];
    prop_oneof![
        3 => proptest::sample::select(odd.to_vec()).prop_map(str::to_owned),
        1 => "[a-c1-3,\" .]{1,4}",
    ]
}

/// What JSON has.
fn values() -> impl Strategy<Value = Value> {
    let digits = [
        "1.0",
        "1.50",
        "-0",
        "-0.0",
        "1e3",
        "1e300",
        "1e23",
        "0.1",
        "18446744073709551616",
        "9007199254740993.0",
        "0.1000000000000000055511151231257827",
        "123456789012345678901234567890",
        "1e400",
    ];
    let wholes = [0, 1, -1, 1234, 9_007_199_254_740_993, i64::MAX, i64::MIN];
    prop_oneof![
        3 => texts().prop_map(Value::from),
        2 => proptest::sample::select(digits.to_vec()).prop_map(number),
        2 => proptest::sample::select(wholes.to_vec()).prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => proptest::sample::select(&["[1]", "{\"a\":1}", "[]"][..]).prop_map(json),
    ]
}

/// Digits that are read as base64 where the column holds bytes.
fn is_base64(digits: &str) -> bool {
    digits.len().is_multiple_of(4) && digits.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// How a client writes a value into a path, as `docs/sqlite.md` says.
fn spelled(value: &Value, declared: &str) -> String {
    let plain = match value {
        Value::Int(n) => n.to_string(),
        Value::Bool(b) => b.to_string(),
        Value::Number(text) | Value::Text(text) | Value::Json(text) => text.to_string(),
        other => panic!("{other:?}"),
    };
    let is_text =
        declared != "DECIMAL_TEXT" && ["TEXT", "CHAR"].iter().any(|name| declared.contains(name));
    match (declared, value) {
        _ if is_text => plain,
        ("BLOB", Value::Text(_)) => plain,
        (_, Value::Text(text)) => serde_json::to_string(&**text).unwrap(),
        ("BLOB", Value::Bool(b)) => u8::from(*b).to_string(),
        // Four digits may be base64; with a point they are not.
        ("BLOB", Value::Int(n)) if is_base64(&plain) => format!("{n}.0"),
        ("BLOB", Value::Number(digits)) if is_base64(digits) => match digits.split_once('e') {
            Some((mantissa, exponent)) => format!("{mantissa}.0e{exponent}"),
            None => format!("{digits}.0"),
        },
        _ => plain,
    }
}

/// A number that is written as base64 is too, where no point can be added to it: such a key is
/// given in a body.
fn has_no_spelling(value: &Value, declared: &str) -> bool {
    match value {
        _ if declared != "BLOB" => false,
        Value::Int(n) => n.unsigned_abs() > 1 << 53 && is_base64(&n.to_string()),
        Value::Number(digits) => is_base64(digits) && !digits.contains('e'),
        _ => false,
    }
}

/// Writes a row, finds it in every way, and leaves the table as it was.
fn ways(place: usize, declared: &str, value: &Value) -> Vec<Unit> {
    let table = format!("t{place}");
    let path = || Value::from(spelled(value, declared));
    let put = insert(&table, &["k", "v"]).unit([value.clone(), 0.into()]);
    let change = update(&table, &["v"]);
    let by_name = update(&table, &["v"]).key(&["k"]);
    vec![
        put.clone(),
        get(&table).unit([value.clone()]),
        get(&table).spelled([path()]),
        get(&table).key(&["k"]).unit([value.clone()]),
        get(&table).key(&["k"]).spelled([path()]),
        change.unit([1.into(), value.clone()]),
        change.spelled([2.into(), path()]),
        by_name.spelled([3.into(), path()]),
        delete(&table).spelled([path()]),
        put.clone(),
        delete(&table).key(&["k"]).spelled([path()]),
        put,
        delete(&table).unit([value.clone()]),
    ]
}

async fn are_found(values: Vec<Value>) {
    let table = |(place, (declared, strict)): (usize, &(&str, &str))| {
        format!("CREATE TABLE t{place} (k {declared} PRIMARY KEY, v INTEGER){strict};")
    };
    let schema: String = KEYS.iter().enumerate().map(table).collect();
    let options = Options {
        synchronous: windrow_database::Synchronous::Off,
        ..Options::default()
    };
    let mut db = Db::with(&schema, &options).await;
    let keys = KEYS.iter().enumerate();
    let places = keys.flat_map(|(place, key)| values.iter().map(move |v| (place, key.0, v)));
    let places = places.filter(|(_, declared, value)| !has_no_spelling(value, declared));
    let places: Vec<_> = places.collect();
    let units = places
        .iter()
        .flat_map(|(place, declared, v)| ways(*place, declared, v));
    let told = brief(&db.outcomes(&units.collect::<Vec<Unit>>()).await);
    for (told, (_, declared, value)) in told.chunks(13).zip(places) {
        if told.first().is_some_and(|put| put == "[1]") {
            let path = spelled(value, declared);
            assert_eq!(told, ["[1]"; 13], "{declared}: {value:?} as {path:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn what_was_accepted_is_found(values in proptest::collection::vec(values(), 1..4)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(are_found(values));
    }
}

/// A number and the text of its digits are two keys where the column has no type; a path names
/// either.
#[tokio::test]
async fn a_path_tells_a_number_from_a_text() {
    let mut db = Db::new("CREATE TABLE t (k PRIMARY KEY, v TEXT)").await;
    let put = insert("t", &["k", "v"]);
    let units = [
        put.unit([1.into(), "number".into()]),
        put.unit(["1".into(), "text".into()]),
        get("t").returning(&["v"]).spelled(["1".into()]),
        get("t").returning(&["v"]).spelled(["\"1\"".into()]),
        delete("t").returning(&["v"]).spelled(["1".into()]),
        delete("t").returning(&["v"]).spelled(["1".into()]),
    ];
    let outcomes = db.outcomes(&units).await;
    assert_eq!(brief(&outcomes), ["[1]", "[1]", "[1]", "[1]", "[1]", "[0]"]);
    let text = |at: usize| returned(&outcomes[at].as_ref().unwrap()[0]).remove(0);
    assert_eq!(
        [text(2), text(3), text(4)],
        [["number".into()], ["text".into()], ["number".into()]]
    );
}
