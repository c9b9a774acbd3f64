//! Portions without what would be refused: what is taken is what the rows alone would have written,
//! and what is left out has no mark.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use windrow_core::{Claim, Filtered, LoadFault, LoadPlan, OnConflict, Rows};

use crate::support::*;
use windrow_testkit::loads::WritePortion as _;

const COLUMNS: [&str; 6] = ["id", "name", "qty", "price", "parent", "code"];

/// Every kind of thing that refuses rows.
const TABLE: &str = "\
create table parent (k int primary key); insert into parent select generate_series(1, 5);
create table t (
  id int primary key,
  name varchar(5) not null,
  qty int check (qty > 0),
  price numeric(5, 2),
  parent int references parent,
  code text unique,
  check (qty < 1000 or price is not null));
insert into t values (1000000, 'old', 1, 1, 1, 'old')";

type Line = [Option<&'static str>; 6];

/// A good row, or how it is bad.
const KINDS: [Line; 13] = [
    // The key stands in for `None` in the first place.
    [None, Some("ok"), Some("1"), Some("1.50"), Some("1"), None],
    [None, None, Some("1"), Some("1"), Some("1"), None],
    [
        None,
        Some("too long"),
        Some("1"),
        Some("1"),
        Some("1"),
        None,
    ],
    [None, Some("blank   "), Some("1"), Some("1"), None, None],
    [None, Some("ok"), Some("0"), Some("1"), Some("1"), None],
    [None, Some("ok"), Some("5000"), None, Some("1"), None],
    [None, Some("ok"), Some("x"), Some("1"), Some("1"), None],
    [None, Some("ok"), Some(" 7 "), Some("1"), Some("1"), None],
    [None, Some("ok"), Some("1"), Some("1000"), Some("1"), None],
    [
        None,
        Some("ok"),
        Some("1"),
        Some("999.999"),
        Some("1"),
        None,
    ],
    [None, Some("ok"), Some("1"), Some("1"), Some("9"), None],
    [
        None,
        Some("ok"),
        Some("1"),
        Some("1"),
        Some("1"),
        Some("old"),
    ],
    [
        Some("1000000"),
        Some("ok"),
        Some("1"),
        Some("1"),
        Some("1"),
        None,
    ],
];

/// Rows of these kinds; most are good.
fn lines(kinds: &[usize]) -> Vec<[Option<String>; 6]> {
    let line = |(number, kind): (usize, &usize)| {
        let kind = KINDS.get(*kind).unwrap();
        let mut line = kind.map(|field| field.map(str::to_owned));
        line[0].get_or_insert(number.to_string());
        line
    };
    kinds.iter().enumerate().map(line).collect()
}

fn rows(lines: &[[Option<String>; 6]]) -> Rows {
    let lines: Vec<[Option<&str>; 6]> = lines
        .iter()
        .map(|line| line.each_ref().map(Option::as_deref))
        .collect();
    portion(&lines)
}

async fn filter(bed: &Bed, plan: &LoadPlan, rows: &Rows, claim: Option<&Claim<'_>>) -> Filtered {
    let mut loader = bed.loader(plan).await;
    let filtered = loader.filter(rows, claim).await.unwrap();
    loader.close().await;
    filtered
}

/// What a portion leaves in the table, once by `filter` with what it left out alone behind it, and
/// once row by row.
async fn compare(bed: &Bed, kinds: &[usize], on_conflict: OnConflict) {
    let plan = with(plan("t", &COLUMNS), on_conflict);
    let lines = lines(kinds);
    let rows = rows(&lines);
    let marks = bed.bulk.marks().unwrap();
    let reset =
        "truncate t; truncate windrow_loads; insert into t values (1000000, 'old', 1, 1, 1, 'old')";
    let list = "select coalesce(string_agg(t::text, ';' order by id), '') from t";
    bed.sql(reset);
    let mut executor = bed.executor().await;
    let mut refused = BTreeSet::new();
    for place in 0..lines.len() {
        let fields: Vec<_> = rows.fields().skip(place * 6).take(6).collect();
        if alone(&mut *executor, &plan, &fields).await.is_err() {
            refused.insert(place);
        }
    }
    let expected = bed.sql(list);
    bed.sql(reset);
    let mark = mark("l", 100, 100 + 2 * lines.len() as u64);
    let records: Vec<u64> = (0..lines.len() as u64).map(|n| 100 + 2 * n).collect();
    let claim = Claim {
        mark: &mark,
        records: &records,
    };
    let filtered = filter(bed, &plan, &rows, Some(&claim)).await;
    let told = marks.read("l").await.unwrap();
    assert_eq!(told, claim.spans(&filtered.left));
    let taken = lines.len() - filtered.left.len();
    let loaded = filtered.loaded;
    assert_eq!(loaded.written + loaded.ignored, taken as u64);
    let left: BTreeSet<usize> = filtered.left.iter().copied().collect();
    assert!(refused.is_subset(&left), "{refused:?} {left:?}");
    for place in filtered.left {
        let fields: Vec<_> = rows.fields().skip(place * 6).take(6).collect();
        let outcome = alone(&mut *executor, &plan, &fields).await;
        assert_eq!(
            outcome.is_err(),
            refused.contains(&place),
            "{place}: {outcome:?}"
        );
    }
    assert_eq!(bed.sql(list), expected);
}

#[tokio::test]
async fn what_is_taken_and_what_is_left_out_make_the_whole() {
    let bed = Bed::new(TABLE).await;
    bed.bulk.marks().unwrap().prepare().await.unwrap();
    let kind = prop_oneof![20 => Just(0_usize), 1 => 0..KINDS.len()];
    let mut runner = TestRunner::deterministic();
    for round in 0..12 {
        let kinds = prop::collection::vec(kind.clone(), 200..400)
            .new_tree(&mut runner)
            .unwrap()
            .current();
        let on_conflict = match round % 2 {
            0 => OnConflict::Error,
            _ => OnConflict::Ignore,
        };
        compare(&bed, &kinds, on_conflict).await;
    }
}

/// A portion of one column, with rows that nobody foresees: a domain's check.
#[tokio::test]
async fn a_few_rows_that_could_not_be_foreseen_are_left_out() {
    let bed =
        Bed::new("create domain small as int check (value < 10); create table t (s small)").await;
    let plan = plan("t", &["s"]);
    let rows = plain(&[["1"], ["11"], ["2"], ["12"], ["13"], ["3"]]);
    assert_eq!(filter(&bed, &plan, &rows, None).await.left, [1, 3, 4]);
    assert_eq!(bed.sql("select string_agg(s::text, ',') from t"), "1,2,3");
    // With more of them the portion is not worth it; nothing of it is there.
    let rows = plain(&[["4"], ["11"], ["12"], ["13"], ["14"], ["15"]]);
    let mut loader = bed.loader(&plan).await;
    let filtered = loader.filter(&rows, None).await;
    assert!(
        matches!(filtered, Err(LoadFault::Refused(_))),
        "{filtered:?}"
    );
    // The connection goes on.
    let filtered = loader.filter(&plain(&[["5"]]), None).await.unwrap();
    assert_eq!((filtered.loaded, filtered.left.len()), (written(1), 0));
    loader.close().await;
    assert_eq!(bed.sql("select string_agg(s::text, ',') from t"), "1,2,3,5");
}

/// What all rows have in common is the file's own spelling: the server reads it.
#[tokio::test]
async fn an_odd_spelling_of_all_rows_is_not_left_out() {
    let bed = Bed::new("create table t (id int primary key, d date, q int check (q > 0))").await;
    let dates: Vec<[String; 3]> = (0..100)
        .map(|n| [n.to_string(), "1 Jan 2020".into(), (n % 50).to_string()])
        .collect();
    let rows: Vec<[&str; 3]> = dates
        .iter()
        .map(|row| row.each_ref().map(|f| &**f))
        .collect();
    let filtered = filter(&bed, &plan("t", &["id", "d", "q"]), &plain(&rows), None).await;
    assert_eq!((filtered.loaded, filtered.left), (written(98), vec![0, 50]));
}

/// Columns without a binary form, and a question about one of them.
#[tokio::test]
async fn rows_that_go_as_text_are_filtered_too() {
    let bed =
        Bed::new("create table t (id int primary key, i interval check (i > '0'), a int[])").await;
    let rows = plain(&[
        ["1", "1 day", "{1,2}"],
        ["2", "-1 day", "{1}"],
        ["3", "2 days", "{}"],
        ["1", "1 day", "{}"],
    ]);
    let filtered = filter(&bed, &plan("t", &["id", "i", "a"]), &rows, None).await;
    assert_eq!((filtered.loaded, filtered.left), (written(2), vec![1, 3]));
}

/// Only what is certainly bad is left out where a later row takes the place of an earlier one.
#[tokio::test]
async fn the_last_row_of_a_key_wins_in_a_portion_that_is_filtered() {
    let bed = Bed::new("create table t (id int primary key, q int not null check (q > 0))").await;
    let plan = with(plan("t", &["id", "q"]), OnConflict::Update);
    let rows = portion(&[
        [Some("1"), Some(" 7")],
        [Some("1"), Some("0")],
        [Some("2"), Some("3")],
        [Some("3"), None],
    ]);
    let filtered = filter(&bed, &plan, &rows, None).await;
    assert_eq!(filtered.left, [1, 3]);
    let all = bed.sql("select string_agg(t::text, ' ' order by id) from t");
    assert_eq!(all, "(1,7) (2,3)");
}

/// Who may not make temporary tables asks nothing, and what was to be asked is found out one by
/// one.
#[tokio::test]
async fn without_a_temporary_table_a_few_rows_are_found_all_the_same() {
    let bed = Bed::new(TABLE).await;
    let role = format!("r_{}", std::process::id());
    let name = bed.sql("select current_database()");
    bed.sql(&format!(
        "create role {role} login; revoke temporary on database \"{name}\" from public; grant all on all tables in schema public to {role}"
    ));
    let url = bed.database.url().to_owned();
    let (_, rest) = url.split_once('@').unwrap();
    let other = Bed::at(format!("postgres://{role}@{rest}"), bed.database).await;
    let kinds = [0, 4, 0, 5, 0];
    let filtered = filter(&other, &plan("t", &COLUMNS), &rows(&lines(&kinds)), None).await;
    assert_eq!((filtered.loaded, filtered.left), (written(3), vec![1, 3]));
    other.sql(&format!("drop owned by {role}; drop role {role}"));
}
