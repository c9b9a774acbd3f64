//! Joins statements with their tables' descriptions: the part that row writes and SQL calls have in
//! common.

use std::sync::Arc;

use windrow_calls::{ParsedStatement, Signature};
use windrow_core::{Apart, Op};
use windrow_database::plan::Fence;

use crate::catalog::table::Table;
use crate::moment::Moment;
use crate::statement::set::Fused;
use crate::touch::{Change, fence, gives_all, order_shows};

/// A statement that is ready to be executed on one version of its table. `F`: data that is specific
/// to row writes or to SQL calls.
#[derive(Debug)]
pub(crate) struct Compiled<F> {
    pub(crate) numbers: Numbers,
    /// The key under which failures are remembered.
    pub(crate) failure_key: u64,
    pub(crate) op: Op,
    /// True for an insert that fails if it meets an existing row.
    pub(crate) plain: bool,
    pub(crate) table: Arc<Table>,
    /// The statement of one write.
    pub(crate) single: Box<str>,
    /// The statement of many writes.
    pub(crate) fused: Option<Fused>,
    /// The statement of many writes as an insert that leaves out rows that would fail, and reports
    /// which they are.
    pub(crate) telling: Option<Fused>,
    pub(crate) fence: Fence,
    /// True if a reader could find out in which order the statement's rows were written.
    pub(crate) order_shows: bool,
    /// The extent to which it may share the time of a transaction.
    pub(crate) moment: Moment,
    /// The reason why the statement is isolated, if so.
    pub(crate) apart: Option<Arc<Apart>>,
    /// The types of the single statement's parameters and rows, as they were reported to clients;
    /// `None` if the server decides and no client knows them.
    pub(crate) signature: Option<Arc<Signature>>,
    /// The sequence that each write takes a value from, which is reported to its client.
    pub(crate) generates: Option<u32>,
    pub(crate) form: F,
}

/// The numbers by which a connection distinguishes statements.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    /// The statement's own.
    pub(crate) id: u64,
    /// A number that is the same for all statements that share the statement of one write, whatever
    /// formats their values have.
    pub(crate) single_id: u64,
}

/// The extent to which writes of a statement share transactions and statements.
pub(crate) struct Sharing {
    /// True if what the statement runs besides itself is proven for each row.
    pub(crate) is_proven: bool,
    pub(crate) apart: Option<Arc<Apart>>,
    pub(crate) moment: Moment,
    pub(crate) fused: Option<Fused>,
    pub(crate) telling: Option<Fused>,
}

impl<F> Compiled<F> {
    /// Joins a statement with its table. `failure_key`: see [`Compiled::failure_key`].
    pub(crate) fn of(
        (numbers, failure_key): (Numbers, u64),
        parsed: &ParsedStatement,
        table: Arc<Table>,
        sharing: Sharing,
        form: F,
    ) -> Self {
        let change = Change::of(parsed, sharing.is_proven);
        Self {
            numbers,
            failure_key,
            op: parsed.op,
            plain: parsed.op == Op::Insert && parsed.conflict.is_none(),
            single: parsed.text.clone(),
            fused: sharing.fused,
            telling: sharing.telling,
            fence: fence(&change, &table),
            order_shows: order_shows(&change, &table, gives_all(parsed, &table)),
            table,
            moment: sharing.moment,
            apart: sharing.apart,
            signature: None,
            generates: None,
            form,
        }
    }

    /// Returns the same statement, with what clients know of its types and sequence.
    pub(crate) fn reporting(self, signature: Arc<Signature>, generates: Option<u32>) -> Self {
        Self {
            signature: Some(signature),
            generates,
            ..self
        }
    }

    /// Returns true if the statement runs code of which nothing is proven: other writes must not
    /// meet the state that the code leaves behind.
    pub(crate) fn is_unproven(&self) -> bool {
        self.apart.as_ref().is_some_and(|apart| apart.unproven)
    }

    /// Returns the set-based statement. `telling`: the one that leaves out rows that would fail.
    pub(crate) fn set(&self, telling: bool) -> Option<&Fused> {
        match telling {
            true => self.telling.as_ref(),
            false => self.fused.as_ref(),
        }
    }
}
