//! Identifies the row of a write: encodes values as bytes that are equal if the server compares the
//! values as equal.
//!
//! If equality cannot be decided, there is no key, and the caller keeps the order. Text is compared
//! only if it is ASCII and equal texts of its collation differ in nothing but their case.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use mysql_async::Value as Cell;
use windrow_database::iso_moment::{IsoMoment, MICROS_OF_DAY, read_date};

use super::encode::plain;
use super::moment::micros_of;
use crate::values::column::{Column, Kind};

/// Bytes that represent the values of some columns. They sort like whole numbers and texts, so all
/// statements write their rows in one order.
pub(crate) type Canon = Box<[u8]>;

/// The key of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowKey {
    /// A row.
    Row(Canon),
    /// A key with NULL in it, which no row has and none conflicts with.
    NoRow,
    /// A key whose equality cannot be decided.
    Unknown,
}

/// Returns the row that the values of a unique key name.
pub(crate) fn row_key<'a>(parts: impl IntoIterator<Item = (&'a Column, &'a Cell)>) -> RowKey {
    let mut out = Vec::new();
    for (column, cell) in parts {
        if *cell == Cell::NULL {
            return RowKey::NoRow;
        }
        if equal(column, cell, &mut out).is_none() {
            return RowKey::Unknown;
        }
    }
    RowKey::Row(out.into())
}

/// Returns the hash of a row. `seed` differs between tables and keys.
pub(crate) fn hash(seed: u64, canon: &Canon) -> u64 {
    FixedState::with_seed(seed).hash_one(canon)
}

/// Returns the values of a row, with NULL, exactly as they are stored; `None` if equality cannot be
/// decided.
///
/// Returned rows are assigned to writes by these bytes. If the server changed a value when it
/// stored it, no write matches.
pub(crate) fn contents<'a>(
    parts: impl IntoIterator<Item = (&'a Column, &'a Cell)>,
) -> Option<Canon> {
    let mut out = Vec::new();
    for (column, cell) in parts {
        match (cell, column.kind) {
            (Cell::NULL, _) => out.push(0),
            (cell, kind) => {
                out.push(1);
                match (kind, cell) {
                    (
                        Kind::Text | Kind::Enum | Kind::Json | Kind::Blob | Kind::Vector,
                        Cell::Bytes(bytes),
                    ) => {
                        push_bytes(bytes, &mut out);
                    }
                    (Kind::Double, cell) => {
                        out.extend_from_slice(&double(cell)?.to_bits().to_be_bytes());
                    }
                    _ => equal(column, cell, &mut out)?,
                }
            }
        }
    }
    Some(out.into())
}

fn double(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Double(x) => Some(*x),
        #[expect(clippy::cast_precision_loss, reason = "as the server stores it")]
        Cell::Int(n) => Some(*n as f64),
        Cell::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
        _ => None,
    }
}

/// Appends bytes that are equal for values that the server compares as equal.
fn equal(column: &Column, cell: &Cell, out: &mut Vec<u8>) -> Option<()> {
    match (column.kind, cell) {
        (Kind::Int | Kind::Bool | Kind::Bit, Cell::Int(n)) => push_int(i128::from(*n), out),
        (Kind::Int | Kind::Bool | Kind::Bit, Cell::UInt(n)) => push_int(i128::from(*n), out),
        // The form in which the server returns a BIT.
        (Kind::Bit, Cell::Bytes(bytes)) if bytes.len() <= 8 => {
            push_int(bytes.iter().fold(0, |n, b| n << 8 | i128::from(*b)), out);
        }
        // Years of two digits denote others.
        (Kind::Year, Cell::Int(n)) if *n > 1900 => push_int(i128::from(*n), out),
        (Kind::Year, Cell::UInt(n)) if *n > 1900 => push_int(i128::from(*n), out),
        (Kind::Decimal(digits, scale), Cell::Int(n)) => {
            push_decimal(&n.to_string(), digits, scale, out)?;
        }
        (Kind::Decimal(digits, scale), Cell::Bytes(bytes)) => {
            push_decimal(std::str::from_utf8(bytes).ok()?, digits, scale, out)?;
        }
        (Kind::Date, Cell::Bytes(bytes)) => {
            let days = read_date(std::str::from_utf8(bytes).ok()?)?;
            push_int(days.into(), out);
        }
        (Kind::DateTime | Kind::Timestamp, Cell::Bytes(bytes)) => {
            let moment = IsoMoment::read(std::str::from_utf8(bytes).ok()?)?;
            // More digits than the column has are rounded.
            let finest = 10_i64.pow(6 - u32::try_from(column.length.min(6)).ok()?);
            (moment.utc() % finest == 0).then_some(())?;
            push_int(i128::from(moment.utc()), out);
        }
        (Kind::Date, Cell::Date(year, month, day, ..)) => {
            let moment = micros_of((*year, *month, *day), (0, 0, 0), 0)?;
            push_int((moment / MICROS_OF_DAY).into(), out);
        }
        (Kind::DateTime | Kind::Timestamp, Cell::Date(year, month, day, h, m, s, micros)) => {
            let moment = micros_of((*year, *month, *day), (*h, *m, *s), *micros)?;
            push_int(moment.into(), out);
        }
        (Kind::Text | Kind::Char | Kind::Enum, Cell::Bytes(bytes)) => {
            push_text(column, bytes, out)?;
        }
        (Kind::Binary, Cell::Bytes(bytes)) if bytes.len() == column.length => {
            push_bytes(bytes, out);
        }
        (Kind::Blob, Cell::Bytes(bytes)) => push_bytes(bytes, out),
        _ => return None,
    }
    Some(())
}

fn push_int(n: i128, out: &mut Vec<u8>) {
    // Nine bytes hold all whole numbers of 64 bits, signed or not. The sign bit is inverted so that
    // they sort.
    let shifted = n + (1 << 64);
    out.extend(shifted.to_be_bytes().into_iter().skip(7));
}

/// Appends a part and its length, so that the bytes sort and different parts give different bytes.
fn push_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(bytes);
    out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
}

fn push_decimal(digits: &str, precision: usize, scale: usize, out: &mut Vec<u8>) -> Option<()> {
    let (negative, whole, fraction) = plain(digits)?;
    if fraction.len() > scale || whole.len() > precision.saturating_sub(scale) {
        return None;
    }
    push_bytes(
        format!("{}{whole}.{fraction}", if negative { "-" } else { "" }).as_bytes(),
        out,
    );
    Some(())
}

fn push_text(column: &Column, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let printable = bytes.iter().all(|b| (b' '..=b'~').contains(b));
    // Blanks at the end count in some collations and columns, and not in others.
    let plain = printable && bytes.last() != Some(&b' ');
    let fits = column.length == 0 || bytes.len() <= column.length;
    if !plain || !fits {
        return None;
    }
    match collation(&column.collation)? {
        Case::Matters => push_bytes(bytes, out),
        Case::IsFolded => push_bytes(&bytes.to_ascii_lowercase(), out),
    }
    Some(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Matters,
    IsFolded,
}

/// Returns how a collation compares printable ASCII; `None` if it has letters of two characters, or
/// other special rules.
fn collation(name: &str) -> Option<Case> {
    // Some names of MariaDB's newest collations have no character set.
    let sets = ["utf8mb4_", "utf8mb3_", "utf8_", "ascii_", "latin1_"];
    let rest = sets
        .iter()
        .find_map(|set| name.strip_prefix(set))
        .unwrap_or(name);
    match rest {
        "bin"
        | "nopad_bin"
        | "0900_bin"
        | "0900_as_cs"
        | "uca1400_as_cs"
        | "uca1400_nopad_as_cs" => Some(Case::Matters),
        "general_ci"
        | "general_nopad_ci"
        | "unicode_ci"
        | "unicode_nopad_ci"
        | "unicode_520_ci"
        | "unicode_520_nopad_ci"
        | "0900_ai_ci"
        | "0900_as_ci"
        | "uca1400_ai_ci"
        | "uca1400_as_ci"
        | "uca1400_nopad_ai_ci"
        | "uca1400_nopad_as_ci" => Some(Case::IsFolded),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::column::sample;

    fn key(kind: Kind, cell: impl Into<Cell>) -> RowKey {
        row_key([(&sample(kind), &cell.into())])
    }

    #[test]
    fn spellings_of_one_value_are_one_key() {
        assert_eq!(key(Kind::Int, 7), key(Kind::Int, 7_u64));
        assert_eq!(key(Kind::Text, "AbC"), key(Kind::Text, "aBc"));
        assert_eq!(
            key(Kind::Decimal(5, 2), "1.5"),
            key(Kind::Decimal(5, 2), "01.50")
        );
        assert_eq!(
            key(Kind::DateTime, "2020-01-01T00:00:00"),
            key(Kind::DateTime, Cell::Date(2020, 1, 1, 0, 0, 0, 0))
        );
        assert_eq!(key(Kind::Int, Cell::NULL), RowKey::NoRow);
        for unknown in ["é", "a ", "tab\t"] {
            assert_eq!(key(Kind::Text, unknown), RowKey::Unknown);
        }
        assert_eq!(key(Kind::Decimal(5, 2), "1.505"), RowKey::Unknown);
        // The server reads what follows minutes as seconds.
        for unknown in ["2020-01-01T00:00:00.5", "2020-01-01T00:01.0"] {
            assert_eq!(key(Kind::DateTime, unknown), RowKey::Unknown);
        }
        let mut hungarian = sample(Kind::Text);
        hungarian.collation = "utf8mb4_hungarian_ci".into();
        assert_eq!(row_key([(&hungarian, &Cell::from("a"))]), RowKey::Unknown);
    }

    #[test]
    fn keys_sort_as_values_do() {
        let order = |cell: Cell| match key(Kind::Int, cell) {
            RowKey::Row(canon) => canon,
            other => panic!("{other:?}"),
        };
        assert!(order(Cell::Int(-5)) < order(Cell::Int(3)));
        assert!(order(Cell::Int(i64::MIN)) < order(Cell::Int(i64::MAX)));
        assert!(order(Cell::Int(i64::MAX)) < order(Cell::UInt(u64::MAX)));
    }

    #[test]
    fn contents_tell_every_spelling_apart() {
        let of = |cell: Cell| contents([(&sample(Kind::Text), &cell)]).unwrap();
        assert_ne!(of("a".into()), of("A".into()));
        assert_ne!(of(Cell::NULL), of("".into()));
        let double = sample(Kind::Double);
        assert_eq!(
            contents([(&double, &Cell::from("0.5"))]),
            contents([(&double, &Cell::Double(0.5))])
        );
    }
}
