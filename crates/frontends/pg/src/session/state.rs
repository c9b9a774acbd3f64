//! The state of a session.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windrow_core::{Fault, FaultClass};

use super::client_connection::ClientConnection;
use super::pending::Pending;
use super::room::UnderWay;
use super::segment::Segment;
use super::spooled::Spooled;
use super::values::Values;
use crate::admitted_client::AdmittedClient;
use crate::charge::{self, Stalled};
use crate::codec::frame::Violation;
use crate::codec::message::Parse;
use crate::lanes::{Interest, LaneSource};
use crate::own::Own;
use crate::pool::Who;
use crate::session_info::SessionInfo;
use crate::shared::Shared;
use crate::statements::{CachedStatement, PreparedStatements, PreparedText, Simple};

/// One client's session.
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) info: Arc<SessionInfo>,
    pub(crate) connection: ClientConnection,
    /// Who the client is, and under which settings it works.
    pub(crate) who: Who,
    /// Windrow's own settings, and what they were at the start.
    pub(crate) own: Own,
    pub(crate) own_default: Own,
    /// What it has in the spool; `None` where it has had nothing there.
    pub(super) spooled: Option<Box<Spooled>>,
    pub(crate) standard_strings: bool,
    pub(crate) utf8: bool,
    pub(crate) statements: PreparedStatements,
    pub(crate) values: Values,
    /// It has asked what sequences gave in a way that only its server connection can answer: what
    /// takes from them goes there from now on, and it keeps the connection.
    pub(crate) asks: bool,
    /// The state of the catalog in which the sequence that it used last was there.
    pub(super) epoch: u64,
    pub(super) segment: Segment,
    pub(super) pending: VecDeque<Pending>,
    /// Room that those of them hold for their answers.
    pub(super) under_way: UnderWay,
    /// Its place among those who hand units to a lane; `None` while it has none.
    pub(super) source: Option<LaneSource>,
    /// The lane that it wants to be in.
    pub(super) interest: Option<Arc<Interest>>,
    /// True once what the client is about to have executed is not to be: it asked for that while a
    /// lane described it.
    pub(crate) cancel_requested: bool,
    /// Messages that it has dealt with since other tasks had their turn.
    pub(super) steps: u16,
    /// Cancelled when Windrow stops, or the client would not be let in any more.
    pub(crate) stop: CancellationToken,
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
    /// The client is told why.
    Fatal(Fault),
    /// The client was told why by its server.
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

    /// What is known of a simple query's text.
    pub(crate) fn simple_query(&self, text: &[u8]) -> Simple {
        let cache = &self.shared.cache;
        // Replicas get a write whether or not its text was sent before.
        let is_eager = self.is_followed();
        cache.simple(text, (self.standard_strings, self.utf8), is_eager)
    }
}

/// What a client is told when Windrow stops.
pub(crate) fn shutdown() -> Fault {
    Fault::new(
        FaultClass::Unavailable,
        "57P01",
        "terminating connection due to administrator command",
    )
}
