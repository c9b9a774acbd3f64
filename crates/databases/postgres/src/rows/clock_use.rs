//! Where the defaults of an inserted row read the transaction's clock.

use windrow_core::{Op, Shape};
use windrow_proof::{Clock, Trusted, clock};

use crate::catalog::column::Column;
use crate::catalog::level;
use crate::catalog::table::Facts;
use crate::moment::Moment;

/// The moment of a row of the source.
pub(crate) const MOMENT: &str = "(pg_catalog.transaction_timestamp() OPERATOR(pg_catalog.+) w.m)";

/// The use that the writes of a shape make of the transaction's clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowClock {
    pub(crate) moment: Moment,
    /// No set-based statement tells the truth.
    pub(crate) no_sets: bool,
    /// Places in the table's columns of those whose defaults read it, with their values over
    /// [`MOMENT`].
    pub(crate) defaults: Vec<(usize, String)>,
}

impl RowClock {
    /// Looks at the defaults that a shape leaves to the table, and at what the table runs.
    pub(crate) fn of(
        shape: &Shape,
        key: &[windrow_core::Name],
        facts: &Facts,
        trusted: &Trusted,
    ) -> Self {
        let mut found = Self::default();
        if facts.dialect.plain_catalog || shape.op == Op::Get {
            return found;
        }
        let (mut looked, mut shared) = (false, Vec::new());
        let left =
            |column: &&Column| shape.op == Op::Insert && !shape.columns.contains(&column.name);
        let columns = facts.columns.iter().enumerate();
        for (place, column) in columns.filter(|(_, column)| left(column)) {
            let Some(default) = column.default.as_deref() else {
                continue;
            };
            match clock(default, MOMENT) {
                Clock::Unread => {}
                Clock::Read { sql, .. } if column.may_give => {
                    looked |= facts.looks_at(&column.name);
                    found.defaults.push((place, sql));
                }
                Clock::Read { .. } | Clock::Unclear => shared.push(&*column.name),
            }
        }
        let clocked = level::clocked(shape, key, facts, trusted);
        shared.extend(clocked.stamps.iter().map(|name| &**name));
        let looks_at_shared = shared.iter().any(|name| facts.looks_at(name));
        let uses = !found.defaults.is_empty() || !shared.is_empty();
        let compared = clocked.looks.is_some() && uses;
        found.no_sets = looks_at_shared || compared;
        found.moment = match () {
            () if looked || found.no_sets => Moment::Own,
            () if !shared.is_empty() => Moment::Shared,
            () if uses => Moment::Carried,
            () => Moment::Unread,
        };
        found
    }

    /// The value over [`MOMENT`] that stands in for a column's default.
    pub(crate) fn default_of(&self, place: usize) -> Option<&str> {
        let mut defaults = self.defaults.iter();
        let (_, sql) = defaults.find(|(of, _)| *of == place)?;
        Some(sql)
    }
}
