//! The set-based statement: a statement's own expressions, with a column of arrays in place of each
//! parameter. The same text serves for every number of writes.
//!
//! Each form reports exactly which writes took place, or fails as a whole:
//!
//! - an insert or upsert that returns nothing counts its rows and divides by zero if one is
//!   missing;
//! - everything else returns a row for each write: its place (an int8, from 1), 0 if it did not
//!   take place (an int4), the value that it took from a sequence (an int8, if it takes one), and
//!   the columns that it returns.
//!
//! `INSERT .. RETURNING` can neither name its source nor promises an order, so inserted rows are
//! matched to their source by a unique key.
//!
//! The source and its columns have names with a blank in them, which no column of the table may
//! have: expressions of the statement never find their names in the source.

mod by_key;
mod filter;
mod pieces;
#[cfg(test)]
mod tests;

use windrow_core::{Name, Op, ParsedStatement};
use windrow_database::quote::push_ident;

pub(crate) use self::filter::test as condition;
use super::clock_use::ClockUse;
use super::of_shape::{push, push_verb};
use super::parsed::{given, has_parameters};
use crate::catalog::table::{Facts, Unique};
use crate::moment::DISTANCES;

/// The source of the values, and the beginning of its columns' names.
const W: &str = "\"windrow w\"";
const OURS: &str = "windrow ";

/// A set-based statement: the same for every number of writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fused {
    pub(crate) sql: String,
    /// The types of its parameters: an array each.
    pub(crate) types: Box<[u32]>,
    /// True if the statement counts its rows and fails if one is missing. Otherwise it gives a row
    /// for each write.
    pub(crate) counted: bool,
    /// True if the last parameter holds the distance of each write from the transaction's start.
    pub(crate) moments: bool,
    /// Places of values by which rows are found again: a write that has NULL there runs by itself.
    pub(crate) found_by: Box<[usize]>,
}

/// A parameter of a statement, as it travels in an array.
#[derive(Clone, Debug)]
pub(crate) struct SetParameter {
    /// The type of the array.
    pub(crate) array: u32,
    /// The type that its elements are cast to.
    pub(crate) cast: Option<Box<str>>,
    /// True if the parameter is of a domain: its elements become one only where they are assigned
    /// to a column.
    pub(crate) is_domain: bool,
    /// True if equal values are known to be equal, so that a row is found again by the value.
    pub(crate) makes_keys: bool,
}

/// A column whose value each write takes from a sequence because it gives none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GeneratedColumn {
    pub(crate) name: Name,
    pub(crate) sequence: u32,
    /// The expression that takes the value, if it may be evaluated by itself.
    pub(crate) source: Option<Box<str>>,
    /// True if the role may read the value that was taken.
    pub(crate) is_reported: bool,
}

/// Builds the set-based statements of a statement.
pub(crate) struct SetBuilder<'a> {
    pub(crate) parsed: &'a ParsedStatement,
    pub(crate) facts: &'a Facts,
    pub(crate) clock: &'a ClockUse,
    pub(crate) parameters: &'a [SetParameter],
    /// True if the parameters name the row that an update, a delete or a read is about.
    pub(crate) is_keyed: bool,
    /// The value that each write takes from a sequence, and that is reported to its client.
    pub(crate) taken: Option<&'a GeneratedColumn>,
    /// True if defaults of a key's columns may be evaluated in the source.
    pub(crate) generates_keys: bool,
    /// The number of columns that a write returns.
    pub(crate) width: u16,
}

/// The consequence of a row that is not inserted, for an insert that matches rows to their source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Matched {
    /// All rows fail.
    All,
    /// The row's write is answered as one that did not take place.
    Some,
    /// The row is reported as one that would fail.
    Telling,
}

/// A key by which inserted rows are matched to their source.
struct Match<'a> {
    unique: &'a Unique,
    /// The origin of the value of each of its columns.
    parts: Vec<KeyPart<'a>>,
}

/// The origin of the value of a key's column.
enum KeyPart<'a> {
    /// The parameter at this place.
    Parameter(usize),
    /// The column of this name, generated in the source by this expression.
    Generated(&'a Name, &'a str),
    /// The moment of the row: this expression.
    Moment(String),
}

/// A column that is generated in the source, and the expression for it.
type Generated<'a> = (&'a Name, &'a str);

impl<'a> SetBuilder<'a> {
    /// Returns the set-based form of the statement, if there is one that reports its writes
    /// correctly.
    pub(crate) fn fused(&self) -> Option<Fused> {
        if self.clock.no_sets || !self.is_possible() {
            return None;
        }
        match self.parsed.op {
            Op::Insert => self.insert(),
            Op::Update | Op::Delete | Op::Get => self.by_key(),
        }
    }

    /// Returns the form of a plain insert that leaves out rows that would fail, and reports which
    /// they are: duplicates, and rows that a check or a foreign key would refuse. A row that is
    /// left out by mistake succeeds by itself later; one that is sent by mistake fails the whole
    /// statement.
    pub(crate) fn telling(&self) -> Option<Fused> {
        let plain = self.parsed.op == Op::Insert && self.parsed.conflict.is_none();
        let taken = self.taken.is_none_or(|taken| taken.source.is_some());
        if !plain || !taken || !self.is_possible() {
            return None;
        }
        self.matched_insert(Matched::Telling)
            .or_else(|| self.filtered_insert())
    }

    fn is_possible(&self) -> bool {
        let mut names = self.facts.columns.iter().map(|column| &column.name);
        let some = self.clock.is_carried || !self.parameters.is_empty();
        some && !names.any(|name| name.starts_with(OURS)) && self.domains_are_assigned()
    }

    fn statement(&self, sql: String, counted: bool) -> Fused {
        let types = self.parameters.iter().map(|parameter| parameter.array);
        let moments = self.clock.is_carried;
        Fused {
            sql,
            types: types.chain(moments.then_some(DISTANCES)).collect(),
            counted,
            moments,
            found_by: self
                .upsert_key()
                .map_or_else(Box::default, |key| self.nullable(key).collect()),
        }
    }

    fn insert(&self) -> Option<Fused> {
        let conflict = self.parsed.conflict.as_ref();
        if conflict.is_some_and(|c| has_parameters(&c.sql)) || self.moves_keys() {
            return None;
        }
        let misses = conflict.is_some_and(|c| !c.update || c.has_condition);
        let returns = self.parsed.returning.is_some();
        match self.taken {
            Some(taken) if taken.source.is_none() => None,
            None if !returns && !misses => Some(self.counted_insert()),
            Some(_) if !returns && !misses => Some(self.generating_insert()),
            _ if misses => self.matched_insert(Matched::Some),
            _ => self.matched_insert(Matched::All),
        }
    }

    /// Returns true for an upsert that changes a unique column: it frees one value and takes
    /// another, so the order of the rows matters. Returns true also for one whose key is not known,
    /// because two writes could mean the same row.
    fn moves_keys(&self) -> bool {
        let Some(conflict) = self.parsed.conflict.as_ref().filter(|c| c.update) else {
            return false;
        };
        let mut set = conflict.assignments.iter();
        self.arbiter().is_none() || set.any(|(name, _)| self.facts.is_key(name))
    }

    /// Returns the key that ON CONFLICT .. DO UPDATE names.
    fn upsert_key(&self) -> Option<&'a Unique> {
        let is_upsert = self.parsed.conflict.as_ref().is_some_and(|c| c.update);
        self.arbiter().filter(|_| is_upsert)
    }

    /// Returns the key that ON CONFLICT names.
    fn arbiter(&self) -> Option<&'a Unique> {
        let names = self.parsed.conflict.as_ref()?.columns.as_ref()?;
        let places: Option<Vec<usize>> = names.iter().map(|n| self.facts.place_of(n)).collect();
        self.facts.unique_of(&places?)
    }

    /// Returns an insert or upsert that returns nothing and writes all rows or none.
    fn counted_insert(&self) -> Fused {
        let mut sql = String::from("WITH \"windrow i\" AS (");
        self.push_insert(&mut sql, &[]);
        sql.push_str(" FROM ");
        self.push_source(&mut sql, false);
        self.push_conflict(&mut sql);
        sql.push_str(
            " RETURNING 1) SELECT 1 / (count(*) = cardinality($1))::int FROM \"windrow i\"",
        );
        self.statement(sql, true)
    }

    /// Returns the same form for rows that each take a value from a sequence.
    fn generating_insert(&self) -> Fused {
        let generated = self.generated(None);
        let mut sql = self.materialized(false, &generated);
        sql.push_str("\"windrow i\" AS (");
        self.push_insert(&mut sql, &generated);
        push(&mut sql, format_args!(" FROM {W}"));
        self.push_conflict(&mut sql);
        push(
            &mut sql,
            format_args!(
                " RETURNING 1) SELECT {W}.\"windrow ord\", 1 / ((SELECT count(*) FROM \"windrow i\") = cardinality($1))::int, {W}.\"windrow new 1\" FROM {W}"
            ),
        );
        self.statement(sql, false)
    }

    /// Returns an insert into a table without a key. It writes all rows that fulfil the table's
    /// conditions, or none.
    fn filtered_insert(&self) -> Option<Fused> {
        let is_plain = self.parsed.returning.is_none() && self.taken.is_none();
        let mut filter = String::new();
        self.push_filter(&mut filter);
        if filter.is_empty() || !is_plain || !self.facts.uniques.is_empty() {
            return None;
        }
        let mut sql = self.materialized(true, &[]);
        sql.push_str("\"windrow i\" AS (");
        self.push_insert(&mut sql, &[]);
        push(
            &mut sql,
            format_args!(
                " FROM {W} RETURNING 1) SELECT {W}.\"windrow ord\", 1 / ((SELECT count(*) FROM \"windrow i\") = (SELECT count(*) FROM {W}))::int FROM {W}"
            ),
        );
        Some(self.statement(sql, false))
    }

    /// Returns an insert whose rows are matched to their source by a key.
    fn matched_insert(&self, matched: Matched) -> Option<Fused> {
        let matching = self.matching(matched)?;
        let generated = self.generated(Some(&matching));
        let mut sql = self.materialized(matched == Matched::Telling, &generated);
        sql.push_str("\"windrow i\"(");
        for number in 0..matching.parts.len() {
            push(&mut sql, format_args!("{}k{number}", comma(number)));
        }
        for number in 0..self.width {
            push(&mut sql, format_args!(", c{number}"));
        }
        sql.push_str(") AS (");
        self.push_insert(&mut sql, &generated);
        push(&mut sql, format_args!(" FROM {W}"));
        self.push_conflict(&mut sql);
        if matched == Matched::Telling {
            sql.push_str(" ON CONFLICT DO NOTHING");
        }
        self.push_word_returning(&mut sql);
        for (number, place) in matching.unique.columns.iter().enumerate() {
            sql.push_str(comma(number));
            self.push_target(&mut sql);
            sql.push('.');
            push_ident(&mut sql, &self.facts.columns.get(*place)?.name);
        }
        if let Some(returning) = &self.parsed.returning {
            push(&mut sql, format_args!(", {returning}"));
        }
        push(&mut sql, format_args!(") SELECT {W}.\"windrow ord\", "));
        sql.push_str(match matched {
            Matched::All => "1 / (i.k0 IS NOT NULL)::int",
            Matched::Some | Matched::Telling => "(i.k0 IS NOT NULL)::int",
        });
        if self.taken.is_some() {
            push(&mut sql, format_args!(", {W}.\"windrow new 1\""));
        }
        for number in 0..self.width {
            push(&mut sql, format_args!(", i.c{number}"));
        }
        self.push_match(&mut sql, &matching, &generated);
        Some(Fused {
            found_by: self.nullable(matching.unique).collect(),
            ..self.statement(sql, false)
        })
    }

    fn push_match(&self, sql: &mut String, matching: &Match<'_>, generated: &[Generated<'_>]) {
        push(
            sql,
            format_args!(" FROM {W} LEFT JOIN \"windrow i\" AS i ON "),
        );
        for (number, part) in matching.parts.iter().enumerate() {
            sql.push_str(if number > 0 { " AND " } else { "" });
            push(sql, format_args!("i.k{number} = "));
            match part {
                KeyPart::Parameter(place) => self.push_parameter(sql, *place),
                KeyPart::Generated(name, _) => {
                    let place = generated.iter().position(|(other, _)| other == name);
                    push_generated(sql, place.unwrap_or_default());
                }
                KeyPart::Moment(value) => sql.push_str(value),
            }
        }
    }

    /// Lists the columns that are generated in the source, the one that is reported first.
    fn generated(&self, matching: Option<&Match<'a>>) -> Vec<Generated<'a>> {
        let taken = self.taken.and_then(|taken| {
            let source = taken.source.as_deref()?;
            Some((&taken.name, source))
        });
        let parts = matching.into_iter().flat_map(|matching| &matching.parts);
        let of_key = parts.filter_map(|part| match part {
            KeyPart::Generated(name, sql) => Some((*name, *sql)),
            KeyPart::Parameter(_) | KeyPart::Moment(_) => None,
        });
        let others = of_key.filter(|(name, _)| taken.is_none_or(|(known, _)| known != *name));
        taken.into_iter().chain(others).collect()
    }

    /// Begins with the source as a table of its own, with the generated columns in the order of the
    /// writes. `filtered`: without rows that would fail; they are not reported.
    fn materialized(&self, filtered: bool, generated: &[Generated<'_>]) -> String {
        let mut sql = format!("WITH {W} AS MATERIALIZED (SELECT {W}.*");
        for (number, (_, value)) in generated.iter().enumerate() {
            push(
                &mut sql,
                format_args!(", {value} AS \"windrow new {}\"", number + 1),
            );
        }
        sql.push_str(" FROM ");
        self.push_source(&mut sql, true);
        if filtered {
            self.push_filter(&mut sql);
        }
        sql.push_str("), ");
        sql
    }

    /// Appends `INSERT INTO t (columns) SELECT expressions`.
    fn push_insert(&self, sql: &mut String, generated: &[Generated<'_>]) {
        let given = given(self.parsed, self.facts).unwrap_or_default();
        let defaults = self.clock.defaults.iter();
        push_verb(sql, self.parsed, self.facts);
        self.push_table(sql);
        sql.push_str(" (");
        let columns = given.iter().map(|(name, _)| *name);
        let columns = columns.chain(generated.iter().map(|(name, _)| *name));
        let columns = columns.chain(defaults.clone().map(|(name, _)| name));
        for (number, name) in columns.enumerate() {
            sql.push_str(comma(number));
            push_ident(sql, name);
        }
        sql.push(')');
        match &self.parsed.overriding {
            Some(overriding) => push(sql, format_args!(" {overriding}")),
            None if generated.iter().any(|(name, _)| self.is_identity(name)) => {
                sql.push_str(" OVERRIDING SYSTEM VALUE");
            }
            None => {}
        }
        sql.push_str(" SELECT ");
        for (number, (_, value)) in given.iter().enumerate() {
            sql.push_str(comma(number));
            self.push_expression(sql, value);
        }
        for number in 0..generated.len() {
            sql.push_str(comma(given.len() + number));
            push_generated(sql, number);
        }
        let before = given.len() + generated.len();
        for (number, (_, value)) in defaults.enumerate() {
            push(sql, format_args!("{}{value}", comma(before + number)));
        }
    }

    fn is_identity(&self, name: &Name) -> bool {
        let place = self.facts.place_of(name);
        let column = place.and_then(|place| self.facts.columns.get(place));
        column.is_some_and(|column| column.identity)
    }
}

/// Appends the column of the source that was generated at this place.
fn push_generated(sql: &mut String, number: usize) {
    push(sql, format_args!("{W}.\"windrow new {}\"", number + 1));
}

fn comma(number: usize) -> &'static str {
    if number > 0 { ", " } else { "" }
}
