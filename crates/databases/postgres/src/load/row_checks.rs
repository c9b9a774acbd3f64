//! Asks the server which rows of a portion the table would refuse, before they are written.
//!
//! The columns to be checked go into a temporary table first. The answer is only a guess: the rows'
//! own statements decide if they are refused. Only checks that have refused rows of this load
//! before are asked.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use windrow_core::{Field, LoadPlan, Name, OnConflict, Rows};
use windrow_database::quote::push_ident;
use windrow_pgwire::wire::{Answer, Dialogue};

use super::data::{Data, push_break};
use super::describe::{Described, quoted};
use super::message::push_statement;
use super::stream::{Choice, Spelling, Stream};
use super::target::Target;
use crate::catalog::column::{Column, Kind};
use crate::catalog::table::{Condition, Facts, Test, Unique};
use crate::statement::of_shape::push;
use crate::statement::set;

/// The temporary table with the columns to be checked.
const TABLE: &str = "windrow_sieve";

/// A check that may refuse rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judge {
    Checks,
    References,
    /// A key that is in the portion already: found without asking the server.
    Repeats,
    /// A key that is in the table already. This costs an index lookup for each row, so it is asked
    /// only if necessary.
    Uniques,
}

impl Judge {
    const ASKED: [Self; 3] = [Self::Checks, Self::References, Self::Uniques];

    /// Returns the checks that may have raised an error of this code, likely ones first.
    pub(super) fn of(code: &str) -> &'static [Self] {
        match code {
            "23514" => &[Self::Checks],
            "23503" => &[Self::References],
            "23505" => &[Self::Repeats, Self::Uniques],
            _ => &[],
        }
    }
}

/// A condition that is true for bad rows.
struct Trial {
    judge: Judge,
    sql: String,
    /// Places in the plan of the condition's columns.
    columns: Vec<usize>,
}

/// All conditions that the server can be asked.
pub(super) struct RowChecks {
    tests: Vec<Trial>,
    /// The columns' types as SQL; empty if no temporary table can be created.
    types: Vec<String>,
    /// Places in the plan of the columns of keys that rows are refused for.
    keys: Vec<Vec<usize>>,
}

impl RowChecks {
    pub(super) fn new(plan: &LoadPlan, table: &Described, columns: &[&Column]) -> Self {
        let type_of = |column: &&Column| type_of(column, table).map(str::to_owned);
        let types: Option<Vec<String>> = columns.iter().map(type_of).collect();
        let types = types.filter(|_| table.more.makes_temporary);
        let judges = |judge: &Judge| match plan.on_conflict {
            OnConflict::Error | OnConflict::Ignore => true,
            // A row that is left out may be written later. Then it must not replace a row that came
            // after it. A check constraint gives the same answer later.
            OnConflict::Update => *judge == Judge::Checks,
        };
        let mut tests = Vec::new();
        for judge in Judge::ASKED.into_iter().filter(judges) {
            match judge {
                Judge::Uniques => tests.extend(uniques(plan, &table.facts)),
                _ => tests.extend(conditions(plan, &table.facts, judge)),
            }
        }
        let keys = tests.iter().filter(|test| test.judge == Judge::Uniques);
        Self {
            keys: keys.map(|test| test.columns.clone()).collect(),
            tests,
            types: types.unwrap_or_default(),
        }
    }

    /// Returns the places of rows with a key, as spelled, that occurs earlier in the portion.
    pub(super) fn repeats(&self, rows: &Rows) -> Vec<usize> {
        let columns = rows.columns();
        let mut seen: Vec<HashSet<u64>> = vec![HashSet::with_capacity(rows.len()); self.keys.len()];
        let (mut row, mut fields) = (Vec::with_capacity(columns), rows.fields());
        let mut repeats = Vec::new();
        for place in 0..rows.len() {
            row.clear();
            row.extend(fields.by_ref().take(columns));
            let mut again = false;
            for (key, seen) in self.keys.iter().zip(&mut seen) {
                // Different keys may have the same hash: like all checks here, this is a guess.
                again |= hash(key, &row).is_some_and(|hash| !seen.insert(hash));
            }
            if again {
                repeats.push(place);
            }
        }
        repeats
    }

    /// Returns the question which rows these checks would refuse; `None` if there is nothing to
    /// ask.
    pub(super) fn ask(&self, seen: &[Judge]) -> Option<Question> {
        let tests = || self.tests.iter().filter(|test| seen.contains(&test.judge));
        if self.types.is_empty() || tests().next().is_none() {
            return None;
        }
        let mut only = vec![false; self.types.len()];
        for column in tests().flat_map(|test| &test.columns) {
            *only.get_mut(*column)? = true;
        }
        let mut create = format!("CREATE TEMPORARY TABLE {TABLE} (o int8");
        for (place, of_type) in self.types.iter().enumerate() {
            if only.get(place) == Some(&true) {
                push(&mut create, format_args!(", c{place} {of_type}"));
            }
        }
        create.push_str(") ON COMMIT DROP");
        let tests: Vec<&str> = tests().map(|test| test.sql.as_str()).collect();
        let select = format!(
            "SELECT s.o FROM pg_temp.{TABLE} AS s WHERE {} ORDER BY s.o",
            tests.join(" OR ")
        );
        Some(Question {
            create,
            select,
            only,
        })
    }
}

/// Returns a type for the column that refuses no more values than the column itself, so that only
/// the question decides.
fn type_of<'t>(column: &'t Column, table: &'t Described) -> Option<&'t str> {
    match column.kind {
        // `char` without a length would be `char(1)`.
        Kind::Char => Some("bpchar"),
        Kind::Other | Kind::Array(..) | Kind::Composite => table.more.type_of(&column.name),
        _ => Some(&column.type_name),
    }
}

/// Returns the conditions of checks or foreign keys whose columns are all given.
fn conditions(plan: &LoadPlan, facts: &Facts, judge: Judge) -> Vec<Trial> {
    let given = |column: usize| {
        let name = &facts.columns.get(column)?.name;
        plan.columns.iter().position(|given| given == name)
    };
    let trial = |condition: &Condition| {
        let columns = condition.columns.iter().map(|c| given(*c));
        let columns: Vec<usize> = columns.collect::<Option<_>>()?;
        let value = |column| Some(format!("s.c{}", given(column)?));
        let sql = format!("NOT {}", set::condition(facts, condition, &value)?);
        Some(Trial {
            judge,
            sql,
            columns,
        })
    };
    let of_judge = |condition: &&Condition| match condition.test {
        Test::Check(_) => judge == Judge::Checks,
        Test::Reference(..) => judge == Judge::References,
    };
    let conditions = facts.conditions.iter().filter(of_judge);
    conditions.filter_map(trial).collect()
}

/// Returns the hash of a key's fields; `None` if one is NULL, which equals no other key.
fn hash(key: &[usize], row: &[Field<'_>]) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    for place in key {
        match row.get(*place)? {
            Field::Null => return None,
            Field::Plain(text) | Field::Text(text) | Field::Number(text) | Field::Json(text) => {
                text.hash(&mut hasher);
            }
            Field::Bool(truth) => truth.hash(&mut hasher),
            Field::Bytes(bytes) => bytes.hash(&mut hasher),
        }
    }
    Some(hasher.finish())
}

/// Returns the conditions for keys that are in the table already.
fn uniques(plan: &LoadPlan, facts: &Facts) -> Vec<Trial> {
    let place = |column: &usize| {
        let name = &facts.columns.get(*column)?.name;
        plan.columns.iter().position(|given| given == name)
    };
    // ON CONFLICT handles its own key, so that key refuses no rows.
    let key = match plan.on_conflict {
        OnConflict::Error => None,
        OnConflict::Ignore | OnConflict::Update => facts.key_names(&plan.key),
    };
    let is_key = |unique: &Unique| {
        let names = unique.columns.iter().filter_map(|c| facts.columns.get(*c));
        let names: HashSet<&Name> = names.map(|column| &column.name).collect();
        key.as_ref()
            .is_some_and(|key| key.iter().collect::<HashSet<_>>() == names)
    };
    let table = quoted(&plan.table);
    let mut tests = Vec::new();
    let uniques = facts.uniques.iter().filter(|unique| unique.immediate);
    for unique in uniques.filter(|unique| !is_key(unique)) {
        let Some(columns) = unique.columns.iter().map(place).collect::<Option<Vec<_>>>() else {
            continue;
        };
        // One index lookup for each row: a join could read the whole table.
        let mut sql = format!("(SELECT 1 FROM {table} AS t WHERE ");
        for (number, (column, place)) in unique.columns.iter().zip(&columns).enumerate() {
            let Some(column) = facts.columns.get(*column) else {
                continue;
            };
            sql.push_str(if number > 0 { " AND t." } else { "t." });
            push_ident(&mut sql, &column.name);
            push(&mut sql, format_args!(" = s.c{place}"));
        }
        sql.push_str(" LIMIT 1) IS NOT NULL");
        tests.push(Trial {
            judge: Judge::Uniques,
            sql,
            columns,
        });
    }
    tests
}

impl Question {
    /// Returns the form that is tried first.
    pub(super) fn spelling(&self, targets: &[Target]) -> Spelling {
        let mut sent = targets.iter().zip(&self.only).filter(|(_, sent)| **sent);
        match sent.all(|(target, _)| target.form.is_some()) {
            true => Spelling::Binary,
            false => Spelling::Text,
        }
    }
}

/// A question about the rows of a portion.
pub(super) struct Question {
    create: String,
    select: String,
    only: Vec<bool>,
}

/// The exchange of a question with the server, in its own transaction.
pub(super) struct Asking<'a> {
    question: &'a Question,
    stream: Stream<'a>,
    begun: bool,
    /// The places of the rows that are bad, and of those that the server could not be asked about.
    bad: Vec<usize>,
    failed: bool,
}

impl<'a> Asking<'a> {
    pub(super) fn new(
        question: &'a Question,
        targets: &'a [Target],
        rows: &'a Rows,
        spelling: Spelling,
        leaves_out: bool,
    ) -> Self {
        let choice = Choice {
            targets,
            only: Some(&question.only),
            placed: true,
            spelling,
            without: &[],
            leaves_out,
        };
        Self {
            question,
            stream: Stream::new(choice, rows),
            begun: false,
            bad: Vec::new(),
            failed: false,
        }
    }

    /// Returns true if the rows could not be sent in this form.
    pub(super) fn is_odd(&self) -> bool {
        self.stream.misspelled().is_some()
    }

    /// Returns the places of the rows to leave out, in order; `None` if there was no answer.
    pub(super) fn found(mut self) -> Option<Vec<usize>> {
        if self.failed {
            return None;
        }
        self.bad.extend_from_slice(self.stream.left());
        self.bad.sort_unstable();
        self.bad.dedup();
        Some(self.bad)
    }
}

impl Dialogue for Asking<'_> {
    fn more(&mut self, out: &mut BytesMut) -> bool {
        if !std::mem::replace(&mut self.begun, true) {
            push_statement(out, &self.question.create, &[]);
            let sql = format!("COPY pg_temp.{TABLE} FROM STDIN{}", self.stream.options());
            push_statement(out, &sql, &[]);
            self.stream.head(out);
        }
        if self.failed {
            self.stream.stop();
        } else if self.stream.has_more() {
            self.stream.piece(out);
        }
        let broken = self.stream.misspelled().is_some();
        if broken {
            self.failed = true;
            push_break(out);
        } else if self.stream.has_more() {
            return true;
        } else if !self.failed {
            self.stream.tail(out);
            frontend::copy_done(out);
            push_statement(out, &self.question.select, &[]);
        }
        frontend::sync(out);
        false
    }

    fn receive(&mut self, answer: Answer<'_>) {
        match answer {
            Answer::DataRow(row) => {
                let place = row.columns().next().flatten();
                let number = |text| std::str::from_utf8(text).ok()?.parse::<usize>().ok();
                self.bad.extend(place.and_then(number));
            }
            Answer::Error(_) => self.failed = true,
            _ => {}
        }
    }
}
