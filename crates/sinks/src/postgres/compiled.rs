//! Statements joined with their tables' descriptions: what is the same for the writes of a shape
//! and for SQL calls.

mod shaped;

use std::sync::Arc;

use windrow_core::{Apart, Name, Op};

use super::calls::Spoken;
use super::fused::Fused;
use super::key::RowKey;
use super::table::Table;
use crate::sql::plan::Fence;
pub(super) use shaped::{Shaped, Trouble};

/// A shape or an SQL statement, ready to be executed on one version of its table.
#[derive(Debug)]
pub(super) struct Compiled {
    /// Told apart by this within one connection.
    pub(super) id: u64,
    /// The same for all that share their single statement.
    pub(super) single_id: u64,
    /// By what failures are remembered.
    pub(super) heat: u64,
    pub(super) op: Op,
    /// An insert that may not meet a row that is there.
    pub(super) plain: bool,
    pub(super) table: Arc<Table>,
    /// The statement of one write.
    pub(super) single: Box<str>,
    pub(super) fused: Option<Fused>,
    pub(super) telling: Option<Fused>,
    pub(super) fence: Fence,
    /// Somebody could tell in which order its rows were written.
    pub(super) order_shows: bool,
    /// Why it is sent apart, if so.
    pub(super) apart: Option<Arc<Apart>>,
    pub(super) form: Form,
}

/// Where it comes from.
#[derive(Debug)]
pub(super) enum Form {
    Write(Shaped),
    Call(Spoken),
}

impl Compiled {
    /// What is particular to an SQL call.
    pub(super) fn spoken(&self) -> Option<&Spoken> {
        match &self.form {
            Form::Call(spoken) => Some(spoken),
            Form::Write(_) => None,
        }
    }

    /// Whether code runs of which nothing is proven: what it leaves behind must not be met by
    /// others.
    pub(super) fn is_unproven(&self) -> bool {
        let apart = self.apart.as_ref().is_some_and(|apart| apart.unproven);
        apart || self.spoken().is_some_and(|spoken| spoken.stale)
    }

    /// The types of the parameters of its single statement, as far as they are said.
    pub(super) fn single_types(&self) -> &[u32] {
        self.spoken().map_or(&[], Spoken::types)
    }

    /// The types of the parameters of its set-based statements; `None`: a type has no arrays.
    pub(super) fn set_types(&self) -> Option<Vec<u32>> {
        match &self.form {
            Form::Write(shaped) => shaped
                .columns(&self.table)
                .map(super::column::Column::array_param)
                .collect(),
            Form::Call(spoken) => Some(spoken.set_types()),
        }
    }
}

/// What one write does to the order of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Touch {
    /// The key by which rows of a statement are sorted.
    pub(super) order: Option<RowKey>,
    /// A key could not be told.
    pub(super) unknown: bool,
}

/// What a statement changes, as far as the order of a batch is concerned.
#[derive(Debug)]
pub(super) struct Change<'a> {
    pub(super) op: Op,
    /// An insert that changes the row that it meets.
    pub(super) upsert: bool,
    /// Columns that an update changes, or an upsert where it meets a row.
    pub(super) sets: Vec<&'a Name>,
    /// Columns by which a row is found.
    pub(super) key: Vec<&'a Name>,
    /// What it runs besides itself is proven for each row.
    pub(super) proven: bool,
}

/// Tells the rows of a table and one of its keys from all others.
pub(super) fn seed(table: &Table, number: usize) -> u64 {
    use std::hash::BuildHasher as _;
    foldhash::fast::FixedState::default().hash_one((&table.name, number))
}

/// Whether somebody could tell in which order a statement's rows are written: a number that the
/// database generates, a row that refers to another one. `given`: whether each value is one that
/// the client gave.
pub(super) fn order_shows(change: &Change<'_>, table: &Table, given: bool) -> bool {
    let fenced = fence(change, table) != Fence::None;
    let inserts = change.op == Op::Insert;
    fenced || table.referenced || inserts && (!given || table.hidden_unique)
}

/// What a write of the kind may disturb besides the rows whose keys it names.
pub(super) fn fence(change: &Change<'_>, table: &Table) -> Fence {
    let in_unique = |name: &Name| {
        let place = table.place_of(name);
        table.hidden_unique
            || table
                .uniques
                .iter()
                .any(|u| place.is_some_and(|p| u.columns.contains(&p)))
    };
    let moves = change.sets.iter().any(|name| in_unique(name));
    // One row may be found by several keys. Only by the first one can two writes be told to be
    // about different rows.
    let alias = (change.upsert || change.op != Op::Insert)
        && table.uniques.len() > 1
        && !table.uniques.first().is_some_and(|first| {
            let names = first.columns.iter().filter_map(|p| table.columns.get(*p));
            names
                .into_iter()
                .all(|column| change.key.contains(&&column.name))
        });
    match change.op {
        Op::Delete if table.referenced => Fence::All,
        Op::Update if table.referenced && moves => Fence::All,
        Op::Delete if table.hidden_unique || table.uniques.len() > 1 => Fence::Table,
        Op::Update if moves => Fence::Table,
        Op::Insert if change.upsert && moves => Fence::Table,
        _ if alias || (table.has_hooks && !change.proven) => Fence::Table,
        _ => Fence::None,
    }
}
