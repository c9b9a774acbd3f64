//! Rows of one statement store the same as single statements.

use proptest::prelude::*;
use windrow_core::{Expression, ParsedStatement, Piece};
use windrow_sql::mysql::{lift, read};

use crate::support::{Session, try_all};

const SCHEMA: [&str; 2] = [
    "create table t (id int primary key auto_increment, a int not null, b varchar(5) default 'dflt', c decimal(6,2), d varchar(20) not null default '', e datetime)",
    "create table u like t",
];

/// Values of columns; some fit no column.
#[rustfmt::skip]
const VALUES: [&str; 26] = [
    "1", "-2", "3.456", "1e2", "'x'", "'abc'", "'too long'", "'12'", "null", "default", "0x4142", "b'1'", "true", "concat('a', 1)", "1 + 1",
    "'2026-01-02'", "date'2026-01-02'", "coalesce(null, 5)", "if(1, 2, 3)", "99999999999", "'12x'", "upper('x')", "_utf8mb4'y'", "''", "-0.005", "cast('7' as signed)",
];

/// Lists of columns, and how many values they take.
const COLUMNS: [(&str, usize); 5] = [
    ("(a, b)", 2),
    ("(b, c, a)", 3),
    ("(`a`, t.d, e)", 3),
    ("(d, a)", 2),
    ("()", 0),
];

/// One expression with a row's literals.
fn spelled(expression: &Expression, literals: &[&str]) -> String {
    let Expression::Sql(pieces) = expression else {
        return "DEFAULT".into();
    };
    pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => &**text,
            Piece::Parameter(number) => literals.get(usize::from(*number)).unwrap(),
        })
        .collect()
}

/// The columns of a statement and its row, as a lane spells them.
fn row(statement: &ParsedStatement, literals: &[&str]) -> String {
    let values: Vec<_> = statement
        .values
        .iter()
        .map(|value| spelled(value, literals))
        .collect();
    format!("({})", values.join(", "))
}

fn head(statement: &ParsedStatement) -> String {
    let columns = statement.columns.as_ref().map(|columns| {
        let quoted: Vec<_> = columns
            .iter()
            .map(|name| format!("`{}`", name.replace('`', "``")))
            .collect();
        format!(" ({})", quoted.join(", "))
    });
    format!("insert into `u`{} values ", columns.unwrap_or_default())
}

#[test]
fn rows_of_one_statement_are_those_of_single_statements() {
    let session = Session::new(&SCHEMA);
    let compared = std::cell::Cell::new(0);
    let values = prop::collection::vec(prop::sample::select(&VALUES[..]), 6);
    let rows = prop::collection::vec(values, 1..4);
    let strategy = (
        prop::sample::select(&COLUMNS[..]),
        rows,
        any::<bool>(),
        any::<bool>(),
    );
    try_all(
        &strategy,
        |((columns, count), rows, is_strict, is_spaced)| {
            let modes = session.mode(if is_strict {
                "STRICT_ALL_TABLES"
            } else {
                "NO_ZERO_DATE"
            });
            for table in ["t", "u"] {
                session.rows(&format!("truncate table {table}")).unwrap();
            }
            let (mut heads, mut together) = (Vec::new(), Vec::new());
            for values in &rows {
                let values = values[..count].join(if is_spaced { " , " } else { "," });
                let text = format!("insert into t {columns} values ({values});");
                let lifted = lift(&text, modes).unwrap();
                let statement = read(&lifted.text, modes).unwrap();
                assert!(statement.set_based, "{text}");
                let literals: Vec<_> = lifted
                    .literals
                    .iter()
                    .map(|place| &text[place.clone()])
                    .collect();
                heads.push(head(&statement));
                // A NULL in a column that takes none is an error alone, and a warning among others.
                let has_null = !is_strict && literals.contains(&"null");
                if session.rows(&text).is_err() || has_null {
                    return;
                }
                together.push(row(&statement, &literals));
            }
            heads.dedup();
            assert_eq!(heads.len(), 1);
            session
                .rows(&format!("{}{}", heads[0], together.join(",")))
                .unwrap();
            let query = |table| session.table(&format!("select * from {table} order by id"));
            assert_eq!(query("t"), query("u"), "{columns} {rows:?}");
            compared.set(compared.get() + 1);
        },
    );
    assert!(
        compared.get() > 50,
        "only {} statements were compared",
        compared.get()
    );
}
