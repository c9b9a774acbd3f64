//! What is particular to a kind of work: row writes ([`crate::rows`]) or SQL calls
//! ([`crate::calls`]). All else of the ladder is the same for both.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use bytes::BytesMut;
use windrow_calls::Signature;
use windrow_core::{Fault, Unit, Work};
use windrow_pgwire::wire::{Broken, DataRow, ServerError, Wire};

use super::answers::Answers;
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
pub(crate) type StatementsOf<F> = Statements<<F as Form>::Key, F>;

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

    /// Whether the client is told the types of its statement, so that they have to be asked for
    /// where nothing keeps them as they were described.
    fn tells_types(write: &Self::Work) -> bool {
        let _ = write;
        false
    }

    /// Whether the client was told already which rows its statement gives, so that it must not give
    /// others.
    fn has_told_rows(write: &Self::Work) -> bool {
        let _ = write;
        false
    }

    /// Why a statement must not give the rows that it has given: they are not those that were told.
    fn other_rows(write: &Self::Work, types: &Signature) -> Option<Fault> {
        let _ = (write, types);
        None
    }

    /// The types that the statement had when it was executed.
    fn typed(write: &Self::Work, types: &Signature, done: &mut DoneOf<Self>) {
        let _ = (write, types, done);
    }

    /// What the statement of one write has answered.
    fn done_one(compiled: &Compiled<Self>, answers: &Answers, at: usize) -> DoneOf<Self>;

    /// What a set-based statement has answered of each of its writes.
    fn done_set(
        compiled: &Compiled<Self>,
        set: &Fused,
        answers: &Answers,
        at: usize,
        slots: &mut Slots<'_, DoneOf<Self>>,
    );

    /// What the question behind a write ([`Form::follow_up`]) has answered.
    fn followed_up(&self, row: DataRow<'_>, done: &mut DoneOf<Self>) {
        let _ = (row, done);
    }

    /// How many rows a write inserted, updated, deleted or read.
    fn rows(done: &DoneOf<Self>) -> u64;
}

/// What is particular to a compiled statement of one kind of work, and to the kind itself.
pub(crate) trait Form: Messages {
    /// What the connections of a lane know together of tables and statements.
    type Catalog: Send + Sync;

    /// What was read for a batch, which is the same for all of it.
    type Tables<'u>: Send + Sync;

    /// By what a connection finds again what it has compiled.
    type Key: Clone + Eq + Hash + Send + Sync;

    /// Writes of a batch for which this is equal have one compiled statement.
    type Alike<'u>: Copy + Eq + Hash;

    /// What is kept of a unit's first attempt where it is tried once more.
    type Attempts: Default + Send + Sync;

    /// The statement of one write is a text that its client wrote: it was told the types of its
    /// parameters and rows, and it is told the server's messages as they are.
    const CLIENTS_OWN: bool;

    /// Writes have the guard in front besides the check behind them.
    const GUARDS: bool;

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

    /// The types of the single statement's parameters and rows, as clients were told them; `None`:
    /// the server decides, and nobody was told.
    fn signature(&self) -> Option<&Signature> {
        None
    }

    /// Returns true if another text than the client's own was executed first, and the client's own
    /// says more of an error.
    fn asks_origin(unit: &[Self::Work], error: &ServerError) -> bool {
        let _ = (unit, error);
        false
    }

    /// What is asked behind a single write, as an expression: what it has left behind. It is the
    /// same for all statements of the kind that ask anything.
    fn follow_up(&self) -> Option<&'static str> {
        None
    }

    /// Keeps what the first writes of a unit were told before one of them failed: it is tried once
    /// more, and others may overtake it.
    fn remember(attempts: &mut Self::Attempts, unit: u32, before: Vec<DoneOf<Self>>) {
        let _ = (attempts, unit, before);
    }

    /// What they were told at first, where they were as many as `now`.
    fn recall(
        attempts: &mut Self::Attempts,
        unit: u32,
        now: Vec<DoneOf<Self>>,
    ) -> Vec<DoneOf<Self>> {
        let _ = (attempts, unit);
        now
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

/// Where the answers to the writes of one statement go.
pub(crate) struct Slots<'b, D> {
    /// Those of the whole batch.
    pub(crate) done: &'b mut [D],
    /// The places of the statement's writes in it.
    pub(crate) items: &'b [u32],
}

impl<D: Clone> Slots<'_, D> {
    /// That of one of its writes, counted from 0.
    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut D> {
        let item = self.items.get(place)?;
        self.done.get_mut(*item as usize)
    }

    /// The same for all of its writes.
    pub(crate) fn fill(&mut self, done: &D) {
        for item in self.items {
            if let Some(slot) = self.done.get_mut(*item as usize) {
                slot.clone_from(done);
            }
        }
    }
}
