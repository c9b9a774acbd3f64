//! The interface between the executor and a kind of work: row writes ([`crate::rows`]), whose
//! values are in Windrow's own format, or SQL calls ([`crate::calls`]), whose values are bytes with
//! a type and a format. The executor is the same for both.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use bytes::BytesMut;
use windrow_calls::{Generated, Signature};
use windrow_core::{Fault, Unit, Work};
use windrow_pgwire::wire::{Broken, ServerError, Wire};

use super::answers::{Answers, Framed};
use super::segment::Prospect;
use super::statements::Statements;
use crate::compiled::Compiled;
use crate::dialect::Dialect;
use crate::statement::set::Fused;
use crate::touch::Touch;
use crate::values::encode::Unfit;

/// The answer to a successful write of the kind.
pub(crate) type DoneOf<F> = <<F as Messages>::Work as Work>::Done;

/// The statements that a connection has of the kind.
pub(crate) type StatementsOf<F> = Statements<<F as WorkKind>::Key, F>;

/// The messages of one kind of work: values to the server, and answers from it.
pub(crate) trait Messages: Debug + Sized + Send + Sync + 'static {
    /// The work that a lane of this kind carries.
    type Work: Work;

    /// Appends one write: by the prepared statement of this number, or by a statement parsed now.
    fn send_one(
        compiled: &Compiled<Self>,
        write: &Self::Work,
        statement: Option<u64>,
        buffers: Buffers<'_>,
    ) -> Result<(), Unfit>;

    /// Appends one write as its client's own text, if that differs from the statement. Returns true
    /// if it does.
    fn send_origin(write: &Self::Work, buffers: Buffers<'_>) -> Result<bool, Unfit> {
        let _ = (write, buffers);
        Ok(false)
    }

    /// Appends many writes of a prepared statement. Returns the number of Windrow's own columns in
    /// its rows. `distances`: the offset of each write's time from the transaction's start, if the
    /// statement takes one.
    fn send_set<'w>(
        compiled: &Compiled<Self>,
        set: &Fused,
        statement: u64,
        writes: impl ExactSizeIterator<Item = Option<&'w Self::Work>> + Clone,
        distances: &[i64],
        buffers: Buffers<'_>,
    ) -> Result<u8, Unfit>;

    /// Returns the types by which the client of a write knows its statement.
    fn known_types(write: &Self::Work) -> KnownTypes<'_> {
        let _ = write;
        KnownTypes::Unasked
    }

    /// Adds to the answer the types that the statement had when it was executed.
    fn typed(write: &Self::Work, types: &Signature, done: &mut DoneOf<Self>) {
        let _ = (write, types, done);
    }

    /// Returns the answer to one write from the answers to its statement.
    fn done_one(compiled: &Compiled<Self>, answers: &Answers, at: usize) -> DoneOf<Self>;

    /// Returns the answer to a write of a set-based statement before its own row is added: no row
    /// written, or one row if the statement counts its rows (`is_counted`).
    fn begin_of_set(compiled: &Compiled<Self>, is_counted: bool) -> DoneOf<Self>;

    /// Adds the row that a set-based statement gave for a write to the answer.
    fn take_row(
        compiled: &Compiled<Self>,
        answers: &Answers,
        framed: &Framed,
        done: &mut DoneOf<Self>,
    );

    /// Adds a value that a single write took from a sequence to the answer.
    fn generated(done: &mut DoneOf<Self>, generated: Generated) {
        let _ = (done, generated);
    }
}

/// The parts of compiling and describing that differ between kinds of work.
pub(crate) trait WorkKind: Messages {
    /// Tables and statements that the connections of a lane know together.
    type Catalog: Send + Sync;

    /// The tables and statements that were read for a batch.
    type Tables<'u>: Send + Sync;

    /// The key by which a connection finds a compiled statement again.
    type Key: Clone + Eq + Hash + Send + Sync;

    /// A value that is equal for writes of a batch with the same compiled statement.
    type Alike<'u>: Copy + Eq + Hash;

    /// True if the statement of one write is the client's own text. The client then knows the types
    /// of its parameters and rows, and gets the server's messages unchanged.
    const CLIENTS_OWN: bool;

    /// Asks the server for the tables and statements of the units that the catalog lacks. `anew`:
    /// asks for all of them, known or not.
    ///
    /// # Errors
    /// The connection broke.
    fn read<'u>(
        server: Asked<'_>,
        catalog: &Self::Catalog,
        units: &'u [Unit<Self::Work>],
        anew: bool,
    ) -> impl Future<Output = Result<(Self::Tables<'u>, Vec<Refused>), Broken>> + Send;

    /// Lets the server create what the `open` units need and their tables lack. Returns `None` if
    /// they lack nothing that may be created.
    ///
    /// # Errors
    /// The connection broke.
    fn grow(
        server: Asked<'_>,
        catalog: &Self::Catalog,
        units: &[Unit<Self::Work>],
        open: impl Iterator<Item = u32> + Clone + Send,
    ) -> impl Future<Output = Result<Option<Vec<Refused>>, Broken>> + Send {
        let _ = (server, catalog, units, open);
        std::future::ready(Ok(None))
    }

    /// Returns the value by which writes of a batch share a compiled statement.
    fn alike(write: &Self::Work) -> Self::Alike<'_>;

    /// Joins the statement of a write with its table. Returns `None` if there is no such table.
    fn compile(
        tables: &Self::Tables<'_>,
        catalog: &Self::Catalog,
        statements: &mut StatementsOf<Self>,
        write: &Self::Work,
    ) -> Option<Arc<Compiled<Self>>>;

    /// Looks at the values of a write, and adds a hash for each row that it touches.
    fn look(
        compiled: &Compiled<Self>,
        write: &Self::Work,
        scratch: &mut Vec<u8>,
        hashes: &mut Vec<u64>,
    ) -> Look;

    /// Drops the description of a statement's table, so that it is read again before the next use.
    /// `changed`: the table differs from its description; otherwise a further change might go
    /// unnoticed.
    fn forget(compiled: &Compiled<Self>, catalog: &Self::Catalog, changed: bool);

    /// Returns a statement to be parsed if the real one could not be made for lack of a table: the
    /// server then says what is wrong.
    fn probe(write: &Self::Work) -> String;

    /// Returns true if a text other than the client's own was executed, and the client's own text
    /// gives a better error.
    fn asks_origin(unit: &[Self::Work], error: &ServerError) -> bool {
        let _ = (unit, error);
        false
    }
}

/// The server, for questions about tables and statements.
pub(crate) struct Asked<'c> {
    pub(crate) wire: &'c mut Wire,
    pub(crate) dialect: &'static Dialect,
    pub(crate) round_trips: &'c mut u32,
}

/// A request that the server refused, and the units that need it.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) fault: Fault,
    /// The index of each unit in the batch, with that of its first write concerned.
    pub(crate) units: Vec<(u32, usize)>,
}

impl Refused {
    /// Builds the refusal for the units with a write for which `is_concerned` is true.
    pub(crate) fn of<'u, W: 'u>(
        fault: Fault,
        units: impl Iterator<Item = (u32, &'u Unit<W>)>,
        is_concerned: impl Fn(&W) -> bool,
    ) -> Self {
        let concerned = units.filter_map(|(place, unit)| {
            let at = unit.work().iter().position(&is_concerned)?;
            Some((place, at))
        });
        Self {
            fault,
            units: concerned.collect(),
        }
    }
}

/// The result of looking at a write's values.
#[derive(Debug)]
pub(crate) struct Look {
    /// The way in which to begin with the write's unit, or the fault with which Windrow itself
    /// refuses it.
    pub(crate) prospect: Result<Prospect, Fault>,
    /// True if the values may be sent in arrays.
    pub(crate) sets: bool,
    pub(crate) touch: Touch,
}

/// The buffers to which a statement is appended.
pub(crate) struct Buffers<'b> {
    pub(crate) out: &'b mut BytesMut,
    pub(crate) scratch: &'b mut Vec<u8>,
}

/// The types by which a client knows the statement of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KnownTypes<'w> {
    /// The client does not ask for types.
    Unasked,
    /// The types at the time of execution, to be reported with the answer.
    AtUse,
    /// The types that were reported before, and that must stay.
    Reported(&'w Signature),
}

impl<'w> KnownTypes<'w> {
    /// Returns the types that were reported before, if the statement gives rows.
    pub(crate) fn of_rows(self) -> Option<&'w Signature> {
        match self {
            Self::Reported(types) => Some(types).filter(|types| types.fields.is_some()),
            Self::Unasked | Self::AtUse => None,
        }
    }
}
