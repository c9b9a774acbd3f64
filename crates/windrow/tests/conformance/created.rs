//! Tables that are made from rows have the same columns everywhere, whose types never change.

use windrow_core::bookkeeping::REJECTED;
use windrow_core::sink::Purpose;
use windrow_core::{Executor, FaultClass, Unit, UnitOutcome, Value};
use windrow_database::Options;

use crate::bed::Bed;
use crate::words::*;

/// The databases in which columns have types, and tables have a mark of who made them.
const ALIKE: [&str; 3] = ["SQLite", "PostgreSQL", "MySQL and MariaDB"];

const COLUMNS: [&str; 7] = ["id", "n", "x", "flag", "doc", "day", "at"];

fn good(id: i64) -> Vec<Value> {
    let doc = Value::Json("[1]".into());
    let mut row = row![id, 5, 21.5, true];
    row.extend([doc, "2024-01-05".into(), "2024-01-05T10:00:00Z".into()]);
    row
}

/// Values that a column of each type refuses.
fn bad() -> Vec<(usize, Value)> {
    vec![
        (0, "abc".into()),
        (0, Value::number("21.5")),
        (1, "n/a".into()),
        (1, true.into()),
        (2, "n/a".into()),
        (2, Value::Json("{}".into())),
        (3, 1.into()),
        (3, "yes".into()),
        (5, "2024-01-05T10:00:00".into()),
        (5, "today".into()),
        (6, "now".into()),
        (6, 5.into()),
    ]
}

async fn run(executor: &mut Box<dyn Executor>, units: &[Unit]) -> Vec<UnitOutcome> {
    let verdicts = executor.execute(units).await.verdicts;
    verdicts.into_iter().map(told).collect()
}

/// Connects with `create_tables`; `None` if the database is not one of those that do it alike.
async fn creating(bed: &Bed) -> Option<Box<dyn Executor>> {
    let options = Options {
        create_tables: true,
        ..Options::default()
    };
    let sink = bed.another(&bed.ground.url(), &options).await;
    let is_alike = ALIKE.contains(&sink.profile().name);
    is_alike.then_some(())?;
    Some(sink.connect(Purpose::Batches).await.unwrap())
}

pub(crate) async fn columns_keep_their_types(bed: Bed) {
    let Some(mut executor) = creating(&bed).await else {
        return;
    };
    let put = insert("made", &COLUMNS);
    assert!(run(&mut executor, &[put.of(good(1))]).await[0].is_ok());
    let mut units = vec![put.of(good(2))];
    for (place, value) in bad() {
        let mut row = good(100);
        row[place] = value;
        units.push(put.of(row));
    }
    units.push(put.of(good(3)));
    let outcomes = run(&mut executor, &units).await;
    let last = outcomes.len() - 1;
    for (place, outcome) in outcomes.iter().enumerate() {
        if place == 0 || place == last {
            assert!(outcome.is_ok(), "{place}: {outcome:?}");
            continue;
        }
        let fault = fault(outcome);
        let told = (fault.class, &*fault.code);
        assert_eq!(
            told,
            (FaultClass::Value, "22P02"),
            "{:?}: {fault}",
            bad()[place - 1]
        );
    }
    // A new field is a new column; nothing that was there is another value by then.
    let more = insert("made", &["id", "more"]);
    assert!(run(&mut executor, &[more.of(row![4, "text"])]).await[0].is_ok());
    let read = get("made").returning(&["n", "x", "flag", "more"]);
    let outcomes = run(&mut executor, &[read.of(row![1]), read.of(row![4])]).await;
    let rows: Vec<_> = outcomes.iter().map(|outcome| rows(done(outcome))).collect();
    assert_eq!(
        rows[0],
        [[5.into(), Value::number("21.5"), true.into(), Value::Null]]
    );
    assert_eq!(
        rows[1],
        [[Value::Null, Value::Null, Value::Null, "text".into()]]
    );
}

/// Sensors send `20` before they send `21.5`. Numbers come back as they were sent.
pub(crate) async fn decimals_follow_whole_numbers(bed: Bed) {
    let Some(mut executor) = creating(&bed).await else {
        return;
    };
    const BIG: i64 = (1 << 53) + 1;
    let put = insert("sensor", &["id", "v", "big"]);
    let half = Value::number("21.5");
    for row in [
        row![1, 20, BIG],
        [2.into(), half.clone(), (-BIG).into()].into(),
        row![3, -7, i64::MAX],
    ] {
        let outcomes = run(&mut executor, &[put.of(row)]).await;
        assert!(outcomes[0].is_ok(), "{outcomes:?}");
    }
    // A column that is added later is no other.
    let more = insert("sensor", &["id", "later"]);
    for row in [row![4, 0], [5.into(), half.clone()].into()] {
        let outcomes = run(&mut executor, &[more.of(row)]).await;
        assert!(outcomes[0].is_ok(), "{outcomes:?}");
    }
    let read = get("sensor").returning(&["v", "big", "later"]);
    let units: Vec<_> = (1..=5).map(|id| read.of(row![id])).collect();
    let outcomes = run(&mut executor, &units).await;
    let found: Vec<_> = outcomes.iter().map(|o| rows(done(o)).concat()).collect();
    assert_eq!(found[0], [20.into(), BIG.into(), Value::Null]);
    assert_eq!(found[1], [half.clone(), (-BIG).into(), Value::Null]);
    assert_eq!(found[2], [(-7).into(), i64::MAX.into(), Value::Null]);
    assert_eq!(found[3], [Value::Null, Value::Null, 0.into()]);
    assert_eq!(found[4], [Value::Null, Value::Null, half]);
}

/// `-0` is the whole number 0, and makes no other column than that does; `-0.0` is a decimal.
pub(crate) async fn zeros_have_no_sign(bed: Bed) {
    let Some(mut executor) = creating(&bed).await else {
        return;
    };
    let put = insert("zeros", &["id", "v"]);
    let (whole, decimal) = (Value::number("-0"), Value::number("-0.0"));
    let units = [
        put.of([whole.clone(), decimal.clone()].into()),
        put.of([Value::number("21.5"), decimal].into()),
        put.of(row![1, 21.5]),
        put.of([2.into(), whole.clone()].into()),
        put.of(row![0, 1]),
    ];
    let mut outcomes = Vec::new();
    for unit in units {
        outcomes.extend(run(&mut executor, &[unit]).await);
    }
    let codes: Vec<_> = outcomes
        .iter()
        .map(|outcome| {
            outcome
                .as_ref()
                .map_err(|failed| &*failed.fault.code)
                .map(|_| ())
        })
        .collect();
    assert_eq!(
        codes,
        [Ok(()), Err("22P02"), Ok(()), Ok(()), Err("23505")],
        "the key is of whole numbers, and -0 is 0"
    );
    let read = get("zeros").returning(&["id"]);
    let outcomes = run(&mut executor, &[read.of([whole].into()), read.of(row![0])]).await;
    for outcome in &outcomes {
        assert_eq!(rows(done(outcome)), [[Value::Int(0)]]);
    }
}

/// Rows that do not say when they came have the moment of the database.
pub(crate) async fn a_new_table_may_have_a_column_of_moments(bed: Bed) {
    let options = Options {
        create_tables: true,
        received_at: Some("came".into()),
        ..Options::default()
    };
    let sink = bed.another(&bed.ground.url(), &options).await;
    if !ALIKE.contains(&sink.profile().name) {
        return;
    }
    let mut executor = sink.connect(Purpose::Batches).await.unwrap();
    let put = insert("momentous", &["id"]);
    let own = insert("momentous", &["id", "came"]);
    let given = Value::from("2024-01-05T10:00:00Z");
    let units = [
        put.of(row![1]),
        own.of([2.into(), given.clone()].into()),
        put.of(row![3]),
    ];
    let mut outcomes = Vec::new();
    outcomes.extend(run(&mut executor, &units[..1]).await);
    outcomes.extend(run(&mut executor, &units[1..]).await);
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    let read = get("momentous").returning(&["came"]);
    let reads: Vec<_> = (1..=3).map(|id| read.of(row![id])).collect();
    let outcomes = run(&mut executor, &reads).await;
    let found: Vec<_> = outcomes.iter().map(|o| rows(done(o)).concat()).collect();
    for place in [0, 2] {
        let text = format!("{:?}", found[place]);
        assert!(
            text.contains("20") && !text.contains("2024-01-05"),
            "{text}"
        );
    }
    assert!(
        format!("{:?}", found[1]).contains("2024-01-05"),
        "{found:?}"
    );
    // Rows that bring such a column are not asked for another one.
    let own = insert("own_moments", &["id", "Came"]);
    let outcomes = run(&mut executor, &[own.of([1.into(), given].into())]).await;
    assert!(outcomes[0].is_ok(), "{outcomes:?}");
}

/// A write that names no columns as its key says that its rows have none.
pub(crate) async fn an_empty_key_is_no_key(bed: Bed) {
    let Some(mut executor) = creating(&bed).await else {
        return;
    };
    let put = insert("keyless", &["id", "n"]).key(&[]);
    for _ in 0..2 {
        let outcomes = run(&mut executor, &[put.of(row![1, 1]), put.of(row![1, 1])]).await;
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    }
    let upsert = insert("keyless", &["id", "n"]).key(&[]).upsert();
    let outcomes = run(&mut executor, &[upsert.of(row![1, 1])]).await;
    assert_eq!(fault(&outcomes[0]).class, FaultClass::Invalid);
}

/// Rows for a table without a primary key are there by no key, so none is ignored.
pub(crate) async fn a_table_without_a_key_ignores_no_row(bed: Bed) {
    let Some(mut executor) = creating(&bed).await else {
        return;
    };
    let put = insert("keyless", &["id", "n"]).key(&[]);
    run(&mut executor, &[put.of(row![1, 1])]).await;
    let again = insert("keyless", &["id", "n"]).ignore();
    let several: Vec<_> = (0..20).map(|n| again.of(row![1, n % 2])).collect();
    for units in [&several[..1], &several] {
        let outcomes = run(&mut executor, units).await;
        assert!(outcomes.iter().all(|outcome| done(outcome).rows == 1));
    }
}

pub(crate) async fn tables_of_others_get_no_columns(bed: Bed) {
    let options = Options {
        create_tables: true,
        ..Options::default()
    };
    let url = bed.ground.url();
    let sink = bed.another(&url, &options).await;
    if !ALIKE.contains(&sink.profile().name) {
        return;
    }
    bed.lay(&[table("theirs", &[("id", Type::Int), ("n", Type::Int)])])
        .await;
    let mut executor = sink.connect(Purpose::Batches).await.unwrap();
    let more = insert("theirs", &["id", "more"]);
    let plain = insert("theirs", &["id", "n"]);
    let units = [more.of(row![1, 1]), plain.of(row![2, 2])];
    let outcomes = run(&mut executor, &units).await;
    assert_eq!(fault(&outcomes[0]).class, FaultClass::NoColumn);
    let hint = fault(&outcomes[0]).hint();
    assert!(
        hint.is_some_and(|hint| hint.contains("extend_tables")),
        "{hint:?}"
    );
    assert!(outcomes[1].is_ok());
    let extending = Options {
        extend_tables: true,
        ..options
    };
    let sink = bed.another(&url, &extending).await;
    let mut executor = sink.connect(Purpose::Batches).await.unwrap();
    assert!(run(&mut executor, &[more.of(row![1, 1])]).await[0].is_ok());
}

/// A table of Windrow's own that another session has dropped is not made again from its rows: it
/// would have no number of its own, and Windrow would not make it any more.
pub(crate) async fn own_tables_are_not_made_from_rows(bed: Bed) {
    let Some(mut executor) = creating(&bed).await else {
        return;
    };
    let columns = ["source", "row"];
    let letter = insert(REJECTED, &columns).of(row!["mqtt a", "{}"]);
    let plain = insert("made_beside", &["id"]).of(row![1]);
    let outcomes = run(&mut executor, &[letter, plain]).await;
    let refused = fault(&outcomes[0]);
    assert_eq!(
        (refused.class, &*refused.code),
        (FaultClass::NoTable, "42P01")
    );
    assert!(outcomes[1].is_ok(), "{outcomes:?}");
}

pub(crate) async fn without_the_option_nothing_is_created(mut bed: Bed) {
    let (put, read) = (insert("nowhere", &["id"]), get("nowhere"));
    for unit in [put.of(row![1]), read.returning(&["id"]).of(row![1])] {
        let outcomes = bed.outcomes(&[unit]).await;
        assert_eq!(fault(&outcomes[0]).class, FaultClass::NoTable);
    }
    if bed.sink.profile().name == "ArangoDB" {
        // A document may have any attributes.
        return;
    }
    bed.lay(&[plain()]).await;
    let more = insert("t", &["id", "missing"]);
    let units: Vec<_> = (0..3).map(|id| more.of(row![id, 1])).collect();
    for outcome in bed.outcomes(&units).await {
        assert_eq!(fault(&outcome).class, FaultClass::NoColumn);
    }
}
