//! Chooses the key by which a written row is read, on servers that return no rows. The key is
//! chosen before the write is sent: its values are known then, and no trigger changes them.

use mysql_async::Value as Cell;
use windrow_core::{Fault, FaultClass};

use crate::catalog::table::{Unique, same};
use crate::executor::batch::BoundWrite;
use crate::executor::plan::{Action, Compiled};

/// A unique key of a row that is about to be inserted.
#[derive(Debug)]
pub(crate) struct NamingKey {
    pub(crate) columns: Box<[usize]>,
    parts: Vec<KeyPart>,
}

/// A value of a key.
#[derive(Debug)]
enum KeyPart {
    Given(Cell),
    /// A number that the server generates, unless it stores the zero that was given.
    Counted(Option<Cell>),
}

impl NamingKey {
    /// Returns a key that names the row for certain, if there is one.
    pub(crate) fn of(bound: &BoundWrite) -> Option<Self> {
        let compiled = &*bound.compiled;
        let mut uniques = compiled.table.uniques.iter();
        uniques.find_map(|unique| {
            // The row that an upsert meets has other values in its other keys.
            let names = compiled.action != Action::Upsert || same(&unique.columns, &compiled.key);
            names.then(|| Self::by(unique, bound)).flatten()
        })
    }

    fn by(unique: &Unique, bound: &BoundWrite) -> Option<Self> {
        let parts = unique.columns.iter().map(|place| part(*place, bound));
        Some(Self {
            columns: unique.columns.clone(),
            parts: parts.collect::<Option<_>>()?,
        })
    }

    /// Returns the key's values. `counted` is the number that the server generated for the row.
    pub(crate) fn cells(self, counted: Option<u64>) -> Option<Vec<Cell>> {
        let cell = |part| match part {
            KeyPart::Given(cell) => Some(cell),
            KeyPart::Counted(given) => counted.map(Cell::UInt).or(given),
        };
        self.parts.into_iter().map(cell).collect()
    }
}

fn part(place: usize, bound: &BoundWrite) -> Option<KeyPart> {
    let compiled = &*bound.compiled;
    let (op, also) = compiled.action.fires();
    if compiled.table.may_change(op, also, place) {
        return None;
    }
    let counts = compiled.table.columns.get(place)?.auto;
    let at = compiled.columns.iter().position(|column| *column == place);
    let given = at.and_then(|at| bound.row.get(at));
    match given.filter(|cell| **cell != Cell::NULL) {
        Some(cell) if counts && is_zero(cell) => Some(KeyPart::Counted(Some(cell.clone()))),
        Some(cell) => Some(KeyPart::Given(cell.clone())),
        None => counts.then_some(KeyPart::Counted(None)),
    }
}

/// Returns true for a value that is stored as 0 in a column of numbers, for which the server
/// generates a number.
fn is_zero(cell: &Cell) -> bool {
    match cell {
        Cell::Int(n) => *n == 0,
        Cell::UInt(n) => *n == 0,
        Cell::Bytes(digits) => {
            let digits = std::str::from_utf8(digits).unwrap_or_default();
            digits.trim().parse::<f64>().is_ok_and(|n| n.round() == 0.0)
        }
        _ => false,
    }
}

/// Returns true if an update's row can be found by its key once it is changed.
pub(crate) fn keeps_key(compiled: &Compiled) -> bool {
    let (op, also) = compiled.action.fires();
    let mut key = compiled.key.iter();
    !key.any(|place| compiled.table.may_change(op, also, *place))
}

/// Returns the fault of a write that is refused before it is sent.
pub(crate) fn unnamed(compiled: &Compiled) -> Fault {
    unsupported(format!(
        "the written row of {} cannot be given back: this server has no RETURNING for it, and no unique key \
         of the row is known before it is written; give the values of a key that no trigger changes, \
         or return nothing",
        compiled.table.name
    ))
}

/// Returns the fault of a write that was undone because its row was not found again.
pub(crate) fn not_found_again(compiled: &Compiled) -> Fault {
    unsupported(format!(
        "the written row of {} cannot be given back: the server stored another key than it was given; \
         nothing was written; give the key as the column stores it, or return nothing",
        compiled.table.name
    ))
}

fn unsupported(message: String) -> Fault {
    Fault::new(FaultClass::Unsupported, "0A000", message)
}
