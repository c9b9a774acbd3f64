//! Finds what may still refuse a row whose preview was good.

use windrow_core::{Doubt, PreviewReference};

use super::columns::{Origin, RowColumn, makes_new};
use crate::catalog::column::Kind;
use crate::catalog::table::{Condition, Facts, ReferredKey, Test};

/// The keys by which a row may be refused.
pub(super) struct Certainty {
    pub(super) new_keys: Box<[(i16, usize)]>,
    pub(super) references: Box<[PreviewReference]>,
    pub(super) doubt: Option<&'static Doubt>,
}

/// Returns the reason why no row of a table is certain before it is stored.
pub(crate) fn of_table(facts: &Facts) -> Option<&'static Doubt> {
    let print = facts.print.as_ref();
    match () {
        () if facts.has_hooks => Some(&Doubt::TRIGGER),
        () if print.is_some_and(|print| print.secured) => Some(&Doubt::POLICY),
        () if !facts.is_ordinary => Some(&Doubt::KIND),
        () if print.is_none_or(|print| print.oids.len() != 1) => Some(&Doubt::KIND),
        () if facts.has_other_conditions => Some(&Doubt::CONDITION),
        () => None,
    }
}

/// Returns the reason why a row of a table that takes all its defaults is not certain before it is
/// stored; `None` if it is.
pub(crate) fn of_plainest(facts: &Facts) -> Option<&'static Doubt> {
    let is_new = |place: usize| {
        let column = facts.columns.get(place);
        column.is_some_and(|c| c.default.as_deref().is_some_and(|sql| makes_new(c, sql)))
    };
    let mut targets = facts.conditions.iter().filter_map(foreign);
    let of_target = || targets.next().map(|_| &Doubt::FOREIGN_KEY);
    of_table(facts)
        .or_else(|| of_indexes(facts, is_new))
        .or_else(of_target)
}

/// Returns the reason why an index may refuse a row. `is_new`: tells if the column at a place has a
/// value that no other row has.
fn of_indexes(facts: &Facts, is_new: impl Fn(usize) -> bool) -> Option<&'static Doubt> {
    let mut uniques = facts.uniques.iter();
    match () {
        () if facts.has_odd_indexes || !facts.lists_keys => Some(&Doubt::INDEX),
        () if !uniques.all(|unique| unique.columns.iter().any(|place| is_new(*place))) => {
            Some(&Doubt::GIVEN_KEY)
        }
        () => None,
    }
}

/// Returns the keys of rows of a table. `stored`: the columns of its write.
pub(super) fn of(facts: &Facts, stored: &[&RowColumn<'_>]) -> Certainty {
    let new = || stored.iter().enumerate().filter(|(_, c)| c.is_new());
    let of_indexes = of_indexes(facts, |place| new().any(|(_, c)| c.place == place));
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
        doubt: of_indexes.or(of_reference),
    }
}

fn foreign(condition: &Condition) -> Option<(&Condition, &ReferredKey)> {
    match &condition.test {
        // One that is deferred is reported at COMMIT, as it would be alone.
        Test::Reference(_, _, target) if !target.is_deferred => Some((condition, target)),
        Test::Reference(..) | Test::Check(_) => None,
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
) -> Result<Option<PreviewReference>, &'static Doubt> {
    let is_null = |place: &usize| {
        let mut stored = stored.iter();
        stored.all(|c| c.place != *place || c.origin == Origin::Null)
    };
    let ([place], [number]) = (&*condition.columns, &*target.columns) else {
        let is_free = condition.columns.iter().all(is_null);
        return if is_free {
            Ok(None)
        } else {
            Err(&Doubt::REFERENCE)
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
        None => Err(&Doubt::REFERENCE),
    }
}
