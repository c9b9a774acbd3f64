//! Matches statements with their tables' descriptions.

use std::sync::Arc;

use windrow_core::{Apart, Op, ParsedStatement, Shape, Signature, SqlCall};
use windrow_database::plan::Fence;
use windrow_proof::Trusted;

use crate::calls::bound_call::{BoundCall, bind_call};
use crate::calls::call_catalog::Renewed;
use crate::calls::meaning::Meaning;
use crate::catalog::table::Table;
use crate::moment::Moment;
use crate::row_statement::{RowStatement, row_statement};
use crate::statement::level::Sharing;
use crate::statement::set::Fused;
use crate::touch::{Change, fence, gives_all, order_shows};

/// A statement that is ready to be executed on one version of its table.
#[derive(Debug)]
pub(crate) struct Compiled {
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
    /// True if a client could find out in which order the statement's rows were written.
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
    pub(crate) form: CompiledForm,
}

/// The part of a compiled statement that depends on the form of the values.
#[derive(Debug)]
pub(crate) enum CompiledForm {
    /// Windrow's own values.
    Row(RowStatement),
    /// Bytes of SQL clients.
    Call(BoundCall),
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

impl Compiled {
    /// Compiles the statement of a shape. `judges`: columns that Windrow created refuse values that
    /// they would not keep unchanged.
    pub(crate) fn of_shape(
        numbers: Numbers,
        judges: bool,
        shape: &Arc<Shape>,
        table: &Arc<Table>,
        trusted: &Trusted,
    ) -> Self {
        let (statement, parsed, sharing) = row_statement(shape, (table, judges), trusted);
        let known_by = (numbers, shape.id());
        Self::of(
            known_by,
            &parsed,
            table.clone(),
            sharing,
            CompiledForm::Row(statement),
        )
    }

    /// Compiles the statement of a call. `described`: the statement's meaning when it was
    /// described, if still known. `renewed`: the result of describing it again after its table was
    /// changed.
    pub(crate) fn of_call(
        numbers: Numbers,
        call: &SqlCall,
        described: Option<Arc<Meaning>>,
        renewed: Option<Renewed>,
    ) -> Self {
        let bound = bind_call(call, described, renewed);
        let (statement, meaning) = (&call.statement, &bound.meaning);
        let generated = meaning
            .generated
            .as_ref()
            .filter(|column| column.is_reported);
        let known_by = (numbers, statement.id());
        Self {
            signature: Some(bound.signature),
            generates: generated.map(|column| column.sequence),
            ..Self::of(
                known_by,
                statement.parsed(),
                meaning.table.clone(),
                bound.sharing,
                CompiledForm::Call(bound.call),
            )
        }
    }

    /// Compiles a statement. `failure_key`: see [`Compiled::failure_key`].
    fn of(
        (numbers, failure_key): (Numbers, u64),
        parsed: &ParsedStatement,
        table: Arc<Table>,
        sharing: Sharing,
        form: CompiledForm,
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
