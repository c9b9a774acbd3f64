//! A session on a server connection: its state, and what all that happens there does with it.

use std::hash::BuildHasher;
use std::sync::atomic::Ordering;

use windrow_core::{Fault, FaultClass};

use super::deferred::Deferred;
use super::expect::{Queue, What};
use super::portals::Portals;
use super::preparation::Preparing;
use super::rewrite;
use super::server_state::ServerState;
use crate::charge::FREE;
use crate::pool::Loan;
use crate::session::state::Session;
use crate::session_info::State;
use crate::statements::FixedTypes;

/// What waits to be sent to the server, in bytes: past it the client is read more slowly.
pub(super) const TO_SERVER: usize = 64 * 1024;

/// Messages that wait for their answers: past it the client is read more slowly.
const OUTSTANDING: usize = 4096;

/// A session on a server connection.
pub(super) struct Relay<'s> {
    pub(super) session: &'s mut Session,
    pub(super) loan: Box<Loan>,
    pub(super) queue: Queue,
    /// What the last ReadyForQuery said: `I`, `T` or `E`.
    pub(super) status: u8,
    /// Messages of the client whose answers it has already got.
    pub(super) answered: usize,
    /// Bytes of a message that was begun: from the client to the server, and from the server to
    /// the client.
    pub(super) to_server: usize,
    pub(super) to_client: usize,
    /// True while the bytes from the server are not passed on.
    pub(super) muted: bool,
    /// What the session may have left behind on it.
    pub(super) server_state: ServerState,
    /// Why statements come here that could be joined.
    pub(super) reason: &'static str,
    /// A fingerprint of the session's settings, which its statements were read under.
    pub(super) settings: u64,
    /// The server has closed the connection.
    pub(super) ended: bool,
    /// Messages were passed on since the last Sync, and Parse of the unnamed statement among them.
    pub(super) open: bool,
    pub(super) unnamed_here: bool,
    /// The types of an unnamed statement whose client may use it in a later segment: asked for at
    /// Sync.
    pub(super) unfixed: Option<FixedTypes>,
    /// The types of a statement that is being prepared again, which the next message waits for.
    pub(super) awaited: Option<Awaited>,
    /// The body of ParameterDescription, until RowDescription is there.
    pub(super) parameters: Box<[u8]>,
    /// What was answered before the server has answered it.
    pub(super) deferred: Deferred,
    /// The statements that are bound to its portals.
    pub(super) portals: Portals,
    /// True once a message of the session was passed on.
    pub(super) has_begun: bool,
    /// True if replicas follow what lanes write.
    pub(super) is_followed: bool,
    /// SQL may have prepared statements on the server connection.
    pub(super) sql_prepares: bool,
    /// The preparation of statements that the simple query at the front of the inbox names.
    pub(super) preparing: Option<Preparing>,
}

/// The types of a statement that is being prepared again.
pub(super) struct Awaited {
    pub(super) fixed: FixedTypes,
    /// True if it is prepared with the types that its client named, false for those that the client
    /// was told.
    pub(super) is_own: bool,
}

impl<'s> Relay<'s> {
    /// A session that has just got a connection. `answered`: so many messages were answered
    /// already. `reason`: why the first one comes here.
    pub(super) fn new(
        session: &'s mut Session,
        loan: Box<Loan>,
        answered: usize,
        reason: &'static str,
    ) -> Self {
        let settings = fingerprint(session);
        let is_followed = session.is_followed();
        Self {
            session,
            loan,
            queue: Queue::default(),
            status: b'I',
            answered,
            to_server: 0,
            to_client: 0,
            muted: false,
            server_state: ServerState::default(),
            reason,
            settings,
            ended: false,
            open: false,
            unnamed_here: false,
            unfixed: None,
            awaited: None,
            parameters: Box::default(),
            deferred: Deferred::default(),
            portals: Portals::default(),
            has_begun: false,
            is_followed,
            sql_prepares: false,
            preparing: None,
        }
    }
}

impl Relay<'_> {
    /// True where nothing more of the client is taken in for the moment.
    pub(super) fn is_busy(&mut self) -> bool {
        self.loan.wire.out().len() >= TO_SERVER || self.queue.len() >= OUTSTANDING
    }

    /// True where everything that was asked is answered, outside of a transaction.
    pub(super) fn is_at_rest(&mut self) -> bool {
        self.status == b'I' && self.is_quiet()
    }

    /// True where everything that was asked is answered.
    pub(super) fn is_quiet(&mut self) -> bool {
        let idle = self.queue.is_empty() && self.to_server == 0 && self.to_client == 0;
        idle && !self.open
            && !self.ended
            && self.loan.wire.out().is_empty()
            && self.loan.wire.received().is_empty()
    }

    /// Passes on a whole message as it is.
    pub(super) fn raw(&mut self, total: usize) {
        let (connection, out) = (&mut self.session.connection, self.loan.wire.out());
        if out.is_empty() && total > FREE {
            // Not copied: a long message would be there twice.
            *out = connection.split(total);
            return;
        }
        if let Some(bytes) = connection.inbox.get(..total) {
            out.extend_from_slice(bytes);
        }
        connection.take(total);
    }

    /// Passes on bytes for which this is expected.
    pub(super) fn pass(&mut self, bytes: &[u8], what: What, muted: bool) {
        self.loan.wire.out().extend_from_slice(bytes);
        self.queue.push(what, muted);
    }

    /// Sends something that fails, and lets the client see this error in place of the server's.
    pub(super) fn fail(&mut self, fault: Fault) {
        rewrite::failing(self.loan.wire.out());
        let fails = What::Fails(Some(Box::new(fault)));
        self.queue.push(fails, false);
    }

    /// The connection is kept, and why.
    pub(super) fn pin(&mut self, why: impl Into<Box<str>>) {
        let why = why.into();
        let unproven = self.server_state.unproven.as_ref();
        let advice = unproven.map_or("", |apart| apart.advice);
        self.session.info.set_pinned(&why, advice);
        self.server_state.pinned = Some(why);
        self.session.info.set_state(State::Pinned);
    }

    /// Counts a statement that is relayed, and why.
    pub(super) fn count(&self, reason: &'static str) {
        self.session.info.relayed.fetch_add(1, Ordering::Relaxed);
        self.session.shared.bypass.count(reason);
    }
}

/// Numbers the settings, for statements that were read under them.
pub(super) fn fingerprint(session: &Session) -> u64 {
    let set = &session.who.settings.set;
    match set.is_empty() {
        true => 0,
        false => foldhash::fast::FixedState::default().hash_one(set),
    }
}

/// The error of a session whose server connection was closed while nothing could be committed.
pub(super) fn closed() -> Fault {
    Fault::new(
        FaultClass::Unavailable,
        "57P01",
        "terminating connection: the server closed the connection of this session",
    )
}

/// The error of a session whose server connection was lost while something could be committed.
pub(super) fn unconfirmed() -> Fault {
    Fault::unknown(
        "terminating connection: the server connection of this session was lost before the server confirmed what was sent; whether it was committed cannot be known",
    )
    .with_hint(Some("Look whether it was written before you send it again."))
}

/// What the client is told where the server connection is lost.
pub(super) fn lost() -> Fault {
    Fault::new(
        FaultClass::Unavailable,
        "57P01",
        "terminating connection: the server connection of this session is lost, and with it what the session had set up there",
    )
}
