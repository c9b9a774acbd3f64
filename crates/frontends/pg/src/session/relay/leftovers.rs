//! The state that a session may have left on its server connection. Decides how the connection is
//! given back, or that the session keeps it.
//!
//! | source | decides |
//! | --- | --- |
//! | the kinds of the statements that were sent | if PostgreSQL is asked what it shows of the session |
//! | CommandComplete and ReadyForQuery | which SETs are in force |
//! | ParameterStatus | if there is a change that no SET of the session explains |
//! | the catalog, by the names in the texts (`judge`) | if anything else may be left that PostgreSQL does not show |

use std::sync::Arc;

use smallvec::SmallVec;
use windrow_core::Apart;
use windrow_sql::Names;

use super::ends::Ends;
use super::expect::What;
use super::followed_settings::FollowedSettings;
use super::rewrite;
use super::used_sequences::{Look, UsedSequences};
use crate::client::Settings;
use crate::pool::Leftover;
use crate::proofs::CatalogChange;
use crate::session_info::State;
use crate::statements::CachedStatement;

/// Asks if the session listens to a channel.
const CHANNELS: &[u8] = b"SELECT FROM pg_catalog.pg_listening_channels() LIMIT 1";

/// The reason that is counted for writes of a session that keeps its connection.
const PINNED: &str = "the session keeps a server connection";

/// The state that a session may have left on its server connection.
#[derive(Default)]
pub(super) struct Leftovers {
    /// True if values may have been taken from sequences.
    pub(super) generates: bool,
    /// The sequences that they may have been taken from.
    pub(super) sequences: UsedSequences,
    pub(super) look: Look,
    listening: Listening,
    /// True if PostgreSQL has to be asked what it shows of the session.
    is_unknown: bool,
    /// True if a statement was judged after it ran, or the server has reported a change that no SET
    /// of the session explains.
    pub(super) is_doubted: bool,
    /// Names in sent statements that are not judged yet.
    pub(super) unjudged: Vec<Arc<Names>>,
    /// True if the meaning of table names has changed since the session has the connection.
    pub(super) has_moved: bool,
    /// Unproven code that was run.
    pub(super) unproven: Option<Arc<Apart>>,
    /// A change of the catalog that is under way.
    pub(super) changing: Option<CatalogChange>,
    pub(super) settings: FollowedSettings,
    /// The reason for which the session keeps the connection, and none of its writes is joined.
    pinned: Option<Apart>,
    /// True if the session keeps the connection until it ends.
    pub(super) is_for_good: bool,
}

/// The session's channels. While it listens, no other questions are asked, because the server may
/// send notifications at any time.
#[derive(Default)]
struct Listening {
    /// True if the session may listen to channels.
    is_on: bool,
    /// True if the session has stopped listening to some of them.
    has_ended: bool,
    /// True if the answer to the question shows a channel, or is an error.
    is_confirmed: bool,
}

impl Leftovers {
    /// Returns the state of a connection that the session keeps after the questions.
    pub(super) fn of_kept(self) -> Self {
        Self {
            generates: self.generates,
            sequences: self.sequences,
            ..Self::default()
        }
    }

    /// Returns what may be left.
    pub(super) fn leftover(&self) -> Leftover {
        match () {
            () if self.unproven.is_some() => Leftover::Unproven,
            () if self.is_unknown || self.is_doubted => Leftover::Unknown,
            () if self.generates => Leftover::Values,
            () => Leftover::Nothing,
        }
    }

    /// Returns the same for a session that has ended: values of sequences are not asked for any
    /// more. `None` if the connection must be closed.
    pub(super) fn leftover_at_end(&self) -> Option<Leftover> {
        match self.leftover() {
            _ if self.is_for_good || self.listening.is_on || !self.unjudged.is_empty() => None,
            Leftover::Unproven => None,
            _ if self.pinned.is_some() => Some(Leftover::Unknown),
            leftover => Some(leftover),
        }
    }

    /// Returns true if losing the connection would lose nothing that the session has set up there.
    pub(super) fn is_replaceable(&self) -> bool {
        !self.is_unknown
    }

    /// Returns true if the session can go on without the server connection: nothing is asked of the
    /// server except for values of sequences, and the session has left nothing there.
    pub(super) fn can_lose_connection(&self, ends: &Ends<'_>) -> bool {
        let is_nothing = matches!(self.leftover(), Leftover::Nothing) && self.is_known();
        ends.status == b'I'
            && !ends.is_open
            && (ends.queue.has_only_values() || ends.queue.is_empty() && is_nothing)
    }

    /// Returns true if the connection may be given back, at a moment when nothing is under way.
    pub(super) fn may_give_back(&mut self, ends: &mut Ends<'_>) -> bool {
        if self.is_for_good || self.listening.is_on {
            return false;
        }
        if self.unproven.is_some() || !self.unjudged.is_empty() {
            return true;
        }
        // The question to PostgreSQL shows the effect of DISCARD ALL and similar statements. Until
        // then the connection is kept. A session that asks for values of sequences keeps them
        // there.
        if self.pinned.is_some() {
            return self.is_unknown && !(ends.session.asks && self.generates);
        }
        if (!ends.session.own.join || ends.session.asks) && self.generates {
            // Without joining, and in a session that asks in any way, the server's lastval() and
            // currval() are the session's own.
            self.pin(ends, "sequence values");
            return false;
        }
        true
    }

    /// Returns true if the session should stay for a while, because its connection answers
    /// questions about sequences.
    pub(super) fn may_stay(&self) -> bool {
        self.generates && !self.is_unknown && self.unproven.is_none()
    }

    /// Returns the sequences to ask for, if only the values taken from them keep the connection
    /// from other sessions.
    pub(super) fn sequences_to_ask(&self, ends: &Ends<'_>) -> Option<SmallVec<[u32; 2]>> {
        let session = &*ends.session;
        let is_free = self.leftover() == Leftover::Values && self.unjudged.is_empty();
        let is_asked = is_free && !self.is_kept() && session.own.join && !session.asks;
        is_asked.then(|| self.sequences.numbers())?
    }

    /// Notes that the values taken from sequences are known, and removed from the connection.
    pub(super) fn note_values_taken(&mut self) {
        self.look = Look::Unknown;
        self.generates = false;
        self.sequences = UsedSequences::default();
    }

    /// Returns true if all settings of the connection are known to be the session's.
    pub(super) fn is_known(&self) -> bool {
        self.unproven.is_none() && self.unjudged.is_empty() && !self.is_kept()
    }

    /// Returns the reason for which the session keeps the connection, if it was counted.
    pub(super) fn pinned(&self) -> Option<&Apart> {
        self.pinned.as_ref()
    }

    /// Returns true if the session keeps the connection.
    pub(super) fn is_kept(&self) -> bool {
        self.pinned.is_some() || self.is_for_good || self.listening.is_on
    }

    /// Returns true if statements mean the same here as in the session's lane.
    pub(super) fn is_as_in_lane(&self) -> bool {
        self.changing.is_none()
            && self.unproven.is_none()
            && !self.has_moved
            && !self.settings.has_changed()
    }

    /// Keeps the connection.
    pub(super) fn pin(&mut self, ends: &mut Ends<'_>, why: impl Into<Box<str>>) {
        let advice = self.unproven.as_ref().map_or("", |apart| apart.advice);
        let why = Apart::of(PINNED).by(why).advised(advice);
        ends.session.info.set_pinned(&why.object, advice);
        self.pinned = Some(why);
        ends.session.info.set_state(State::Pinned);
    }

    /// Notes a statement that is sent, or bound to a portal.
    pub(super) fn note(
        &mut self,
        ends: &mut Ends<'_>,
        cached: &Arc<CachedStatement>,
        portal: Option<&[u8]>,
    ) {
        let names = cached.names();
        self.generates |= names.is_none_or(|names| names.may_generate);
        self.settings.note(cached, portal);
        self.suspect(ends, cached);
    }

    /// Notes that PostgreSQL has to be asked what it shows of the session.
    pub(super) fn note_kept(&mut self, names: &Names) {
        self.is_unknown |= names.keeps();
    }

    /// Notes that a statement is complete. `undoes_part`: it may be a ROLLBACK TO.
    pub(super) fn completed(
        &mut self,
        tag: &[u8],
        cached: Option<Arc<CachedStatement>>,
        undoes_part: bool,
    ) {
        match tag {
            b"DISCARD TEMP" => self.look = Look::Unknown,
            b"DISCARD ALL" | b"DISCARD SEQUENCES" => self.note_values_taken(),
            _ => {}
        }
        self.listening.has_ended |= matches!(tag, b"UNLISTEN" | b"DISCARD ALL");
        // The reason for which the connection is kept may be gone.
        let goes: [&[u8]; 6] = [b"DROP ", b"DISCARD ", b"RESET", b"SET", b"CLOSE", b"COMMIT"];
        self.is_unknown |= self.pinned.is_some() && goes.iter().any(|goes| tag.starts_with(goes));
        self.settings.completed(tag, cached, undoes_part);
    }

    /// Handles ReadyForQuery: the status before, and the reported one. Returns true if the
    /// session's settings have changed.
    pub(super) fn ready(&mut self, (before, now): (u8, u8), settings: &mut Settings) -> bool {
        if now != b'I' || before != b'I' {
            // A rollback may remove the function of `look`.
            self.look = Look::Unknown;
        }
        if now != b'I' {
            self.settings.go_on();
            return false;
        }
        self.changing = None;
        let has_changed = self.settings.settle(before, settings);
        self.is_unknown |= self.settings.take_lost();
        has_changed
    }

    /// Notes that the server has reported another role or search path.
    pub(super) fn note_reported(&mut self) {
        self.is_doubted |= !self.has_moved;
    }

    /// Notes that the session listens to a channel.
    pub(super) fn listen(&mut self, ends: &mut Ends<'_>) {
        self.listening.is_on = true;
        self.pin(ends, "LISTEN");
    }

    /// Returns true if the session may listen to a channel.
    pub(super) fn is_listening(&self) -> bool {
        self.listening.is_on
    }

    /// Asks if the session still listens, once it has stopped listening to a channel and nothing is
    /// under way. Returns true if the question is sent.
    pub(super) fn asks_for_channels(&mut self, ends: &mut Ends<'_>) -> bool {
        let listening = &mut self.listening;
        if !listening.is_on || !listening.has_ended {
            return false;
        }
        // The session still listens if a channel is shown, or anything fails.
        (listening.has_ended, listening.is_confirmed) = (false, false);
        ends.loan.names.unnamed = None;
        rewrite::query(ends.out(), CHANNELS);
        ends.queue.push(What::Channels, true);
        true
    }

    /// Handles an answer to that question. Returns false if the message answers another one.
    pub(super) fn is_about_channels(&mut self, ends: &mut Ends<'_>, tag: u8) -> bool {
        let front = ends.queue.front();
        let is_asked = front.is_some_and(|front| matches!(front.what, What::Channels));
        if !is_asked || matches!(tag, b'A' | b'N' | b'S') {
            return false;
        }
        self.listening.is_confirmed |= matches!(tag, b'D' | b'E');
        if tag == b'Z' {
            ends.queue.pop_if(|what| matches!(what, What::Channels));
            self.listening.is_on = self.listening.is_confirmed;
            // PostgreSQL is asked for anything else when the connection is given back.
            self.is_unknown |= !self.listening.is_on;
        }
        true
    }
}
