//! The seam between the executor and a kind of work: row writes ([`crate::rows`]), whose values are
//! Windrow's own, or SQL calls ([`crate::calls`]), whose values are bytes with a type and a format.
//! The executor is the same for both.

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

/// What a write of the kind gives its client where it succeeded.
pub(crate) type DoneOf<F> = <<F as Messages>::Work as Work>::Done;

/// What a connection knows of statements of the kind.
pub(crate) type StatementsOf<F> = Statements<<F as WorkKind>::Key, F>;

/// The messages of one kind of work: its values out, the server's answers in.
pub(crate) trait Messages: Debug + Sized + Send + Sync + 'static {
    /// What a lane of this kind carries.
    type Work: Work;

    /// Appends one write: by a prepared statement of this number, or else parsed now.
    fn send_one(
        compiled: &Compiled<Self>,
        write: &Self::Work,
        statement: Option<u64>,
        buffers: Buffers<'_>,
    ) -> Result<(), Unfit>;

    /// Appends one write as its client's own text, if that differs from the statement. Returns
    /// false if not.
    fn send_origin(write: &Self::Work, buffers: Buffers<'_>) -> Result<bool, Unfit> {
        let _ = (write, buffers);
        Ok(false)
    }

    /// Appends many writes of a prepared statement; says how many columns of its rows are ours.
    /// `distances`: how far the moment of each write is from the transaction's start, where the
    /// statement asks for that.
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

    /// The types that the statement had when it was executed.
    fn typed(write: &Self::Work, types: &Signature, done: &mut DoneOf<Self>) {
        let _ = (write, types, done);
    }

    /// What the statement of one write has answered.
    fn done_one(compiled: &Compiled<Self>, answers: &Answers, at: usize) -> DoneOf<Self>;

    /// The answer to a write of a set-based statement before its own row is taken in: it did
    /// nothing, or, if the statement counts its rows (`is_counted`), wrote one.
    fn begin_of_set(compiled: &Compiled<Self>, is_counted: bool) -> DoneOf<Self>;

    /// Takes in the row that a set-based statement gave for a write.
    fn take_row(
        compiled: &Compiled<Self>,
        answers: &Answers,
        framed: &Framed,
        done: &mut DoneOf<Self>,
    );

    /// Takes in a value that a single write took from a sequence.
    fn generated(done: &mut DoneOf<Self>, generated: Generated) {
        let _ = (done, generated);
    }
}

/// What is particular to a compiled statement of one kind of work, and to the kind itself.
pub(crate) trait WorkKind: Messages {
    /// What the connections of a lane know together of tables and statements.
    type Catalog: Send + Sync;

    /// What was read for a batch, which is the same for all of it.
    type Tables<'u>: Send + Sync;

    /// By what a connection finds again what it has compiled.
    type Key: Clone + Eq + Hash + Send + Sync;

    /// Writes of a batch for which this is equal have one compiled statement.
    type Alike<'u>: Copy + Eq + Hash;

    /// The statement of one write is a text that its client wrote: it was told the types of its
    /// parameters and rows, and it is told the server's messages as they are.
    const CLIENTS_OWN: bool;

    /// Asks the server for what the catalog lacks of the units' tables and statements; `anew`: for
    /// all of it.
    ///
    /// # Errors
    /// The connection broke.
    fn read<'u>(
        server: Asked<'_>,
        catalog: &Self::Catalog,
        units: &'u [Unit<Self::Work>],
        anew: bool,
    ) -> impl Future<Output = Result<(Self::Tables<'u>, Vec<Refused>), Broken>> + Send;

    /// Has the server make what the `open` units need and their tables lack; `None`: they lack
    /// nothing that may be made.
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

    /// What tells the statements of a batch apart.
    fn alike(write: &Self::Work) -> Self::Alike<'_>;

    /// Joins the statement of a write with its table; `None`: there is no such table.
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

    /// The table of a statement is to be described anew before the next use: it is not as it was
    /// described (`changed`), or a further change might not be seen.
    fn forget(compiled: &Compiled<Self>, catalog: &Self::Catalog, changed: bool);

    /// A statement to be parsed in place of one that could not be made, as there is no table for
    /// it: the server says what is wrong.
    fn probe(write: &Self::Work) -> String;

    /// Returns true if another text than the client's own was executed first, and the client's own
    /// says more of an error.
    fn asks_origin(unit: &[Self::Work], error: &ServerError) -> bool {
        let _ = (unit, error);
        false
    }
}

/// The server that is asked about tables and statements.
pub(crate) struct Asked<'c> {
    pub(crate) wire: &'c mut Wire,
    pub(crate) dialect: &'static Dialect,
    pub(crate) round_trips: &'c mut u32,
}

/// What the server would not say or do, and the units that need it.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) fault: Fault,
    /// The places of the units in the batch, each with that of its first write concerned.
    pub(crate) units: Vec<(u32, usize)>,
}

impl Refused {
    /// The units that have a write of which this is true.
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

/// What is seen of a write's values.
#[derive(Debug)]
pub(crate) struct Look {
    /// What is to be done with its unit; an error: Windrow itself refuses it.
    pub(crate) prospect: Result<Prospect, Fault>,
    /// They may travel in arrays.
    pub(crate) sets: bool,
    pub(crate) touch: Touch,
}

/// Where a statement is appended.
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
