//! The columns and statements of a load's portions.

use std::fmt::Write as _;

use windrow_core::shape::ShapeParts;
use windrow_core::{
    Fault, FaultClass, FormSkips, LoadPlan, Name, OnConflict, Op, Returning, Shape,
};
use windrow_database::quote::push_idents;

use super::describe::{Described, check, quoted};
use super::row_checks::RowChecks;
use super::stream::Spelling;
use super::target::Target;
use crate::catalog::column::{Column, oid};
use crate::catalog::create;
use crate::catalog::table::Facts;
use crate::statement::of_shape::{push, push_conflict};

/// The temporary table that rows go to first if their keys may exist already.
const STAGE: &str = "pg_temp.windrow_portion";
const STAGE_NAME: &str = "windrow_portion";

/// A plan matched with its table.
pub(super) struct Layout {
    pub(super) columns: Box<[Target]>,
    /// True if all columns can be written in binary.
    pub(super) binary: bool,
    /// `COPY .. (..) FROM STDIN`, for the text form.
    pub(super) copy: String,
    /// The name of the table that `copy` fills, without its schema.
    pub(super) target: String,
    /// The statements of the temporary table, if rows go through one.
    pub(super) staged: Option<Staged>,
    /// True if a trigger may drop rows: their number is checked before the commit.
    pub(super) drops: bool,
    /// The questions that find bad rows.
    pub(super) row_checks: RowChecks,
    pub(super) check: String,
    /// The parameters of the check.
    pub(super) table: String,
    pub(super) print: String,
}

/// The statements that bring rows through a temporary table.
pub(super) struct Staged {
    pub(super) create: String,
    pub(super) merge: String,
    /// The same for portions with repeated keys, if the last row of a key wins.
    pub(super) merge_last: Option<String>,
    pub(super) on_conflict: OnConflict,
}

impl Layout {
    /// Matches a plan with its table. `creates`: the rows' own statements create missing columns.
    ///
    /// # Errors
    /// An error of the plan (a missing column, a key that makes no sense), or
    /// [`FaultClass::Unsupported`] if COPY would differ from the rows' own statements.
    pub(super) fn new(plan: &LoadPlan, table: &Described, creates: bool) -> Result<Self, Fault> {
        let facts = &table.facts;
        if let Some(why) = table.more.apart {
            return Err(apart(plan, why));
        }
        let columns: Vec<&Column> = plan
            .columns
            .iter()
            .map(|name| column(plan, facts, name, creates))
            .collect::<Result<_, _>>()?;
        let staged = match plan.on_conflict {
            OnConflict::Error => None,
            _ => Some(Staged::new(plan, table, &columns)?),
        };
        let mut copy = String::from("COPY ");
        match &staged {
            Some(_) => copy.push_str(STAGE),
            None => {
                copy.push_str(&quoted(&plan.table));
                copy.push_str(" (");
                push_idents(&mut copy, &plan.columns);
                copy.push(')');
            }
        }
        copy.push_str(" FROM STDIN");
        let row_checks = RowChecks::new(plan, table, &columns);
        let judged = |column: &Column| create::judged(facts, column).filter(|_| creates);
        let target = |column: &Column| Target::of(column, facts.has_hooks, judged(column));
        let columns: Box<[Target]> = columns.into_iter().map(target).collect();
        Ok(Self {
            binary: columns.iter().all(|c| c.form.is_some()),
            columns,
            copy,
            target: match &staged {
                Some(_) => STAGE_NAME.to_owned(),
                None => plan.table.table.to_string(),
            },
            staged,
            drops: facts.has_hooks,
            row_checks,
            check: check(),
            table: quoted(&plan.table),
            print: table.print.clone(),
        })
    }

    /// Returns the form of the next portion. `binary` says if binary is due again.
    pub(super) fn spelling(&self, binary: &mut FormSkips) -> Spelling {
        match self.binary && binary.is_due() {
            true => Spelling::Binary,
            false => Spelling::Text,
        }
    }

    /// Returns the statement that moves rows from the stage into the table, if there is a stage.
    /// `repeated`: keys come more than once in a portion.
    pub(super) fn merge(&self, repeated: bool) -> Option<&str> {
        let staged = self.staged.as_ref()?;
        Some(match &staged.merge_last {
            Some(last) if repeated => last,
            _ => &staged.merge,
        })
    }
}

fn apart(plan: &LoadPlan, why: &str) -> Fault {
    Fault::new(
        FaultClass::Unsupported,
        "0A000",
        format!("COPY cannot fill {}: {why}", plan.table),
    )
}

fn column<'f>(
    plan: &LoadPlan,
    facts: &'f Facts,
    name: &Name,
    creates: bool,
) -> Result<&'f Column, Fault> {
    let found = facts.place_of(name).and_then(|at| facts.columns.get(at));
    let Some(column) = found else {
        if creates {
            return Err(apart(
                plan,
                &format!("the column {name} is still to be made"),
            ));
        }
        return Err(Fault::new(
            FaultClass::NoColumn,
            "42703",
            format!(
                "column \"{name}\" of relation \"{}\" does not exist",
                plan.table
            ),
        )
        .with_column(Some(&**name)));
    };
    if column.always_generated {
        return Err(apart(
            plan,
            &format!("the values of its column {name} are always generated"),
        ));
    }
    if column.no_value_yet && creates {
        return Err(apart(plan, &format!("its column {name} has no type yet")));
    }
    if column.base_oid == oid::INTERVAL && column.narrowed >= 0 && column.narrowed >> 16 != 0x7fff {
        return Err(apart(
            plan,
            &format!("COPY reads a number in its column {name} in other units than an INSERT does"),
        ));
    }
    Ok(column)
}

impl Staged {
    fn new(plan: &LoadPlan, table: &Described, columns: &[&Column]) -> Result<Self, Fault> {
        let facts = &table.facts;
        let Some(key) = facts.key_names(&plan.key) else {
            return Err(Fault::invalid(format!(
                "the table {} has no primary key: name the columns that tell its rows apart",
                plan.table
            )));
        };
        if !table.more.makes_temporary {
            return Err(apart(
                plan,
                "the role may not make the temporary table that keys are compared with",
            ));
        }
        let create = create(table, columns)
            .ok_or_else(|| Fault::internal("the type of a column is not known"))?;
        Ok(Self {
            create,
            merge: merge(plan, &key, STAGE),
            merge_last: merge_last(plan, &key, table),
            on_conflict: plan.on_conflict,
        })
    }
}

/// Returns the statement that creates the stage: the row's place in the portion, then the columns
/// in the plan's order.
fn create(table: &Described, columns: &[&Column]) -> Option<String> {
    let mut sql = format!("CREATE TEMPORARY TABLE {STAGE_NAME} (o int8");
    for (place, column) in columns.iter().enumerate() {
        let type_name = table.more.type_of(&column.name)?;
        write!(sql, ", c{place} {type_name}").ok()?;
        // A row that is replaced by another row of its portion must be one that the table would
        // have accepted. Only a trigger could replace its NULL.
        if column.not_null && !table.facts.has_hooks {
            sql.push_str(" NOT NULL");
        }
    }
    sql.push_str(") ON COMMIT DROP");
    Some(sql)
}

/// Returns the statement that moves rows from the stage (or a part of it) into the table, in the
/// portion's order.
fn merge(plan: &LoadPlan, key: &[Name], source: &str) -> String {
    let mut sql = format!("INSERT INTO {} (", quoted(&plan.table));
    push_idents(&mut sql, &plan.columns);
    sql.push_str(") SELECT ");
    for place in 0..plan.columns.len() {
        let comma = if place > 0 { ", " } else { "" };
        push(&mut sql, format_args!("{comma}c{place}"));
    }
    push(&mut sql, format_args!(" FROM {source} ORDER BY o"));
    let shape = Shape::new(ShapeParts {
        op: Op::Insert,
        table: plan.table.clone(),
        columns: plan.columns.clone(),
        key: plan.key.clone(),
        on_conflict: plan.on_conflict,
        returning: Returning::Nothing,
    });
    push_conflict(&mut sql, &shape, key);
    sql
}

/// Returns the same statement for the last row of each key. `None` if the table itself could have
/// refused a row that a later one replaces. The stage checks types and NULLs, so nothing else may
/// check rows.
fn merge_last(plan: &LoadPlan, key: &[Name], table: &Described) -> Option<String> {
    let facts = &table.facts;
    let judges = facts.has_hooks
        || facts.hidden_unique
        || facts.uniques.len() != 1
        || !facts.conditions.is_empty()
        || !table.more.ordinary
        || facts
            .columns
            .iter()
            .any(|c| c.always_generated && !c.identity);
    let bytewise = |name: &&Name| {
        let column = facts.place_of(name).and_then(|at| facts.columns.get(at));
        column.is_some_and(|c| c.bytewise)
    };
    if plan.on_conflict != OnConflict::Update || judges || !key.iter().all(|name| bytewise(&name)) {
        return None;
    }
    let place = |name: &Name| plan.columns.iter().position(|column| column == name);
    let places: Vec<usize> = key.iter().map(place).collect::<Option<_>>()?;
    let mut source = String::from("(SELECT *, row_number() OVER (PARTITION BY ");
    for (number, place) in places.iter().enumerate() {
        let comma = if number > 0 { ", " } else { "" };
        push(&mut source, format_args!("{comma}c{place}"));
    }
    push(
        &mut source,
        format_args!(" ORDER BY o DESC) AS r FROM {STAGE}) AS s WHERE r = 1"),
    );
    // A key that contains NULL equals no other key.
    for place in &places {
        push(&mut source, format_args!(" OR c{place} IS NULL"));
    }
    Some(merge(plan, key, &source))
}
