//! Prepares the statements that a round trip needs and the connection does not have yet: in that
//! round trip if nothing that is written relies on the answers, and in one before it otherwise.
//!
//! Each statement is followed by a Sync of its own, so that a statement that cannot be parsed does
//! not affect the others. A settled connection has nothing left to prepare.

use std::sync::Arc;
use std::time::Duration;

use postgres_protocol::message::frontend;
use windrow_core::Op;
use windrow_database::quote::push_table;

use super::batch::Batch;
use super::check;
use super::check::{WantedCheck, wanted_checks};
use super::prepared;
use super::prepared::{Prepared, State, StatementKey};
use super::segment::{Mode, Segment};
use super::trust::{Answered, AnsweredReader, Trust, locked};
use crate::catalog::check::LASTVAL;
use crate::catalog::table::Table;
use crate::compiled::Compiled;
use windrow_pgwire::wire::{Answer, Broken, ServerError, Wire};

/// The age at which a set-based statement by key is prepared again. The plan of a small table reads
/// the whole table for each batch; once the table has grown, that would go on until the server
/// renews its statistics.
const OLDEST: Duration = Duration::from_secs(10);

/// A statement to be parsed.
struct Wanted {
    key: StatementKey,
    number: u64,
    sql: String,
    parameters: Vec<u32>,
    /// The expected columns of its rows.
    expected: Expected,
}

/// The expected columns of a statement's rows.
enum Expected {
    Anything,
    /// A guard: the columns of the table.
    Table(Arc<Table>),
    /// A statement whose client already knows the columns: the same ones.
    Reported(Arc<Compiled>),
}

impl Expected {
    /// Returns the version of the table that the statement is about.
    fn version(&self) -> u64 {
        match self {
            Self::Table(table) => table.version,
            Self::Reported(compiled) => compiled.table.version,
            Self::Anything => u64::MAX,
        }
    }

    /// Returns [`Trust::Locked`] if the error is a lock timeout or a cancellation, and the
    /// statement is about a described table.
    fn locked(&self, error: &ServerError) -> Option<Trust> {
        let known = !matches!(self, Self::Anything);
        known.then(|| locked(self.version(), error)).flatten()
    }
}

/// Statements that were sent to be parsed, and whose answers are still to come.
pub(crate) struct Preparation {
    wanted: Vec<Wanted>,
    checks: Vec<WantedCheck>,
    /// True if the transactions after it write nothing, so that their answers can be dropped.
    reads: bool,
    reader: AnsweredReader,
}

/// The results of a preparation.
#[derive(Default)]
pub(crate) struct PreparationEnd {
    pub(crate) trust: Trust,
    /// True if the answers to the transactions after the preparation must be dropped.
    pub(crate) is_in_vain: bool,
    /// True if a statement could not be prepared.
    pub(crate) has_failed: bool,
}

impl Preparation {
    /// Appends the statements that the segments need. Returns `None` if the connection has them
    /// all.
    pub(crate) fn begin(
        wire: &mut Wire,
        prepared: &mut Prepared,
        batch: &Batch<'_>,
        segments: &[Segment],
    ) -> Option<Self> {
        let begun = prepared.now();
        let mut wanted = Vec::new();
        for key in wanted_keys(prepared, batch, segments) {
            wanted.extend(describe(prepared, batch, key));
        }
        let checks = wanted_checks(prepared, batch, segments);
        if wanted.is_empty() && checks.is_empty() {
            return None;
        }
        let closing = prepared.evict(wanted.len() + checks.len(), begun);
        for number in closing {
            let closed = frontend::close(b'S', &prepared::name(number), wire.out());
            debug_assert!(closed.is_ok(), "a name of ours holds no zero byte");
        }
        ask(wire, &wanted);
        checks.iter().for_each(|check| check::append(wire, check));
        let syncs = wanted.len() + check::SYNCS * checks.len();
        Some(Self {
            reads: segments.iter().all(|s| batch.is_of_questions(s)),
            reader: AnsweredReader::new(syncs),
            wanted,
            checks,
        })
    }

    /// Returns true if the transactions can be sent without waiting for the answers: they write
    /// nothing, or the worst answer is a missing statement, for which the server refuses the
    /// transaction that needs it.
    pub(crate) fn can_be_awaited_later(&self) -> bool {
        let is_plain = |wanted: &Wanted| match &wanted.expected {
            Expected::Anything => true,
            Expected::Table(_) => false,
            Expected::Reported(compiled) => {
                let reported = compiled.signature.as_ref();
                reported.is_some_and(|types| types.fields.is_none())
            }
        };
        self.reads || self.checks.is_empty() && self.wanted.iter().all(is_plain)
    }

    /// Counts the statements as prepared until their answers have come.
    pub(crate) fn assume(&self, prepared: &mut Prepared) {
        for wanted in &self.wanted {
            prepared.put(wanted.key, wanted.number, State::Ready);
        }
        for check in &self.checks {
            check::assume(prepared, check);
        }
    }

    /// Returns the number of Syncs that were sent.
    pub(crate) fn syncs(&self) -> usize {
        self.reader.syncs()
    }

    /// Returns true if a message that comes now is an answer to the preparation.
    pub(crate) fn is_open(&self) -> bool {
        !self.reader.is_done()
    }

    /// Handles one message.
    pub(crate) fn take(&mut self, answer: Answer<'_>) {
        self.reader.take(answer);
    }

    /// Sends the buffer, and waits for the answers.
    pub(crate) async fn answers(&mut self, wire: &mut Wire) -> Result<(), Broken> {
        let (syncs, reader) = (self.syncs(), &mut self.reader);
        let mut take = |answer: Answer<'_>| reader.take(answer);
        wire.exchange(syncs, &mut take).await
    }

    /// Records the answers.
    pub(crate) fn end(self, prepared: &mut Prepared) -> PreparationEnd {
        let mut answers = self.reader.end();
        let of_checks = answers.split_off(self.wanted.len().min(answers.len()));
        let has_failed = answers.iter().any(|answered| answered.error.is_some());
        let mut trust = settle(prepared, self.wanted, answers);
        for (wanted, answered) in self.checks.iter().zip(of_checks.chunks(check::SYNCS)) {
            let found = check::settle(prepared, wanted, answered);
            if trust == Trust::Good {
                trust = found;
            }
        }
        PreparationEnd {
            is_in_vain: self.reads && trust != Trust::Good,
            trust,
            has_failed,
        }
    }
}

fn wanted_keys(
    prepared: &mut Prepared,
    batch: &Batch<'_>,
    segments: &[Segment],
) -> Vec<StatementKey> {
    let mut keys = Vec::new();
    // Each key counts as used, so that none is evicted for another.
    let mut want = |prepared: &mut Prepared, key, again| {
        let known = prepared.knows(key);
        if (again || !known) && !keys.contains(&key) {
            keys.push(key);
        }
    };
    for segment in segments {
        if batch.is_apart(segment) {
            continue;
        }
        for table in batch.tables_of(&segment.units) {
            if has_guard(batch, table, &segment.mode) {
                want(prepared, StatementKey::Guard(table.version), false);
            }
        }
        for (shape, sets, _) in batch.counts(&segment.units) {
            if let Some(compiled) = batch.shapes.get(shape) {
                want_of(compiled, &segment.mode, sets, prepared, &mut want);
            }
        }
    }
    keys
}

/// Returns the key of the check or guard that a set-based statement needs, because it relies on the
/// described types.
pub(crate) fn guard_of(batch: &Batch<'_>, table: &Table) -> StatementKey {
    let check = batch.check_of(table).map(StatementKey::Check);
    check.unwrap_or(StatementKey::Guard(table.version))
}

/// Returns true if a table's guard is sent before a segment. A client's own statement needs none:
/// the server refuses it if the columns have changed, and the check after the writes finds the
/// change too. But the check is not reached if a failure is answered at once, so modes that do so
/// need the guard.
pub(crate) fn has_guard(batch: &Batch<'_>, table: &Table, mode: &Mode) -> bool {
    let tells = matches!(mode, Mode::Fresh | Mode::Probe | Mode::Refuse(..));
    !batch.is_of_calls || table.print.is_none() || tells
}

/// Adds the statements that the writes of a shape need, of which `sets` may be sent in sets.
fn want_of(
    compiled: &Compiled,
    mode: &Mode,
    sets: usize,
    prepared: &mut Prepared,
    want: &mut impl FnMut(&mut Prepared, StatementKey, bool),
) {
    let in_sets = matches!(mode, Mode::Sets | Mode::Telling);
    let telling = *mode == Mode::Telling && compiled.telling.is_some();
    let enough = in_sets && (telling || sets >= compiled.fuse_from());
    let moments = *mode == Mode::Grouped && compiled.has_moments() && sets > 0;
    let fuses = compiled.fused.is_some() && (enough || moments);
    if fuses {
        let fused = StatementKey::Fused(compiled.numbers.id);
        let older = compiled.op != Op::Insert && prepared.is_older(fused, OLDEST);
        want(prepared, fused, older);
    }
    // Preparing the reporting form now costs less than a round trip of its own after a failure.
    if fuses && compiled.telling.is_some() {
        want(prepared, StatementKey::Telling(compiled.numbers.id), false);
    }
    if in_sets || matches!(mode, Mode::Own | Mode::Grouped) {
        want(
            prepared,
            StatementKey::Single(compiled.numbers.single_id),
            false,
        );
    }
    if compiled.generates.is_some() {
        want(prepared, StatementKey::FollowUp, false);
    }
}

fn describe(prepared: &mut Prepared, batch: &Batch<'_>, key: StatementKey) -> Option<Wanted> {
    let by_id = |id: u64| batch.shapes.iter().find(|c| c.numbers.id == id);
    let mut parameters: &[u32] = &[];
    let mut expected = Expected::Anything;
    let sql = match key {
        StatementKey::Guard(version) => {
            let shape = batch.shapes.iter().find(|c| c.table.version == version)?;
            expected = Expected::Table(shape.table.clone());
            guard(&shape.table)
        }
        StatementKey::Check(_) => return None,
        StatementKey::FollowUp => {
            let asks = batch.shapes.iter().any(|c| c.generates.is_some());
            asks.then(|| format!("SELECT {LASTVAL}"))?
        }
        StatementKey::Single(id) => {
            let mut shapes = batch.shapes.iter();
            let compiled = shapes.find(|c| c.numbers.single_id == id)?;
            if let Some(signature) = &compiled.signature {
                parameters = &signature.parameters;
                // No client knows the columns of a question.
                if compiled.op != Op::Get {
                    expected = Expected::Reported(compiled.clone());
                }
            }
            compiled.single.clone().into()
        }
        StatementKey::Fused(id) => {
            let set = by_id(id)?.fused.as_ref()?;
            parameters = &set.types;
            set.sql.clone()
        }
        StatementKey::Telling(id) => {
            let set = by_id(id)?.telling.as_ref()?;
            parameters = &set.types;
            set.sql.clone()
        }
    };
    Some(Wanted {
        key,
        number: prepared.number(),
        sql,
        parameters: parameters.to_vec(),
        expected,
    })
}

/// Returns a statement that gives no rows and costs next to nothing, but fails ("cached plan must
/// not change result type") once the columns of its table have changed since it was parsed. The
/// statement also keeps the table from being altered until the transaction ends.
fn guard(table: &Table) -> String {
    let mut sql = String::from("SELECT * FROM ");
    push_table(&mut sql, &table.name);
    sql.push_str(" WHERE false");
    sql
}

fn ask(wire: &mut Wire, wanted: &[Wanted]) {
    let out = wire.out();
    for statement in wanted {
        let name = prepared::name(statement.number);
        let types = statement.parameters.iter().copied();
        let start = out.len();
        let mut asked = frontend::parse(&name, &statement.sql, types, out).is_ok();
        if asked && !matches!(statement.expected, Expected::Anything) {
            asked = frontend::describe(b'S', &name, out).is_ok();
        }
        if !asked {
            // Only the Sync remains, so the statement counts as failed.
            out.truncate(start);
        }
        frontend::sync(out);
    }
}

fn settle(prepared: &mut Prepared, wanted: Vec<Wanted>, answers: Vec<Answered>) -> Trust {
    let mut trust = Trust::Good;
    for (statement, answer) in wanted.into_iter().zip(answers) {
        if let Some(locked) = answer
            .error
            .as_ref()
            .and_then(|e| statement.expected.locked(e))
        {
            prepared.forget(|key| key == statement.key);
            trust = locked;
            continue;
        }
        let is_guard = matches!(statement.expected, Expected::Table(_));
        let state = match &answer.error {
            None if answer.parsed => State::Ready,
            // A role that may insert but not select cannot run a guard: its statements are parsed
            // every time.
            Some(error) if !is_guard || error.code == "42501" => State::Failed,
            Some(_) => {
                trust = Trust::Stale;
                prepared.forget(|key| key == statement.key);
                prepared.changed(statement.expected.version());
                continue;
            }
            None => State::Failed,
        };
        let as_expected = match &statement.expected {
            Expected::Table(table) => matches(table, &answer.fields),
            Expected::Reported(compiled) => {
                let reported = compiled.signature.as_ref();
                reported.and_then(|types| types.fields.as_deref()) == answer.body.as_deref()
            }
            Expected::Anything => true,
        };
        prepared.put(statement.key, statement.number, state);
        if state == State::Ready && !as_expected {
            trust = Trust::Stale;
            prepared.forget(|key| key == statement.key);
            prepared.changed(statement.expected.version());
        }
    }
    trust
}

fn matches(table: &Table, fields: &[(String, u32, i32)]) -> bool {
    let columns = &table.columns;
    columns.len() == fields.len()
        && columns
            .iter()
            .zip(fields)
            .all(|(column, (name, type_oid, typmod))| {
                // For a domain, the server reports the base type.
                let is_domain = column.type_oid != column.base_oid;
                *column.name == **name
                    && column.base_oid == *type_oid
                    && (is_domain || column.typmod == *typmod)
            })
}
