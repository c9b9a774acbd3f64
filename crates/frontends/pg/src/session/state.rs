//! The state of a session, and the answers that it gives by itself.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use smallvec::SmallVec;
use tokio_util::sync::CancellationToken;
use windrow_core::{Fault, FaultClass, SourceId, SpoolPlace};
use windrow_sql::Effect;

use super::client_connection::ClientConnection;
use super::local::{self, Reply};
use super::pending::Pending;
use super::room::UnderWay;
use super::segment::Segment;
use super::values::Values;
use crate::admitted_client::AdmittedClient;
use crate::charge::{self, Stalled};
use crate::codec::message::{Parse, Violation};
use crate::lanes::{Interest, LaneSource};
use crate::own::Own;
use crate::pool::{Leftover, Who};
use crate::session_info::SessionInfo;
use crate::shared::Shared;
use crate::statements::{CachedStatement, PreparedStatements, PreparedText, Simple};

/// One client's session.
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) info: Arc<SessionInfo>,
    pub(crate) connection: ClientConnection,
    /// The client's identity, and the settings under which it works.
    pub(crate) who: Who,
    /// Windrow's own settings, and what they were at the start.
    pub(crate) own: Own,
    pub(crate) own_default: Own,
    /// The session's writes in the spool; `None` if it has had none there.
    pub(super) spooled: Option<Box<Spooled>>,
    pub(crate) standard_strings: bool,
    pub(crate) utf8: bool,
    pub(crate) statements: PreparedStatements,
    pub(crate) values: Values,
    /// True if the session has asked for values of sequences in a way that only its server
    /// connection can answer: statements that take values go there from now on, and the session
    /// keeps the connection.
    pub(crate) asks: bool,
    /// The state of the catalog in which the sequence that it used last was there.
    pub(super) epoch: u64,
    pub(super) segment: Segment,
    pub(super) pending: VecDeque<Pending>,
    /// Room that those of them hold for their answers.
    pub(super) under_way: UnderWay,
    /// The session's place among the sources of a lane; `None` while it has none.
    pub(super) source: Option<LaneSource>,
    /// The lane that it wants to be in.
    pub(super) interest: Option<Arc<Interest>>,
    /// The transaction block that its client has begun and the server does not know yet.
    pub(super) unsent_block: Option<Box<UnsentBlock>>,
    /// True once what the client is about to have executed is not to be: it asked for that while a
    /// lane described it.
    pub(crate) cancel_requested: bool,
    /// Messages that it has dealt with since other tasks had their turn.
    pub(super) steps: u16,
    /// Cancelled when Windrow stops, or the client would not be let in any more.
    pub(crate) stop: CancellationToken,
}

/// The writes of a session in the spool.
#[derive(Debug)]
pub(super) struct Spooled {
    /// The session's source there.
    pub(super) source: SourceId,
    /// The place after all of them; `None` once the database has them.
    pub(super) place: Option<SpoolPlace>,
}

/// A transaction block that its client has begun and the server does not know yet.
#[derive(Debug)]
pub(crate) struct UnsentBlock {
    /// The statements that open the block on the server.
    pub(crate) opening: SmallVec<[Arc<CachedStatement>; 1]>,
    /// True if the last of them is bound to the unnamed portal.
    pub(crate) has_portal: bool,
    /// True if a statement of the block was refused before it reached a server.
    pub(crate) has_failed: bool,
}

/// Why a session ends.
#[derive(Debug)]
pub(crate) enum End {
    /// The client has left.
    Left,
    /// The client cannot be reached any more.
    Broken,
    /// The client does not take its answers, and others wait for the room that these take.
    Unread,
    /// The client gets this error.
    Fatal(Fault),
    /// The client got an error from its server.
    EndedByServer,
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        tracing::debug!(%error, "a client is gone");
        Self::Broken
    }
}

impl From<Stalled> for End {
    fn from(stalled: Stalled) -> Self {
        match stalled {
            Stalled::Unread => Self::Unread,
            Stalled::Still => Self::Fatal(charge::stalled()),
        }
    }
}

impl From<Violation> for End {
    fn from(violation: Violation) -> Self {
        Self::Fatal(violation.fault())
    }
}

impl Session {
    pub(super) fn new(client: AdmittedClient, shared: Arc<Shared>) -> Self {
        Self {
            connection: ClientConnection::new(
                client.stream,
                client.received,
                shared.config.max_message,
            ),
            stop: client.info.admission.revoked.clone(),
            info: client.info,
            who: Who {
                identity: client.identity,
                settings: client.settings,
                application_name: client.application_name,
                credential: client.credential,
            },
            own: client.own.clone(),
            own_default: client.own,
            spooled: None,
            standard_strings: client.standard_strings,
            utf8: client.utf8,
            statements: PreparedStatements::default(),
            values: Values::default(),
            asks: false,
            epoch: 0,
            segment: Segment::default(),
            pending: VecDeque::new(),
            under_way: UnderWay::default(),
            source: None,
            interest: None,
            unsent_block: None,
            cancel_requested: false,
            steps: 0,
            shared,
        }
    }

    /// Waits while work is held back.
    pub(crate) async fn pass_gate(&self) -> Result<(), End> {
        let (gate, database) = (&self.shared.gate, &self.who.identity.database);
        if gate.is_open(database) {
            return Ok(());
        }
        let passing = Box::pin(async {
            tokio::select! {
                () = gate.pass(database) => Ok(()),
                () = self.stop.cancelled() => Err(End::Fatal(shutdown())),
            }
        });
        passing.await
    }

    /// Reads a text that the client prepares.
    pub(crate) fn prepared(&self, parse: &Parse<'_>) -> Arc<CachedStatement> {
        let text = PreparedText {
            text: parse.text,
            standard_strings: self.standard_strings,
            utf8: self.utf8,
            is_named: !parse.name.is_empty(),
        };
        self.shared.cache.prepared(text, parse.type_oids())
    }

    /// Returns the meaning of a simple query's text.
    pub(crate) fn simple_query(&self, text: &[u8]) -> Simple {
        let cache = &self.shared.cache;
        // Replicas get a write whether or not its text was sent before.
        let is_eager = self.is_followed();
        cache.simple(text, (self.standard_strings, self.utf8), is_eager)
    }
}

/// The error that clients get when Windrow stops.
pub(crate) fn shutdown() -> Fault {
    Fault::new(
        FaultClass::Unavailable,
        "57P01",
        "terminating connection due to administrator command",
    )
}

impl Session {
    /// Returns the session's own answer to a statement. Nothing of it is under way.
    ///
    /// # Errors
    /// What is wrong with the statement.
    pub(super) async fn answer(&mut self, cached: &CachedStatement) -> Result<Reply, Fault> {
        if cached.effect() == Some(&Effect::Lastval) {
            Box::pin(self.look_for_last()).await;
        }
        self.reply(cached)
    }

    /// Returns true for DEALLOCATE of a statement that the server may not know, or not by that
    /// name.
    pub(super) fn has_deallocated(&self, cached: &CachedStatement) -> bool {
        let name = cached.deallocates();
        name.is_some_and(|name| self.statements.get(name.as_bytes()).is_some())
    }

    /// The same, of statements that can be answered at once.
    pub(crate) fn reply(&mut self, cached: &CachedStatement) -> Result<Reply, Fault> {
        if let Some(name) = cached.deallocates() {
            self.statements.set(name.as_bytes(), None);
            return Ok(Reply::Done("DEALLOCATE"));
        }
        match cached.effect() {
            Some(Effect::SetWindrow { name, value }) => {
                let Self {
                    own, own_default, ..
                } = self;
                let allowed = self.shared.allowed(&self.who.identity);
                own.set(name, value.as_deref(), own_default, allowed)?;
                let tag = if value.is_some() { "SET" } else { "RESET" };
                Ok(Reply::Done(tag))
            }
            Some(Effect::ShowWindrow { name }) => {
                let (name, value) = self.own.show(name)?;
                Ok(Reply::Text(name, value.into()))
            }
            Some(Effect::Lastval) if self.values.asks_for_lost_last() => Err(local::in_the_spool()),
            Some(Effect::Lastval) => match self.values.last() {
                Some(value) => Ok(Reply::Number("lastval", value)),
                None => Err(local::no_lastval()),
            },
            _ => Ok(Reply::Empty),
        }
    }

    /// Makes sure that the sequence which was used last is still there, where the catalog has
    /// changed since that was known.
    async fn look_for_last(&mut self) {
        let Some(sequence) = self.values.last_sequence() else {
            return;
        };
        let epoch = self.shared.proofs.epoch(&self.who.identity.database);
        if self.epoch == epoch {
            return;
        }
        let Ok(mut loan) = self.shared.databases.pool.take(&self.who).await else {
            return;
        };
        let sql = format!("SELECT FROM pg_catalog.pg_class WHERE oid = {sequence}");
        let rows = loan.wire.simple(&sql).await;
        loan.give_back(&self.who.settings, Leftover::Nothing, &[])
            .await;
        if let Ok(Ok(rows)) = rows {
            self.epoch = epoch;
            if rows.is_empty() {
                self.values.forget_last();
            }
        }
    }
}
