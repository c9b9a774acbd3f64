//! Keys and other conditions find the rows that the whole WHERE finds.

use proptest::prelude::*;
use windrow_core::{Expression, Name, Piece};
use windrow_sql::mysql::read;

use crate::support::{SQL_MODES, Session, try_all};

const SCHEMA: [&str; 2] = [
    "create table t (id int primary key, a int, b varchar(5))",
    "insert into t values (1, 1, 'x'), (2, 1, 'y'), (3, 0, null), (4, null, 'x'), (5, 2, '1')",
];

/// Conditions, and what may join them.
#[rustfmt::skip]
const CONDITIONS: [&str; 27] = [
    "id = 1", "id = 2", "t.id=3", "`id` = 4", "a = 1", "b = 'x'", "(a = 1)", "not a = 1", "a between 0 and 1", "a not between 1 and 2 and 3",
    "b like 'x'", "a in (1, 2)", "id in (3)", "b in ('x')", "a in(1) = 0", "a is null", "case when a and b then 1 else 0 end", "a = 1 = 1", "a = -1", "a <=> null", "a > 0", "1 = a",
    "a = 1 + 0", "not 0", "! a", "b is not null", "a = a",
];
const JOINTS: [&str; 9] = [
    " and ", " && ", " or ", " || ", " xor ", " and (", ") and ", " or (", ") or ",
];

fn condition() -> impl Strategy<Value = String> {
    let part = (
        prop::sample::select(&JOINTS[..]),
        prop::sample::select(&CONDITIONS[..]),
    );
    let rest = prop::collection::vec(part, 0..5);
    (prop::sample::select(&CONDITIONS[..]), rest).prop_map(|(first, rest)| {
        let mut text = first.to_owned();
        for (joint, condition) in rest {
            text.push_str(joint);
            text.push_str(condition);
        }
        // Parentheses that are open are closed; those that never were get one.
        let (mut depth, mut missing) = (0_usize, 0);
        for char in text.chars() {
            match char {
                '(' => depth += 1,
                ')' if depth == 0 => missing += 1,
                ')' => depth -= 1,
                _ => {}
            }
        }
        format!("{}{text}{}", "(".repeat(missing), ")".repeat(depth))
    })
}

fn spelled(expression: &Expression) -> String {
    let Expression::Sql(pieces) = expression else {
        panic!("a default in a condition");
    };
    pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => &**text,
            Piece::Parameter(_) => panic!("a parameter"),
        })
        .collect()
}

#[test]
fn keys_and_conditions_are_all_of_where() {
    let session = Session::new(&SCHEMA);
    let compared = std::cell::Cell::new(0);
    try_all(
        &(0..SQL_MODES.len(), condition(), any::<bool>()),
        |(mode, condition, deletes)| {
            let modes = session.mode(SQL_MODES[mode]);
            let text = match deletes {
                true => format!("delete from t where {condition}"),
                false => format!("update t set a = 9 where {condition}"),
            };
            let Ok(statement) = read(&text, modes) else {
                return;
            };
            let key = |(name, value): &(Name, Expression)| format!("`{name}` = {}", spelled(value));
            let keys = statement.keys.iter().map(key);
            let parts: Vec<_> = keys
                .chain(statement.conditions.iter().map(spelled))
                .collect();
            let found = |condition: &str| {
                session.rows(&format!("select id from t where {condition} order by id"))
            };
            let ids = |condition: &str| {
                found(condition)
                    .map(|rows| rows.into_iter().map(|row| row.unwrap()).collect::<Vec<_>>())
            };
            let whole = ids(&condition);
            assert_eq!(ids(&parts.join(" and ")), whole, "{condition} -> {parts:?}");
            compared.set(compared.get() + u32::from(whole.is_ok()));
        },
    );
    assert!(
        compared.get() > 200,
        "only {} conditions were compared",
        compared.get()
    );
}
