//! The set-based statement of an SQL call: its own expressions, with a column of arrays in place of
//! each parameter.
//!
//! Each form tells exactly which calls took place, or fails as a whole:
//!
//! - an insert or upsert that gives nothing back counts its rows and divides by zero if one is
//!   missing;
//! - everything else gives a row for each call: its place (an int8), whether it took place (an
//!   int4), the value that it took from a sequence (an int8, where it takes one), and the columns
//!   that it gives back.
//!
//! The source and its columns have names with a blank in them, which no column of the table may
//! have: what the client's expressions name is never found in the source.

mod by_key;
mod pieces;

use windrow_calls::ParsedStatement;
use windrow_core::{Name, Op};
use windrow_database::quote::push_ident;

use super::carrier::Carrier;
use super::key::Part;
use super::meaning::Meaning;
use super::parsed::{bare, given, has_parameters, sets};
use crate::catalog::column::Column;
use crate::catalog::table::{Facts, Unique};
use crate::compiled::Fused;
use crate::moment::DISTANCES;
use crate::rows::fused::push_conditions;
use crate::rows::statement::push;

/// The source of the values, and how its columns begin.
const W: &str = "\"windrow w\"";
const OURS: &str = "windrow ";

/// A key by which inserted rows are matched to their source.
struct Match<'a> {
    unique: &'a Unique,
    /// Where the value of each of its columns comes from.
    parts: Vec<KeyPart>,
}

/// Where the value of a key's column comes from.
enum KeyPart {
    /// The parameter at this place.
    Parameter(usize),
    /// The sequence, in the source.
    Sequence,
    /// The moment of the row: this expression.
    Moment(String),
}

struct Text<'a> {
    parsed: &'a ParsedStatement,
    meaning: &'a Meaning,
    facts: &'a Facts,
    carriers: &'a [Carrier],
    /// The unique keys that the calls give.
    keys: &'a [(u64, Box<[Part]>)],
}

/// The set-based form of a statement, if there is one that tells the truth.
pub(super) fn fused(
    parsed: &ParsedStatement,
    meaning: &Meaning,
    carriers: &[Carrier],
    keys: &[(u64, Box<[Part]>)],
) -> Option<Fused> {
    let text = Text::new(parsed, meaning, carriers, keys)?;
    if meaning.clock.no_sets {
        return None;
    }
    match parsed.op {
        Op::Insert => text.insert(),
        Op::Update | Op::Delete => text.by_key(),
        Op::Get => None,
    }
}

/// The form of a plain insert that leaves out rows that would fail, and tells which they are:
/// duplicates, and rows that a check or a foreign key would refuse. What it leaves out wrongly
/// succeeds on its own; what it lets through wrongly fails as a whole.
pub(super) fn telling(
    parsed: &ParsedStatement,
    meaning: &Meaning,
    carriers: &[Carrier],
    keys: &[(u64, Box<[Part]>)],
) -> Option<Fused> {
    let text = Text::new(parsed, meaning, carriers, keys)?;
    let plain = parsed.op == Op::Insert && parsed.conflict.is_none();
    let taken = meaning
        .generated
        .as_ref()
        .is_none_or(|t| t.source.is_some());
    (plain && taken)
        .then(|| text.matched_insert(Matched::Telling))
        .flatten()
}

/// What a row that is not inserted means to an insert whose rows are matched to their source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Matched {
    /// A failure of all.
    All,
    /// An answer.
    Some,
    /// A row that would fail.
    Telling,
}

impl<'a> Text<'a> {
    fn new(
        parsed: &'a ParsedStatement,
        meaning: &'a Meaning,
        carriers: &'a [Carrier],
        keys: &'a [(u64, Box<[Part]>)],
    ) -> Option<Self> {
        let text = Self {
            parsed,
            meaning,
            facts: &meaning.table,
            carriers,
            keys,
        };
        let mut names = text.facts.columns.iter().map(|column| &column.name);
        let some = meaning.clock.is_carried || !carriers.is_empty();
        let clear = some && !names.any(|name| name.starts_with(OURS));
        (clear && text.domains_are_assigned()).then_some(text)
    }

    fn statement(&self, sql: String, counted: bool) -> Fused {
        let types = self.carriers.iter().map(|carrier| carrier.array);
        let moments = self.meaning.clock.is_carried;
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
        match &self.meaning.generated {
            Some(generated) if generated.source.is_none() => None,
            None if !returns && !misses => Some(self.counted_insert()),
            Some(_) if !returns && !misses => Some(self.generating_insert()),
            _ if misses => self.matched_insert(Matched::Some),
            _ => self.matched_insert(Matched::All),
        }
    }

    /// The parameters of a key's columns that may be NULL.
    fn nullable(&self, unique: &'a Unique) -> impl Iterator<Item = usize> {
        let columns = unique.columns.iter().filter(|place| {
            let column = self.facts.columns.get(**place);
            column.is_some_and(|column| !column.not_null)
        });
        columns.filter_map(|place| match self.part(*place)? {
            KeyPart::Parameter(parameter) => Some(parameter),
            KeyPart::Sequence | KeyPart::Moment(_) => None,
        })
    }

    /// An upsert that changes a unique column frees one value and takes another: there the order of
    /// the rows matters. And where a row is found by another key than the one that is told, it
    /// could be meant twice.
    fn moves_keys(&self) -> bool {
        let Some(conflict) = self.parsed.conflict.as_ref().filter(|c| c.update) else {
            return false;
        };
        let mut uniques = self.facts.uniques.iter();
        let arbiter = self.arbiter();
        self.facts.hidden_unique
            || !arbiter.is_some_and(|arbiter| self.is_given(arbiter))
            || uniques.any(|unique| {
                let mut columns = unique
                    .columns
                    .iter()
                    .filter_map(|p| self.facts.columns.get(*p));
                columns.any(|column| sets(conflict, &column.name))
            })
    }

    /// Whether it is known of each call which value of the key it is about.
    fn is_given(&self, unique: &Unique) -> bool {
        unique
            .columns
            .iter()
            .all(|place| self.part(*place).is_some())
    }

    /// The key that ON CONFLICT .. DO UPDATE names.
    fn upsert_key(&self) -> Option<&'a Unique> {
        let is_upsert = self.parsed.conflict.as_ref().is_some_and(|c| c.update);
        self.arbiter().filter(|_| is_upsert)
    }

    /// The key that ON CONFLICT names.
    fn arbiter(&self) -> Option<&'a Unique> {
        let names = self.parsed.conflict.as_ref()?.columns.as_ref()?;
        let places: Option<Vec<usize>> = names.iter().map(|n| self.facts.place_of(n)).collect();
        self.facts.unique_of(&places?)
    }

    /// An insert or upsert that gives nothing back: all rows, or none.
    fn counted_insert(&self) -> Fused {
        let mut sql = String::from("WITH \"windrow i\" AS (");
        self.push_insert(&mut sql);
        sql.push_str(" FROM ");
        self.push_source(&mut sql, false);
        self.push_conflict(&mut sql);
        sql.push_str(
            " RETURNING 1) SELECT 1 / (count(*) = cardinality($1))::int FROM \"windrow i\"",
        );
        self.statement(sql, true)
    }

    /// The same, where each row takes a value from a sequence.
    fn generating_insert(&self) -> Fused {
        let mut sql = self.materialized(false);
        sql.push_str("\"windrow i\" AS (");
        self.push_insert(&mut sql);
        push(&mut sql, format_args!(" FROM {W}"));
        self.push_conflict(&mut sql);
        push(
            &mut sql,
            format_args!(
                " RETURNING 1) SELECT {W}.\"windrow ord\", 1 / ((SELECT count(*) FROM \"windrow i\") = cardinality($1))::int, {W}.\"windrow new\" FROM {W}"
            ),
        );
        self.statement(sql, false)
    }

    /// An insert whose rows are matched to their source by a key.
    fn matched_insert(&self, matched: Matched) -> Option<Fused> {
        let matching = self.matching(matched)?;
        let mut sql = self.materialized(matched == Matched::Telling);
        sql.push_str("\"windrow i\"(");
        for number in 0..matching.parts.len() {
            push(&mut sql, format_args!("{}k{number}", comma(number)));
        }
        for number in 0..self.meaning.width {
            push(&mut sql, format_args!(", c{number}"));
        }
        sql.push_str(") AS (");
        self.push_insert(&mut sql);
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
        if self.meaning.generated.is_some() {
            push(&mut sql, format_args!(", {W}.\"windrow new\""));
        }
        for number in 0..self.meaning.width {
            push(&mut sql, format_args!(", i.c{number}"));
        }
        push(
            &mut sql,
            format_args!(" FROM {W} LEFT JOIN \"windrow i\" AS i ON "),
        );
        for (number, part) in matching.parts.iter().enumerate() {
            sql.push_str(if number > 0 { " AND " } else { "" });
            push(&mut sql, format_args!("i.k{number} = "));
            match part {
                KeyPart::Parameter(place) => self.push_parameter(&mut sql, *place),
                KeyPart::Sequence => push(&mut sql, format_args!("{W}.\"windrow new\"")),
                KeyPart::Moment(value) => sql.push_str(value),
            }
        }
        Some(Fused {
            found_by: self.nullable(matching.unique).collect(),
            ..self.statement(sql, false)
        })
    }

    /// A key by which an inserted row finds its source: all of it given by parameters, or taken
    /// from the sequence in the source. A row that an upsert changes is found by the key of the
    /// upsert alone. NULL is never found again: a key without it is preferred, and nothing else
    /// does where rows are left out.
    fn matching(&self, matched: Matched) -> Option<Match<'a>> {
        let update = self.parsed.conflict.as_ref().is_some_and(|c| c.update);
        let arbiter = self.arbiter();
        let uniques = self.facts.uniques.iter().filter(|u| u.immediate);
        let fitting = uniques.filter(|u| !update || arbiter.is_some_and(|a| std::ptr::eq(a, *u)));
        let mut found = fitting.filter_map(|unique| {
            let parts: Option<Vec<_>> = unique
                .columns
                .iter()
                .map(|place| self.part(*place))
                .collect();
            Some(Match {
                unique,
                parts: parts?,
            })
        });
        let is_whole = |found: &Match<'_>| self.nullable(found.unique).next().is_none();
        let first = found.next()?;
        if is_whole(&first) {
            return Some(first);
        }
        let whole = found.find(is_whole);
        whole.or_else(|| (matched != Matched::Telling).then_some(first))
    }

    fn part(&self, place: usize) -> Option<KeyPart> {
        let column = self.facts.columns.get(place)?;
        let generated = self.meaning.generated.as_ref();
        if generated.is_some_and(|generated| generated.name == column.name) {
            return (column.narrowed < 0).then_some(KeyPart::Sequence);
        }
        if self.meaning.clock.exact.contains(&column.name) {
            return Some(KeyPart::Moment(self.moment_of(column)?));
        }
        let given = given(self.parsed, self.facts)?;
        let (_, value) = given.into_iter().find(|(name, _)| **name == column.name)?;
        let parameter = bare(value)?;
        // What cannot be told to be equal here may not be equal there.
        let told = self.keys.iter().flat_map(|(_, parts)| parts.iter());
        let mut told = told.filter_map(|part| match part {
            Part::Parameter(place, _) => Some(*place),
            Part::Constant(_) | Part::Moment | Part::Unknown => None,
        });
        told.any(|place| place == parameter)
            .then_some(KeyPart::Parameter(parameter))
    }

    /// Gives the value of a column that holds the moment of the row.
    fn moment_of(&self, column: &Column) -> Option<String> {
        let mut defaults = self.meaning.clock.defaults.iter();
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

    /// The source as a table of its own, with the values that are taken from the sequence, in the
    /// order of the calls. `filtered`: without those that would fail; they are not told at all.
    fn materialized(&self, filtered: bool) -> String {
        let mut sql = format!("WITH {W} AS MATERIALIZED (SELECT {W}.*");
        if let Some(source) = self
            .meaning
            .generated
            .as_ref()
            .and_then(|t| t.source.as_ref())
        {
            push(&mut sql, format_args!(", {source} AS \"windrow new\""));
        }
        sql.push_str(" FROM ");
        self.push_source(&mut sql, true);
        if filtered {
            let given = given(self.parsed, self.facts).unwrap_or_default();
            push_conditions(&mut sql, self.facts, &|column| {
                let name = &self.facts.columns.get(column)?.name;
                let (_, value) = given.iter().find(|(given, _)| *given == name)?;
                let mut sql = String::new();
                self.push_parameter(&mut sql, bare(value)?);
                Some(sql)
            });
        }
        sql.push_str("), ");
        sql
    }

    /// `INSERT INTO t (columns) SELECT expressions`.
    fn push_insert(&self, sql: &mut String) {
        let given = given(self.parsed, self.facts).unwrap_or_default();
        let generated = self.meaning.generated.as_ref();
        sql.push_str("INSERT INTO ");
        self.push_table(sql);
        sql.push_str(" (");
        let columns = given.iter().map(|(name, _)| *name);
        let defaults = &self.meaning.clock.defaults;
        let filled = defaults.iter().map(|(name, _)| name);
        let columns = columns.chain(generated.map(|t| &t.name)).chain(filled);
        for (number, name) in columns.enumerate() {
            sql.push_str(comma(number));
            push_ident(sql, name);
        }
        sql.push(')');
        match (&self.parsed.overriding, generated) {
            (Some(overriding), _) => push(sql, format_args!(" {overriding}")),
            (None, Some(generated)) if self.is_identity(&generated.name) => {
                sql.push_str(" OVERRIDING SYSTEM VALUE");
            }
            (None, _) => {}
        }
        sql.push_str(" SELECT ");
        for (number, (_, value)) in given.iter().enumerate() {
            sql.push_str(comma(number));
            self.push_expression(sql, value);
        }
        if generated.is_some() {
            push(
                sql,
                format_args!("{}{W}.\"windrow new\"", comma(given.len())),
            );
        }
        let before = given.len() + usize::from(generated.is_some());
        for (number, (_, value)) in defaults.iter().enumerate() {
            push(sql, format_args!("{}{value}", comma(before + number)));
        }
    }

    fn is_identity(&self, name: &Name) -> bool {
        let column = self
            .facts
            .place_of(name)
            .and_then(|p| self.facts.columns.get(p));
        column.is_some_and(|column| column.identity)
    }
}

fn comma(number: usize) -> &'static str {
    if number > 0 { ", " } else { "" }
}
