//! Any values at all: the same contents as by the lane.

use proptest::prelude::*;
use windrow_core::Field;

use crate::support::*;
use windrow_testkit::loads::WritePortion as _;

const TABLE: &str = "(id int primary key, n bigint, d decimal(20,5), f double, s varchar(20), l varchar(20) character set latin1, \
    t datetime(3), b varbinary(12), j json, e enum('a','b'));";

const COLUMNS: [&str; 10] = ["id", "n", "d", "f", "s", "l", "t", "b", "j", "e"];

/// A field that owns its text.
#[derive(Clone, Debug)]
enum Owned {
    Null,
    Plain(String),
    Text(String),
    Bool(bool),
    Json(String),
    Bytes(Vec<u8>),
}

impl Owned {
    fn field(&self) -> Field<'_> {
        match self {
            Self::Null => Field::Null,
            Self::Plain(text) => Field::Plain(text),
            Self::Text(text) => Field::Text(text),
            Self::Bool(truth) => Field::Bool(*truth),
            Self::Json(text) => Field::Json(text),
            Self::Bytes(bytes) => Field::Bytes(bytes),
        }
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        "[\\\\\t\n\r\0'\"N,;]{0,6}",
        ".{0,6}",
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|x| x.to_string()),
        "-?[0-9]{1,12}\\.[0-9]{0,8}",
        "20[0-9]{2}-[01][0-9]-[0-3][0-9]([T ][0-2][0-9]:[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]0[0-9]:00)?)?",
        "[ab]",
        "([A-Za-z0-9+/]{4}){0,4}",
    ]
}

fn field() -> impl Strategy<Value = Owned> {
    prop_oneof![
        1 => Just(Owned::Null),
        8 => text().prop_map(Owned::Plain),
        3 => text().prop_map(Owned::Text),
        1 => any::<bool>().prop_map(Owned::Bool),
        1 => "[0-9]{1,3}|\"[a-z\\\\]{0,3}\"|\\{\\}|\\[1\\]".prop_map(Owned::Json),
        1 => proptest::collection::vec(any::<u8>(), 0..6).prop_map(Owned::Bytes),
    ]
}

#[test]
fn any_row_is_as_by_the_lane_or_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let schema = format!("create table lane {TABLE} create table bulk {TABLE}");
    let bed = runtime.block_on(Bed::new(&schema));
    let config = ProptestConfig {
        cases: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    // Most rows have one wild value, so that many are good.
    let row = (0..COLUMNS.len() - 1, field());
    let strategy = proptest::collection::vec(row, 1..12);
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&strategy, |wild| {
        let ids: Vec<String> = (0..wild.len()).map(|id| id.to_string()).collect();
        let rows: Vec<Vec<Field<'_>>> = ids
            .iter()
            .zip(&wild)
            .map(|(id, (place, field))| {
                let mut row = vec![Field::Null; COLUMNS.len()];
                row[0] = Field::Plain(id);
                row[place + 1] = field.field();
                row
            })
            .collect();
        runtime.block_on(async {
            bed.sql("delete from lane; delete from bulk;");
            let told = bed.alone(&plan("lane", &COLUMNS), &rows).await;
            let mut loader = bed.loader(&plan("bulk", &COLUMNS)).await;
            // If one row is bad none is written; the good ones are, one by one, right after.
            if told.iter().any(Option::is_some) {
                refused(loader.load(&portion(&rows), None).await);
            }
            let mut left = vec!["-1"];
            for (row, fault) in rows.iter().zip(&told) {
                let one = loader.load(&portion(std::slice::from_ref(row)), None).await;
                assert!(!(one.is_ok() && fault.is_some()), "{row:?} {fault:?}");
                if one.is_err() {
                    left.push(id_of(row));
                }
            }
            bed.sql(&format!(
                "delete from lane where id in ({})",
                left.join(",")
            ));
            let dump = |table: &str| format!("select * from {table} order by id");
            assert_eq!(bed.rows(&dump("bulk")).await, bed.rows(&dump("lane")).await);
        });
        Ok(())
    });
    result.unwrap();
}
