//! Finds what may still refuse a row whose preview was good.

use windrow_core::PreviewReference;

use super::columns::{Origin, RowColumn};
use crate::catalog::column::Kind;
use crate::catalog::table::{Condition, Facts, ReferredKey, Test};

/// The reason for an index of which it is unknown whether it takes a row.
const ODD_INDEX: &str = "an index that is partial or over an expression";

/// The reason for a unique key that another row may have.
const GIVEN_KEY: &str = "a unique key that is not generated";

/// The reason for a foreign key that is not looked up.
const ODD_REFERENCE: &str = "a foreign key that is not one number or uuid";

/// The keys by which a row may be refused.
pub(super) struct Certainty {
    pub(super) new_keys: Box<[(i16, usize)]>,
    pub(super) references: Box<[PreviewReference]>,
    pub(super) doubt: Option<&'static str>,
}

/// Returns the keys of rows of a table. `stored`: the columns of its write.
pub(super) fn of(facts: &Facts, stored: &[&RowColumn<'_>]) -> Certainty {
    let new = || stored.iter().enumerate().filter(|(_, c)| c.is_new());
    let is_new = |columns: &[usize]| new().any(|(_, c)| columns.contains(&c.place));
    let of_keys =
        (!facts.uniques.iter().all(|unique| is_new(&unique.columns))).then_some(GIVEN_KEY);
    let of_index = facts.has_odd_indexes.then_some(ODD_INDEX);
    let of_list = (!facts.lists_keys).then_some(ODD_INDEX);
    let found = facts.conditions.iter().filter_map(foreign);
    let (mut references, mut of_reference) = (Vec::new(), None);
    for (condition, target) in found {
        match reference(facts, (condition, target), stored) {
            Ok(reference) => references.extend(reference),
            Err(reason) => of_reference = Some(reason),
        }
    }
    Certainty {
        new_keys: new().map(|(place, c)| (c.column.number, place)).collect(),
        references: references.into(),
        doubt: of_index.or(of_list).or(of_keys).or(of_reference),
    }
}

fn foreign(condition: &Condition) -> Option<(&Condition, &ReferredKey)> {
    match &condition.test {
        Test::Reference(_, _, target) => Some((condition, target)),
        Test::Check(_) => None,
    }
}

/// Returns the reference of a row by a foreign key; nothing if the column is always NULL.
///
/// # Errors
/// The reason why rows are not found by the key.
fn reference(
    facts: &Facts,
    (condition, target): (&Condition, &ReferredKey),
    stored: &[&RowColumn<'_>],
) -> Result<Option<PreviewReference>, &'static str> {
    let is_null = |place: &usize| {
        let mut stored = stored.iter();
        stored.all(|c| c.place != *place || c.origin == Origin::Null)
    };
    let ([place], [number]) = (&*condition.columns, &*target.columns) else {
        let is_free = condition.columns.iter().all(is_null);
        return if is_free {
            Ok(None)
        } else {
            Err(ODD_REFERENCE)
        };
    };
    if is_null(place) {
        return Ok(None);
    }
    let kind = facts.columns.get(*place).map(|column| &column.kind);
    let is_simple = matches!(
        kind,
        Some(Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Uuid)
    );
    let value = stored.iter().position(|c| c.place == *place);
    match value.filter(|_| is_simple) {
        Some(value) => Ok(Some(PreviewReference {
            value,
            table: target.table,
            column: *number,
        })),
        None => Err(ODD_REFERENCE),
    }
}
