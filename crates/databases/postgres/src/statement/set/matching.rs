//! The key by which an inserted row is matched to its source.

use super::{KeyPart, Match, Matched, SetBuilder};
use crate::catalog::column::Column;
use crate::catalog::table::Unique;
use crate::statement::defaults::takes;
use crate::statement::parsed::{bare, given};

impl<'a> SetBuilder<'a> {
    /// Finds a key by which an inserted row is matched to its source: its values are all given, or
    /// else generated in the source. A row that an upsert changes is found by the key of the upsert
    /// alone. NULL is never found again: a key without NULL is preferred, and no other serves if
    /// rows are left out.
    pub(super) fn matching(&self, matched: Matched) -> Option<Match<'a>> {
        let update = self.parsed.conflict.as_ref().is_some_and(|c| c.update);
        let arbiter = self.arbiter();
        let uniques = self.facts.uniques.iter().filter(|u| u.immediate);
        let fitting = uniques.filter(|u| !update || arbiter.is_some_and(|a| std::ptr::eq(a, *u)));
        let found = fitting.filter_map(|unique| {
            let parts = unique.columns.iter().map(|place| self.part(*place));
            Some(Match {
                unique,
                parts: parts.collect::<Option<_>>()?,
            })
        });
        let may_be_null = |found: &Match<'_>| self.nullable(found.unique).next().is_some();
        let is_generated = |part: &KeyPart<'_>| matches!(part, KeyPart::Generated(..));
        let best =
            found.min_by_key(|found| (may_be_null(found), found.parts.iter().any(is_generated)));
        best.filter(|best| matched != Matched::Telling || !may_be_null(best))
    }

    /// Returns the parameters of a key's columns that may be NULL.
    pub(super) fn nullable(&self, unique: &'a Unique) -> impl Iterator<Item = usize> {
        let columns = unique.columns.iter().filter(|place| {
            let column = self.facts.columns.get(**place);
            column.is_some_and(|column| !column.not_null)
        });
        columns.filter_map(|place| match self.part(*place)? {
            KeyPart::Parameter(parameter) => Some(parameter),
            KeyPart::Generated(..) | KeyPart::Moment(_) => None,
        })
    }

    fn part(&self, place: usize) -> Option<KeyPart<'a>> {
        let column = self.facts.columns.get(place)?;
        if let Some(taken) = self.taken.filter(|taken| taken.name == column.name) {
            let source = taken.source.as_deref().filter(|_| column.narrowed < 0)?;
            return Some(KeyPart::Generated(&column.name, source));
        }
        if self.clock.exact.contains(&column.name) {
            return Some(KeyPart::Moment(self.moment_of(column)?));
        }
        let given = given(self.parsed, self.facts)?;
        let Some((_, value)) = given.into_iter().find(|(name, _)| **name == column.name) else {
            return self.generated_part(column);
        };
        let parameter = bare(value)?;
        // Two values that are equal to the server might not be known to be equal here.
        let makes_keys = self.parameters.get(parameter)?.makes_keys;
        makes_keys.then_some(KeyPart::Parameter(parameter))
    }

    /// Returns the column's own default, to be evaluated in the source. A value that is narrowed on
    /// its way into the column would not be found again.
    fn generated_part(&self, column: &'a Column) -> Option<KeyPart<'a>> {
        let mut moments = self.clock.defaults.iter();
        let is_moment = moments.any(|(name, _)| *name == column.name);
        let default = column.default.as_deref()?;
        // A sequence of which only the name is known may be another one by then.
        let is_known = column.sequence != 0 || self.facts.dialect.plain_catalog;
        let is_new = is_new(default) && (is_known || !takes(column));
        let is_found = column.makes_keys() && column.not_null && column.narrowed < 0;
        (self.generates_keys && is_new && is_found && !is_moment)
            .then_some(KeyPart::Generated(&column.name, default))
    }

    /// Gives the value of a column that holds the moment of the row.
    fn moment_of(&self, column: &Column) -> Option<String> {
        let mut defaults = self.clock.defaults.iter();
        let value = match defaults.find(|(name, _)| *name == column.name) {
            Some((_, sql)) => sql.clone(),
            None => {
                let given = given(self.parsed, self.facts)?;
                let (_, value) = given.into_iter().find(|(name, _)| **name == column.name)?;
                let mut sql = String::new();
                self.push_expression(&mut sql, value);
                sql
            }
        };
        Some(format!("(({value})::{})", column.type_name))
    }
}

/// Returns true for defaults that give each row a value that no other has.
fn is_new(default: &str) -> bool {
    let generators = ["nextval(", "uuid", "ulid", "unique_rowid("];
    generators.iter().any(|name| default.contains(name))
}
