//! The statement of many writes: the same for every number of them.
//!
//! Each form tells exactly which writes took place, or fails as a whole, so that nothing has to be
//! believed:
//!
//! - an insert that gives nothing back counts itself and divides by zero if a row is missing;
//! - everything else gives back the place of each write that took place.
//!
//! `INSERT .. RETURNING` can neither name its source nor is its order promised, so rows are matched
//! by a unique key, which is why a key is needed there; a key that the database would have
//! generated is generated in the source.

mod filter;
mod match_key;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use self::filter::{push_conditions, test as condition};

use windrow_core::{Name, OnConflict, Op, Returning, Shape};
use windrow_database::quote::{push_ident, push_idents, push_table};

use self::match_key::{KeyPart, telling_key};
use super::clock_use::RowClock;
use super::statement::{is_upsert, push, push_conflict, push_results, push_verb, result_names};
use crate::catalog::column::{ArrayForm, Column};
use crate::catalog::table::{Facts, Unique};
use crate::compiled::Fused;
use crate::moment::DISTANCES;

/// What the texts are made of.
struct Text<'a> {
    shape: &'a Shape,
    facts: &'a Facts,
    /// Columns of the row of values: the shape's, then the key's.
    row: &'a [&'a Column],
    key: &'a [Name],
    clock: &'a RowClock,
    results: Vec<Name>,
}

/// The set-based form of a shape, if there is one that tells the truth.
///
/// `row`: the columns of the write's values in their order; `key`: the names of its key's columns.
pub(crate) fn fused(
    shape: &Shape,
    facts: &Facts,
    row: &[&Column],
    key: &[Name],
    clock: &RowClock,
) -> Option<Fused> {
    let text = Text::new(shape, facts, row, key, clock).filter(|text| !text.moves_keys())?;
    match (shape.op, shape.on_conflict) {
        (Op::Insert, OnConflict::Error | OnConflict::Update)
            if shape.returning == Returning::Nothing =>
        {
            Some(text.counted_insert())
        }
        (Op::Insert, OnConflict::Ignore) => text.keyed_insert(true, &text.conflict()),
        (Op::Insert, _) => text.keyed_insert(false, &text.conflict()),
        (Op::Update | Op::Delete | Op::Get, _) => text.by_key(),
    }
}

/// The form of a plain insert that leaves out rows that would fail, and tells which they are:
/// duplicates, and rows that a check or a foreign key would refuse. What it leaves out wrongly
/// succeeds on its own; what it lets through wrongly fails as a whole.
pub(crate) fn telling(
    shape: &Shape,
    facts: &Facts,
    row: &[&Column],
    clock: &RowClock,
) -> Option<Fused> {
    let text = Text::new(shape, facts, row, &[], clock)?;
    text.keyed_insert(true, " ON CONFLICT DO NOTHING")
        .or_else(|| text.filtered_insert())
}

impl<'a> Text<'a> {
    fn new(
        shape: &'a Shape,
        facts: &'a Facts,
        row: &'a [&'a Column],
        key: &'a [Name],
        clock: &'a RowClock,
    ) -> Option<Self> {
        let carried = row.iter().all(|column| column.array_param().is_some());
        (facts.fuses && carried && !row.is_empty()).then(|| Self {
            shape,
            facts,
            row,
            key,
            clock,
            results: result_names(&shape.returning, facts),
        })
    }

    /// A row for each write that took place begins with its place (from 1) and a column that means
    /// nothing.
    fn statement(&self, sql: String, counted: bool) -> Fused {
        let types = self.row.iter().filter_map(|column| column.array_param());
        let moments = self.has_moments();
        Fused {
            sql,
            types: types.chain(moments.then_some(DISTANCES)).collect(),
            counted,
            moments,
            found_by: [].into(),
        }
    }

    /// True if the source has a moment for each row.
    fn has_moments(&self) -> bool {
        !self.clock.defaults.is_empty()
    }

    /// The columns whose defaults are written over the moment of the row, but for those that the
    /// source generates.
    fn filled(&self, generated: &[(&Column, &str)]) -> Vec<(&Column, &str)> {
        let defaults = self.clock.defaults.iter();
        let filled = defaults.filter_map(|(place, sql)| {
            let column = self.facts.columns.get(*place)?;
            let known = generated.iter().any(|(other, _)| other.name == column.name);
            (!known).then_some((column, &**sql))
        });
        filled.collect()
    }

    fn push_filled(&self, sql: &mut String, filled: &[(&Column, &str)]) {
        for (_, value) in filled {
            push(sql, format_args!(", {value}"));
        }
    }

    fn conflict(&self) -> String {
        let mut sql = String::new();
        if !is_upsert(self.shape, self.key, self.facts) {
            push_conflict(&mut sql, self.shape, self.key);
        }
        sql
    }

    fn counted_insert(&self) -> Fused {
        let mut sql = String::from("WITH i AS (");
        let filled = self.filled(&[]);
        self.push_insert(&mut sql, &columns_of(&filled));
        sql.push_str(" SELECT ");
        self.push_values(&mut sql);
        self.push_filled(&mut sql, &filled);
        sql.push_str(" FROM ");
        self.push_source(&mut sql, false);
        sql.push_str(&self.conflict());
        sql.push_str(" RETURNING 1) SELECT 1 / (count(*) = cardinality($1))::int FROM i");
        self.statement(sql, true)
    }

    /// An insert whose rows are matched to their source by a key. `may_miss`: a row that is not
    /// inserted is an answer; else it must not be.
    fn keyed_insert(&self, may_miss: bool, conflict: &str) -> Option<Fused> {
        let leaves_out = may_miss && self.shape.on_conflict == OnConflict::Error;
        let by = (self.key, !leaves_out);
        let (unique, parts) = telling_key(self.shape, self.facts, by, self.clock)?;
        let generated: Vec<(&Column, &str)> = unique
            .columns
            .iter()
            .zip(&parts)
            .filter_map(|(place, part)| match part {
                KeyPart::Generated(default) => Some((self.facts.columns.get(*place)?, *default)),
                KeyPart::Given(_) | KeyPart::Nullable(_) => None,
            })
            .collect();
        let mut sql = String::from("WITH w AS MATERIALIZED (SELECT w.*");
        for (number, (_, default)) in generated.iter().enumerate() {
            push(&mut sql, format_args!(", {default} AS g{number}"));
        }
        sql.push_str(" FROM ");
        self.push_source(&mut sql, true);
        // An upsert or a first attempt is not filtered: what fails there must be known to fail.
        if leaves_out {
            self.push_filter(&mut sql);
        }
        sql.push_str("), i AS (");
        let filled = self.filled(&generated);
        let columns = columns_of(&generated);
        self.push_insert(&mut sql, &[columns, columns_of(&filled)].concat());
        sql.push_str(" SELECT ");
        self.push_values(&mut sql);
        for number in 0..generated.len() {
            push(&mut sql, format_args!(", w.g{number}"));
        }
        self.push_filled(&mut sql, &filled);
        sql.push_str(" FROM w");
        sql.push_str(conflict);
        self.push_returning(&mut sql, unique);
        self.push_match(&mut sql, &parts, may_miss);
        let found_by = parts.iter().filter_map(KeyPart::nullable);
        Some(Fused {
            found_by: found_by.collect(),
            ..self.statement(sql, false)
        })
    }

    /// An insert into a table without a key: all rows that fulfil its conditions, or none.
    fn filtered_insert(&self) -> Option<Fused> {
        let mut filter = String::new();
        self.push_filter(&mut filter);
        if filter.is_empty() || !self.results.is_empty() || !self.facts.uniques.is_empty() {
            return None;
        }
        let mut sql = String::from("WITH w AS MATERIALIZED (SELECT w.* FROM ");
        self.push_source(&mut sql, true);
        sql.push_str(&filter);
        sql.push_str("), i AS (");
        let filled = self.filled(&[]);
        self.push_insert(&mut sql, &columns_of(&filled));
        sql.push_str(" SELECT ");
        self.push_values(&mut sql);
        self.push_filled(&mut sql, &filled);
        sql.push_str(" FROM w RETURNING 1) SELECT w.ord, 1 / ((SELECT count(*) FROM i) = (SELECT count(*) FROM w))::int FROM w");
        Some(self.statement(sql, false))
    }

    fn push_returning(&self, sql: &mut String, unique: &Unique) {
        sql.push_str(" RETURNING ");
        for (number, place) in unique.columns.iter().enumerate() {
            sql.push_str(if number > 0 { ", " } else { "" });
            if let Some(column) = self.facts.columns.get(*place) {
                push_ident(sql, &column.name);
            }
            push(sql, format_args!(" AS \"windrow k{number}\""));
        }
        if !self.results.is_empty() {
            sql.push_str(", ");
            push_results(sql, None, &self.results, self.facts);
        }
    }

    fn push_match(&self, sql: &mut String, parts: &[KeyPart<'_>], may_miss: bool) {
        sql.push_str(") SELECT w.ord, ");
        sql.push_str(if may_miss {
            "1"
        } else {
            "1 / (i.\"windrow k0\" IS NOT NULL)::int"
        });
        for name in &self.results {
            sql.push_str(", i.");
            push_ident(sql, name);
        }
        sql.push_str(if may_miss {
            " FROM w JOIN i ON "
        } else {
            " FROM w LEFT JOIN i ON "
        });
        let mut generated = 0;
        for (number, part) in parts.iter().enumerate() {
            sql.push_str(if number > 0 { " AND " } else { "" });
            push(sql, format_args!("i.\"windrow k{number}\" = "));
            match part {
                KeyPart::Given(place) | KeyPart::Nullable(place) => self.push_value(sql, *place),
                KeyPart::Generated(_) => {
                    push(sql, format_args!("w.g{generated}"));
                    generated += 1;
                }
            }
        }
    }

    /// Update, delete or read by a full unique key. The last values of the row are the key's.
    fn by_key(&self) -> Option<Fused> {
        let values = self.shape.columns.len();
        let places: Option<Vec<usize>> = self.key.iter().map(|n| self.facts.place_of(n)).collect();
        let unique = self.facts.unique_of(&places?)?;
        let keys = self.row.get(values..)?;
        let exact = keys.len() == unique.columns.len() && keys.iter().all(|c| c.makes_keys());
        if !exact {
            return None;
        }
        let mut sql = String::with_capacity(256);
        match self.shape.op {
            Op::Update => self.push_update(&mut sql),
            Op::Delete => {
                sql.push_str("DELETE FROM ");
                push_table(&mut sql, &self.shape.table);
                sql.push_str(" AS t USING ");
            }
            _ => {
                sql.push_str("SELECT w.ord, 1");
                self.push_results_of(&mut sql, "t");
                sql.push_str(" FROM ");
                push_table(&mut sql, &self.shape.table);
                sql.push_str(" AS t, ");
            }
        }
        self.push_hidden_source(&mut sql);
        for (number, column) in keys.iter().enumerate() {
            sql.push_str(if number > 0 { " AND t." } else { " WHERE t." });
            push_ident(&mut sql, &column.name);
            sql.push_str(" = ");
            self.push_value(&mut sql, values + number);
        }
        if self.shape.op != Op::Get {
            sql.push_str(" RETURNING w.ord, 1");
            self.push_results_of(&mut sql, "t");
        }
        Some(self.statement(sql, false))
    }

    /// An update of a unique column, also by an upsert, frees one value and takes another: there
    /// the order of the rows matters.
    fn moves_keys(&self) -> bool {
        let facts = self.facts;
        let is_unique = |name: &Name| {
            let place = facts.place_of(name);
            let mut uniques = facts.uniques.iter();
            facts.hidden_unique || uniques.any(|u| place.is_some_and(|p| u.columns.contains(&p)))
        };
        let mut changed = self.shape.columns.iter();
        match (self.shape.op, self.shape.on_conflict) {
            (Op::Update, _) => changed.any(is_unique),
            (Op::Insert, OnConflict::Update) => {
                changed.any(|name| !self.key.contains(name) && is_unique(name))
            }
            _ => false,
        }
    }

    fn push_update(&self, sql: &mut String) {
        sql.push_str("UPDATE ");
        push_table(sql, &self.shape.table);
        sql.push_str(" AS t SET ");
        for (number, name) in self.shape.columns.iter().enumerate() {
            sql.push_str(if number > 0 { ", " } else { "" });
            push_ident(sql, name);
            sql.push_str(" = ");
            self.push_value(sql, number);
        }
        sql.push_str(" FROM ");
    }

    fn push_results_of(&self, sql: &mut String, from: &str) {
        if !self.results.is_empty() {
            sql.push_str(", ");
            push_results(sql, Some(from), &self.results, self.facts);
        }
    }

    /// `INSERT INTO t (columns)`, with further columns behind the shape's own.
    fn push_insert(&self, sql: &mut String, more: &[&Column]) {
        push_verb(sql, self.shape, self.key, self.facts);
        push_table(sql, &self.shape.table);
        sql.push_str(" (");
        let names = self.shape.columns.iter().map(|n| &**n);
        push_idents(sql, names.chain(more.iter().map(|c| &*c.name)));
        sql.push(')');
        if self.facts.overrides || more.iter().any(|column| column.identity) {
            sql.push_str(" OVERRIDING SYSTEM VALUE");
        }
    }

    fn push_values(&self, sql: &mut String) {
        for place in 0..self.shape.columns.len() {
            sql.push_str(if place > 0 { ", " } else { "" });
            self.push_value(sql, place);
        }
    }

    /// One value of the source.
    fn push_value(&self, sql: &mut String, place: usize) {
        push(sql, format_args!("w.p{}", place + 1));
        let column = self.row.get(place);
        if let Some(column) = column.filter(|c| c.form == ArrayForm::Cast) {
            push(sql, format_args!("::{}", column.type_name));
        }
    }
}

fn columns_of<'c>(columns: &[(&'c Column, &str)]) -> Vec<&'c Column> {
    columns.iter().map(|(column, _)| *column).collect()
}
