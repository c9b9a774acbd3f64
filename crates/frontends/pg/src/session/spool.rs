//! Writes of a session that are rows: the spool answers them before the database has them, or they
//! are executed once, under a key.
//!
//! A client's statements keep their order although some go by the spool: while some are under way
//! by a lane, nothing is handed to the spool, and nothing goes to the database before that has all
//! that the session has in the spool.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use smallvec::SmallVec;
use tokio_util::sync::CancellationToken;
use windrow_core::{AsRow, Fault, FaultClass, SpoolPlace, SqlCall, TracedRequest, Unit, Write};
use windrow_idempotency::{Extent, KeyedRequest};
use windrow_sql::Property;

use super::client_connection::HIGH;
use super::pending::{Awaited, Ending, Pending, Script};
use super::relay;
use super::state::{End, Session, Spooled, shutdown};
use super::submit::{NO_MEMORY, no_memory};
use super::traces::{self, AskedTrace};
use crate::codec::message::{Front, Message};
use crate::own::Allowed;
use crate::services::SqlSpool;
use crate::session_info::{Interrupt, State};
use crate::statements::CachedStatement;

/// The time for which a statement waits until the database has applied the spool.
const APPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// The most bytes of a unit that goes by the spool. What is larger is answered by the database.
const MAX_UNIT_BYTES: usize = 512 << 10;

/// Settings that a session may have of its own while its rows are stored by another session: what
/// depends on them is read before, or left to the server.
const HARMLESS: [&str; 16] = [
    "bytea_output",
    "client_encoding",
    "client_min_messages",
    "datestyle",
    "deadlock_timeout",
    "extra_float_digits",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "intervalstyle",
    "jit",
    "lock_timeout",
    "standard_conforming_strings",
    "statement_timeout",
    "synchronous_commit",
    "timezone",
    "work_mem",
];

/// Rows that go by the spool together.
pub(super) struct Rows {
    pub(super) unit: Unit,
    pub(super) generates: bool,
}

impl Session {
    /// Returns the features that the session may use.
    pub(crate) fn allowed(&self) -> Allowed<'_> {
        self.shared.allowed(&self.who.identity)
    }

    /// The rows that calls are, where they go by the spool. `asks`: the client asks behind them
    /// what they took from sequences.
    ///
    /// # Errors
    /// The database is away that has to be asked.
    pub(super) async fn rows_of(
        &self,
        calls: &[SqlCall],
        asks: bool,
    ) -> Result<Option<Rows>, Fault> {
        let is_wanted = self.own.spool || self.own.key.is_some() || self.has_own_keys();
        if !is_wanted || !self.has_harmless_settings() {
            return Ok(None);
        }
        let row = |call: &SqlCall| call.statement.as_row(&call.arguments, &call.formats);
        let rows = calls
            .iter()
            .map(row)
            .collect::<Option<SmallVec<[AsRow; 1]>>>();
        let (Some(rows), Some(source)) = (rows, &self.source) else {
            return Ok(None);
        };
        let generates = rows.iter().any(|row| row.generates);
        // What rows take that are executed under a key is not known here either.
        if generates && (asks || self.asks || self.values.was_asked()) {
            return Ok(None);
        }
        let unit = Unit::of(rows.into_iter().map(|row| Write::new(row.shape, row.row)));
        let lane = &source.lane;
        let epoch = self.shared.proofs.epoch(&self.who.identity.database);
        for call in calls {
            if !self.shared.current.is(lane, &call.statement, epoch).await? {
                return Ok(None);
            }
        }
        Ok((unit.bytes() <= MAX_UNIT_BYTES).then_some(Rows { unit, generates }))
    }

    /// Returns true if the session's rows are stored the same by a session that has not its
    /// settings.
    fn has_harmless_settings(&self) -> bool {
        let settings = &self.who.settings;
        let mut set = settings.startup.iter().chain(settings.set.iter());
        set.all(|(name, _)| HARMLESS.contains(&&**name))
    }

    /// Has rows written that are row writes as well: by the spool, or under the session's key.
    pub(super) async fn write(
        &mut self,
        rows: Rows,
        script: Script,
        ending: Ending,
        taken: usize,
        asked: Option<AskedTrace>,
    ) -> Result<(), End> {
        let key = match self.begin_keyed() {
            Ok(key) => key,
            Err(fault) => {
                return relay::refuse(self, &fault).await;
            }
        };
        let traced = asked.and_then(|asked| asked.begin(self, &rows.unit));
        match key {
            Some(key) if !self.own.spool => {
                self.commit_keyed(key, rows, script, ending, taken, traced)
                    .await
            }
            key => self.spool(key, rows, script, ending, taken, traced).await,
        }
    }

    /// Hands rows to the spool, once what is under way by a lane is answered.
    async fn spool(
        &mut self,
        key: Option<KeyedRequest>,
        mut rows: Rows,
        script: Script,
        ending: Ending,
        taken: usize,
        traced: Option<Box<TracedRequest>>,
    ) -> Result<(), End> {
        let shared = Arc::clone(&self.shared);
        let Some(spool) = &shared.spool else {
            traces::discard(traced);
            return self.relay("the spool is gone").await;
        };
        if self.pending.iter().any(Pending::is_of_lane) {
            self.drain().await?;
        }
        if let Some(key) = &key {
            match key.spooled([rows.unit], Extent::Alone) {
                Ok(units) => rows.unit = units.into_iter().next().unwrap_or_else(|| Unit::of([])),
                Err(refused) => {
                    traces::refused(traced, refused.fault());
                    return relay::refuse(self, refused.fault()).await;
                }
            }
        }
        let count = script.calls.len();
        let Some(permit) = self.memory(rows.unit.bytes()).await else {
            drop((rows, script, ending));
            traces::discard(traced);
            return Box::pin(self.relay_for_now(NO_MEMORY, &no_memory())).await;
        };
        if rows.generates {
            self.values.note_spooled();
        }
        let intake = spool.spooling.intake();
        let spooled = self.spooled.get_or_insert_with(|| {
            Box::new(Spooled {
                source: intake.new_source(),
                place: None,
            })
        });
        match intake.submit(spooled.source, [rows.unit], permit).await {
            Ok(receipt) => {
                let awaited = Some(match key {
                    Some(_) => Awaited::KeyedSpool(receipt),
                    None => Awaited::Spool(receipt),
                });
                let pending = Pending {
                    awaited,
                    script,
                    ending,
                    traced,
                    answer: None,
                };
                self.handed_over(pending, count, taken);
                Ok(())
            }
            Err(fault) => {
                traces::refused(traced, &fault);
                relay::refuse(self, &fault).await
            }
        }
    }

    /// Notes that the spool has answered a unit of the session. Of an outcome that is unknown the
    /// spool may have the rows.
    pub(super) fn has_spooled(&mut self) {
        if let (Some(spooled), Some(spool)) = (&mut self.spooled, &self.shared.spool) {
            spooled.place = Some(spool.spooling.end());
        }
    }

    /// Returns true if the database may not have all that the session has in the spool.
    pub(crate) fn is_ahead(&self) -> bool {
        let spooled = self.spooled.as_ref();
        spooled.is_some_and(|spooled| spooled.place.is_some())
    }

    /// Waits until the database has what the session has in the spool. Nothing is under way. The
    /// client may cancel that.
    ///
    /// # Errors
    /// Outside: the session ends. Inside: the error that the client gets.
    pub(crate) async fn reach(&mut self) -> Result<Result<(), Fault>, End> {
        let shared = Arc::clone(&self.shared);
        let place = self
            .spooled
            .as_ref()
            .and_then(|spooled| spooled.place.clone());
        let (Some(place), Some(spool)) = (place, &shared.spool) else {
            return Ok(Ok(()));
        };
        self.info.set_state(State::Waiting);
        let cancelled = CancellationToken::new();
        let interrupt = Interrupt::Waiting(cancelled.clone());
        self.info.set_interrupt(interrupt).await;
        let stop = self.stop.clone();
        let waiting = async {
            tokio::select! {
                biased;
                applied = spool.spooling.applied(&place) => Ok(applied),
                () = cancelled.cancelled() => Ok(Err(Fault::called_back())),
                () = stop.cancelled() => Err(End::Fatal(shutdown())),
                () = tokio::time::sleep(APPLY_TIMEOUT) => Ok(Err(behind(spool, &place))),
            }
        };
        let mut waiting = Box::pin(waiting);
        let applied = poll_fn(|cx| {
            // What was answered before goes out meanwhile.
            if let Poll::Ready(Err(error)) = self.connection.poll_flush(cx) {
                return Poll::Ready(Err(End::from(error)));
            }
            // A client that has closed its side may be gone: then the wait ends.
            while !self.connection.ended && self.connection.inbox.len() < HIGH {
                if self.connection.poll_read(cx)?.is_pending() {
                    break;
                }
            }
            if self.connection.ended {
                cancelled.cancel();
            }
            waiting.as_mut().poll(cx)
        })
        .await?;
        if applied.is_ok()
            && let Some(spooled) = &mut self.spooled
        {
            spooled.place = None;
        }
        Ok(applied)
    }

    /// Returns true if what stands at the front of the inbox goes to the database only behind what
    /// the session has in the spool.
    pub(crate) fn waits_for_spool(&self) -> bool {
        if !self.is_ahead() {
            return false;
        }
        self.own.read_your_writes || !self.front_is(reads)
    }

    /// Returns true if the front of the inbox is such a statement, or messages about one.
    pub(super) fn front_is(&self, such: fn(&CachedStatement) -> bool) -> bool {
        let Ok(Front::Whole { tag, total }) = self.connection.front(0) else {
            return false;
        };
        match Message::read(tag, self.connection.body(0, total)) {
            Message::Parse(parse) => {
                let (text, types) = (parse.text, parse.type_oids());
                such(&self.shared.cache.get(text, types, self.utf8))
            }
            Message::Bind(bind) => {
                let statement = self.statements.get(bind.statement);
                statement.is_some_and(|statement| such(&statement.cached))
            }
            _ if tag == b'Q' => {
                let text = self.connection.body(0, total).split_last();
                text.is_some_and(|(_, text)| such(&self.simple_query(text).cached))
            }
            _ => false,
        }
    }
}

/// Returns true for a text that only reads.
fn reads(cached: &CachedStatement) -> bool {
    let names = cached.names();
    names.is_some_and(|names| {
        // EXPLAIN ANALYZE executes, also a prepared statement that writes.
        let reads = names.all_are(&[Property::Reads]) && !names.begins_with(&["explain"]);
        reads && !names.writes()
    })
}

/// The database is too far behind the spool. Nothing was executed, so the code is not that of an
/// outcome that is not known.
fn behind(spool: &SqlSpool, place: &SpoolPlace) -> Fault {
    let left = spool.spooling.level().map(|level| {
        let pairs = place.positions.iter().zip(&level.positions);
        pairs.map(|(to, at)| to.saturating_sub(*at)).sum::<u64>()
    });
    let far = left.map_or_else(String::new, |left| {
        format!(" ({left} entries of the spool are still before it)")
    });
    let text = format!(
        "the database does not have yet what this statement has to come after{far}; it has waited for {} seconds and was not executed",
        APPLY_TIMEOUT.as_secs()
    );
    Fault::new(FaultClass::Unavailable, "57P03", text)
}

/// Statements that write nothing, and need no key while one is set.
const WITHOUT_KEY: [&str; 10] = [
    "deallocate",
    "discard",
    "listen",
    "reset",
    "select",
    "set",
    "show",
    "table",
    "unlisten",
    "values",
];

impl Session {
    /// Returns true if writes that the session has committed without a key are executed under one
    /// of the gateway's own.
    pub(super) fn has_own_keys(&self) -> bool {
        let keys = self.shared.keys.as_ref();
        let identity = &self.who.identity;
        keys.is_some_and(|sql| sql.keys.is_for_all() && sql.identity == *identity)
    }

    /// Begins the write that the session's key is for, or one that is given a key of the gateway's
    /// own; `None`: it goes without.
    ///
    /// # Errors
    /// Another one with the same key is under way.
    pub(super) fn begin_keyed(&mut self) -> Result<Option<KeyedRequest>, Fault> {
        let Some(keys) = &self.shared.keys else {
            return Ok(None);
        };
        let Some(key) = self.own.key.take() else {
            let own = !self.own.spool && self.has_own_keys();
            return Ok(own.then(|| keys.keys.begin_own()).flatten());
        };
        match keys.keys.begin(key) {
            Ok(request) => Ok(Some(request)),
            Err(refused) => Err(refused.fault().clone()),
        }
    }

    /// Has rows committed under a key, once all that the session has under way is answered and the
    /// database has what it has in the spool.
    pub(super) async fn commit_keyed(
        &mut self,
        key: KeyedRequest,
        rows: Rows,
        script: Script,
        ending: Ending,
        taken: usize,
        traced: Option<Box<TracedRequest>>,
    ) -> Result<(), End> {
        self.drain().await?;
        if self.is_ahead()
            && let Err(fault) = Box::pin(self.reach()).await?
        {
            traces::refused(traced, &fault);
            return relay::refuse(self, &fault).await;
        }
        let Some(permit) = self.memory(rows.unit.bytes()).await else {
            let fault = Fault::new(
                FaultClass::Overloaded,
                "53200",
                "the row does not fit the memory budget (limits.memory); nothing was written",
            );
            traces::refused(traced, &fault);
            return relay::refuse(self, &fault).await;
        };
        if rows.generates {
            self.values.note_spooled();
        }
        let count = script.calls.len();
        let source = key.source();
        let committing =
            async move { key.commit(source, [rows.unit], permit, Extent::Alone).await };
        let pending = Pending {
            awaited: Some(Awaited::Keyed(tokio::spawn(committing))),
            script,
            ending,
            traced,
            answer: None,
        };
        self.handed_over(pending, count, taken);
        Ok(())
    }

    /// Returns why the statement at the front of the inbox is refused while a key is set.
    pub(super) fn refused_front_for_key(&self) -> Option<Fault> {
        let fault = self.refused_for_key()?;
        (!self.front_is(runs_without_key)).then_some(fault)
    }

    /// Why nothing but a plain insert is executed while a key is set; `None` where none is.
    pub(super) fn refused_for_key(&self) -> Option<Fault> {
        let key = self.own.key.as_ref()?;
        let text = format!(
            "windrow.idempotency_key is set (\"{}\"), and this statement cannot be executed under a key: that is possible for an INSERT of plain values without RETURNING, outside of a transaction, into a table of which Windrow knows how it stores them",
            key.as_str()
        );
        let hint = "RESET windrow.idempotency_key to execute it without one.";
        Some(Fault::new(FaultClass::Unsupported, "0A000", text).with_hint(Some(hint)))
    }
}

/// Returns true for a statement that writes nothing.
fn runs_without_key(cached: &CachedStatement) -> bool {
    let names = cached.names();
    names.is_some_and(|names| {
        let mut verbs = names.verbs.iter();
        verbs.all(|verb| WITHOUT_KEY.contains(&&**verb)) && !names.writes()
    })
}
