//! Writes keys as literals, and the conditions that look them up.

use mysql_async::Value as Cell;
use windrow_core::{Fault, Name};
use windrow_database::quote::backtick::push_ident;

use crate::values::column::Kind;
use crate::values::literal::{push_hex, push_text};
use crate::values::moment::fraction;

/// The most keys in one condition. From a thousand keys, MariaDB makes a table of them
/// (`in_predicate_conversion_threshold`); from some thousands, neither server looks them up one by
/// one.
pub(super) const MAX_KEYS: usize = 900;

/// The number of consecutive integers from which the condition names only the first and the last.
pub(super) const RUN: usize = 32;

/// A locked row's key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// One integer.
    Number(i128),
    /// The literal of a key of one column, or a condition on all columns.
    Literal(Box<str>),
}

/// Reads a key. `key` lists its columns.
///
/// # Errors
/// A value has no literal, which is a defect.
pub(super) fn read(key: &[(Name, Kind)], cells: &[Cell]) -> Result<Key, Fault> {
    match (key, cells) {
        ([_], [Cell::Int(n)]) => return Ok(Key::Number(i128::from(*n))),
        ([_], [Cell::UInt(n)]) => return Ok(Key::Number(i128::from(*n))),
        _ => {}
    }
    let mut sql = String::new();
    let single = key.len() == 1;
    for (place, ((name, kind), cell)) in key.iter().zip(cells).enumerate() {
        if !single {
            sql.push_str(if place > 0 { " AND " } else { "(" });
            push_ident(&mut sql, name);
            sql.push_str(" = ");
        }
        if !push_literal(&mut sql, *kind, cell) {
            return Err(Fault::internal(format!(
                "the key column {name} holds a value that cannot be looked up"
            )));
        }
    }
    sql.push_str(if single { "" } else { ")" });
    Ok(Key::Literal(sql.into()))
}

/// The form of the condition for consecutive integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runs {
    /// A range: for statements that lock nothing.
    Whole,
    /// A range without the last number, and that number by itself. A locking statement reads one
    /// row beyond a range, and another session may have locked it.
    ButLast,
}

/// Returns conditions that together cover these keys, with the number of keys of each.
pub(super) fn conditions(
    columns: &[(Name, Kind)],
    keys: &[&Key],
    runs: Runs,
) -> Vec<(String, usize)> {
    let mut conditions = Vec::new();
    let mut lone: Vec<&Key> = Vec::new();
    let mut rest = keys;
    while !rest.is_empty() {
        let run = run(rest).clamp(1, rest.len());
        let (some, others) = rest.split_at(run);
        rest = others;
        match (ends(some), runs) {
            (Some((first, last, _)), Runs::Whole) if run >= RUN => {
                conditions.push((between(columns, first, last), run));
            }
            (Some((first, last, behind)), Runs::ButLast) if run >= RUN => {
                conditions.push((between(columns, first, last - 1), run - 1));
                lone.push(behind);
            }
            _ => lone.extend(some),
        }
    }
    let chunks = lone.chunks(MAX_KEYS);
    conditions.extend(chunks.map(|chunk| (list(columns, chunk), chunk.len())));
    conditions
}

/// Returns the first and the last number of a run, and the last key.
fn ends<'k>(run: &[&'k Key]) -> Option<(i128, i128, &'k Key)> {
    match (run.first()?, run.last()?) {
        (Key::Number(first), behind @ Key::Number(last)) => Some((*first, *last, behind)),
        _ => None,
    }
}

/// Writes the condition for a range of numbers, both ends included.
pub(super) fn between(columns: &[(Name, Kind)], first: i128, last: i128) -> String {
    let mut sql = String::new();
    if let [(name, _), ..] = columns {
        push_ident(&mut sql, name);
    }
    sql.push_str(&format!(" BETWEEN {first} AND {last}"));
    sql
}

/// Returns the number of keys, from the first, that are consecutive integers.
fn run(keys: &[&Key]) -> usize {
    let mut next = None;
    let follows = |key: &&&Key| match ***key {
        Key::Number(n) if next.is_none_or(|next| next == n) => {
            next = Some(n + 1);
            true
        }
        _ => false,
    };
    keys.iter().take_while(follows).count()
}

/// Writes integers as a table of one column.
pub(super) fn values(keys: &[&Key]) -> String {
    let mut sql = String::from("(VALUES ");
    for (place, key) in keys.iter().enumerate() {
        sql.push_str(if place > 0 { "),(" } else { "(" });
        if let Key::Number(n) = key {
            sql.push_str(&n.to_string());
        }
    }
    sql.push_str("))");
    sql
}

/// Writes the condition that joins rows with that table, whose column has the name of its first
/// value.
pub(super) fn joined(columns: &[(Name, Kind)], keys: &[&Key]) -> String {
    let mut sql = String::from(" ON windrow_row.");
    if let ([(name, _)], [Key::Number(first), ..]) = (columns, keys) {
        push_ident(&mut sql, name);
        sql.push_str(&format!(" = windrow_list.`{first}`"));
    }
    sql
}

fn list(columns: &[(Name, Kind)], keys: &[&Key]) -> String {
    let mut sql = String::new();
    let single = match columns {
        [(name, _)] => {
            push_ident(&mut sql, name);
            sql.push_str(" IN (");
            true
        }
        _ => false,
    };
    for (place, key) in keys.iter().enumerate() {
        sql.push_str(match (place, single) {
            (0, _) => "",
            (_, true) => ",",
            (_, false) => " OR ",
        });
        match key {
            Key::Number(n) => sql.push_str(&n.to_string()),
            Key::Literal(text) => sql.push_str(text),
        }
    }
    sql.push_str(if single { ")" } else { "" });
    sql
}

/// Appends a value such that its column is compared with it exactly: numbers as digits, because
/// text would be compared as a double.
fn push_literal(sql: &mut String, kind: Kind, cell: &Cell) -> bool {
    match (kind, cell) {
        (_, Cell::Int(n)) => sql.push_str(&n.to_string()),
        (_, Cell::UInt(n)) => sql.push_str(&n.to_string()),
        (Kind::Bit, Cell::Bytes(bytes)) if bytes.len() <= 8 => {
            let n = bytes
                .iter()
                .fold(0_u64, |n, byte| n << 8 | u64::from(*byte));
            sql.push_str(&n.to_string());
        }
        (Kind::Decimal(..), Cell::Bytes(digits)) => match str::from_utf8(digits) {
            Ok(digits)
                if digits
                    .bytes()
                    .all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'.')) =>
            {
                sql.push_str(digits);
            }
            _ => return false,
        },
        (Kind::Binary | Kind::Blob, Cell::Bytes(bytes)) => push_hex(sql, bytes),
        (_, Cell::Bytes(bytes)) => match str::from_utf8(bytes) {
            Ok(text) => push_text(sql, text),
            Err(_) => push_hex(sql, bytes),
        },
        (_, Cell::Date(year, month, day, h, m, s, micros)) => {
            sql.push_str(&format!("'{year:04}-{month:02}-{day:02}"));
            if kind != Kind::Date {
                sql.push_str(&format!(" {h:02}:{m:02}:{s:02}{}", fraction(*micros)));
            }
            sql.push('\'');
        }
        (_, Cell::Time(negative, days, h, m, s, micros)) => {
            let hours = u64::from(*days) * 24 + u64::from(*h);
            let sign = if *negative { "-" } else { "" };
            sql.push_str(&format!(
                "'{sign}{hours:02}:{m:02}:{s:02}{}'",
                fraction(*micros)
            ));
        }
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(numbers: impl IntoIterator<Item = i64>) -> Vec<Key> {
        numbers.into_iter().map(|n| Key::Number(n.into())).collect()
    }

    fn id() -> Vec<(Name, Kind)> {
        vec![("id".into(), Kind::Int)]
    }

    #[test]
    fn runs_are_ranges_and_who_locks_ends_at_a_row_of_its_own() {
        let keys = numbers((1..=100).chain([200, 202]).chain(301..=340));
        let keys: Vec<&Key> = keys.iter().collect();
        let told = conditions(&id(), &keys, Runs::Whole);
        assert_eq!(
            told,
            [
                ("`id` BETWEEN 1 AND 100".to_owned(), 100),
                ("`id` BETWEEN 301 AND 340".to_owned(), 40),
                ("`id` IN (200,202)".to_owned(), 2),
            ]
        );
        let told = conditions(&id(), &keys, Runs::ButLast);
        assert_eq!(
            told,
            [
                ("`id` BETWEEN 1 AND 99".to_owned(), 99),
                ("`id` BETWEEN 301 AND 339".to_owned(), 39),
                ("`id` IN (100,200,202,340)".to_owned(), 4),
            ]
        );
    }

    #[test]
    fn long_lists_are_cut() {
        let keys = numbers((0..2000).map(|n| n * 2));
        let keys: Vec<&Key> = keys.iter().collect();
        let sizes: Vec<usize> = conditions(&id(), &keys, Runs::Whole)
            .iter()
            .map(|(_, n)| *n)
            .collect();
        assert_eq!(sizes, [900, 900, 200]);
        assert!(conditions(&id(), &[], Runs::Whole).is_empty());
    }

    #[test]
    fn every_kind_has_its_literal() {
        let literal = |kind, cell| {
            let mut sql = String::new();
            assert!(push_literal(&mut sql, kind, &cell));
            sql
        };
        let text = |text: &str| Cell::Bytes(text.into());
        assert_eq!(literal(Kind::Decimal(5, 2), text("-1.50")), "-1.50");
        assert_eq!(literal(Kind::Text, text("1.50")), "'1.50'");
        assert_eq!(literal(Kind::Other, text("a'b")), "_utf8mb4 X'612762'");
        assert_eq!(literal(Kind::Binary, Cell::Bytes(vec![1, 171])), "X'01AB'");
        assert_eq!(literal(Kind::Bit, Cell::Bytes(vec![1, 0])), "256");
        let moment = Cell::Date(2026, 1, 2, 3, 4, 5, 600_000);
        assert_eq!(literal(Kind::Date, moment.clone()), "'2026-01-02'");
        assert_eq!(literal(Kind::DateTime, moment), "'2026-01-02 03:04:05.6'");
        let mut sql = String::new();
        assert!(!push_literal(&mut sql, Kind::Double, &Cell::Double(0.1)));
    }

    #[test]
    fn keys_of_several_columns_name_all_of_them() {
        let columns: Vec<(Name, Kind)> = vec![("a".into(), Kind::Int), ("b`".into(), Kind::Text)];
        let key =
            |n, text: &str| read(&columns, &[Cell::Int(n), Cell::Bytes(text.into())]).unwrap();
        let (first, second) = (key(1, "x"), key(2, "y"));
        let told = conditions(&columns, &[&first, &second], Runs::Whole);
        assert_eq!(
            told,
            [(
                "(`a` = 1 AND `b``` = 'x') OR (`a` = 2 AND `b``` = 'y')".to_owned(),
                2
            )]
        );
    }
}
