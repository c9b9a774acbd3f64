//! Random values of each type in whole portions, against the server's own reading of the same
//! texts.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use windrow_core::{Field, Rows};

use crate::support::*;

const ROWS: usize = 2_000;

/// A text that the type takes.
fn texts() -> Vec<(&'static str, BoxedStrategy<String>)> {
    let date = (1..=9999_i32, 1..=12_u8, 1..=28_u8);
    let date = date.prop_map(|(y, m, d)| format!("{y:04}-{m:02}-{d:02}"));
    let time = (0..24_u8, 0..60_u8, 0..60_u8, "(\\.[0-9]{1,6})?");
    let time = time.prop_map(|(h, m, s, f)| format!("{h:02}:{m:02}:{s:02}{f}"));
    let moment = (date.clone(), "[ T]", time.clone()).prop_map(|(d, t, c)| format!("{d}{t}{c}"));
    let zone = "(Z|[+-](0[0-9]|1[0-4])(:?[0-5][0-9])?)?";
    vec![
        ("bool", "t|true|f|False|1|0|yes|off".boxed()),
        ("int2", any::<i16>().prop_map(|n| n.to_string()).boxed()),
        ("int4", any::<i32>().prop_map(|n| n.to_string()).boxed()),
        ("int8", any::<i64>().prop_map(|n| n.to_string()).boxed()),
        (
            "float4",
            any::<f32>()
                .prop_filter("finite", |f| f.is_normal())
                .prop_map(|f| f.to_string())
                .boxed(),
        ),
        (
            "float8",
            any::<f64>()
                .prop_filter("finite", |f| f.is_normal())
                .prop_map(|f| format!("{f:e}"))
                .boxed(),
        ),
        ("numeric", "-?[0-9]{1,40}(\\.[0-9]{0,40})?".boxed()),
        ("numeric(20,5)", "-?[0-9]{1,15}(\\.[0-9]{0,12})?".boxed()),
        (
            "text",
            any::<String>().prop_map(|s| s.replace('\0', "")).boxed(),
        ),
        (
            "varchar(5)",
            ".{0,5} {0,5}".prop_map(|s| s.replace('\0', "")).boxed(),
        ),
        (
            "uuid",
            "[0-9a-fA-F]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}".boxed(),
        ),
        ("date", date.boxed()),
        ("time", time.boxed()),
        ("timestamp(3)", moment.clone().boxed()),
        (
            "timestamptz",
            (moment, zone).prop_map(|(m, z)| m + &z).boxed(),
        ),
    ]
}

/// All types side by side, in a portion of many rows: as binary, and (with an odd column) as text.
#[tokio::test]
async fn portions_of_random_values() {
    let texts = texts();
    let columns: Vec<String> = (0..texts.len()).map(|n| format!("c{n}")).collect();
    let typed = |types: &dyn Fn(usize) -> String| {
        let columns = columns.iter().enumerate();
        let columns: Vec<String> = columns
            .map(|(n, name)| format!("{name} {}", types(n)))
            .collect();
        columns.join(", ")
    };
    let own = typed(&|n| texts[n].0.to_owned());
    let raw = typed(&|_| "text".to_owned());
    let bed = Bed::new(&format!(
        "create table binary_form (id int, {own}); create table text_form (id int, {own}, odd interval); create table read_here (id int, {own}); create table raw (id int, {raw})"
    ))
    .await;
    let mut runner = TestRunner::deterministic();
    let mut rows: Vec<Vec<Option<String>>> = Vec::new();
    for id in 0..ROWS {
        let mut row = vec![Some(id.to_string())];
        for (place, (_, strategy)) in texts.iter().enumerate() {
            let text = strategy.new_tree(&mut runner).unwrap().current();
            row.push((id % 7 != place).then_some(text));
        }
        rows.push(row);
    }
    let names: Vec<&str> = std::iter::once("id")
        .chain(columns.iter().map(String::as_str))
        .collect();
    for table in ["binary_form", "text_form", "raw"] {
        let mut portion = Rows::new(names.len());
        for (row, line) in rows.iter().zip(1..) {
            let fields = row
                .iter()
                .map(|f| f.as_deref().map_or(Field::Null, Field::Text));
            assert!(portion.push(line, fields));
        }
        let loaded = match table {
            "text_form" => {
                let mut with_odd = Rows::new(names.len() + 1);
                for (row, line) in rows.iter().zip(1..) {
                    let fields = row
                        .iter()
                        .map(|f| f.as_deref().map_or(Field::Null, Field::Text));
                    assert!(with_odd.push(line, fields.chain([Field::Text("1 day")])));
                }
                let names: Vec<&str> = names.iter().copied().chain(["odd"]).collect();
                bed.load(&plan(table, &names), &with_odd).await
            }
            _ => bed.load(&plan(table, &names), &portion).await,
        };
        assert_eq!(loaded, Ok(written(ROWS as u64)), "{table}");
    }
    let casts: Vec<String> = texts
        .iter()
        .enumerate()
        .map(|(n, (t, _))| {
            // A longer text is cut off by a cast, but not by an assignment; blanks alone make these
            // longer.
            format!("c{n}::{t}")
        })
        .collect();
    bed.sql(&format!(
        "set timezone = 'UTC'; insert into read_here select id, {} from raw",
        casts.join(", ")
    ));
    let list = names.join(", ");
    for table in ["binary_form", "text_form"] {
        for (a, b) in [(table, "read_here"), ("read_here", table)] {
            let differing = bed.sql(&format!(
                "select count(*) from (select {list} from {a} except all select {list} from {b}) d"
            ));
            assert_eq!(differing, "0", "{a} {b}");
        }
    }
}
