//! The facts about a session that decide whether its writes can be joined.

use std::sync::Arc;
use std::time::{Duration, Instant};

use windrow_mysqlwire::{ErrorPacket, LaneLogin, StatusFlags, Warning, WriteFailure};
use windrow_sql::mysql::SessionEffect;

use crate::lanes::{LaneSource, WantedLane};

/// The reason for a transaction that the client has begun.
const IN_TRANSACTION: &str = "in a transaction";

/// The reason for a session that does not use autocommit.
const NO_AUTOCOMMIT: &str = "autocommit is off";

/// The time after which a session whose writes go to its lane sends a ping on its server
/// connection. The shortest `wait_timeout` of servers is a second.
const UNHEARD_LIMIT: Duration = Duration::from_millis(500);

/// The place of the message in an error's packet: after the number and the SQLSTATE.
const MESSAGE_PLACE: usize = 9;

/// MariaDB's flag of a session whose double quotes enclose names.
const ANSI_QUOTES: StatusFlags = StatusFlags::from_bits_retain(0x8000);

/// The facts about a session.
#[derive(Default)]
pub(crate) struct SessionState {
    /// The last status that the server reported.
    status: StatusFlags,
    /// The number of times that settings may have changed.
    settings_changes: u64,
    /// True if parameters of prepared statements may have another collation than texts.
    has_other_collation: bool,
    /// The reason for which the session is relayed until it is reset.
    relayed_for: Option<&'static str>,
    /// The lane of the session's settings; `None` if the settings must be asked for.
    pub(crate) source: Option<LaneSource>,
    /// The session's request for a lane that no other session has asked for.
    pub(crate) wanted: Option<UnsharedLane>,
    /// The number of the collation that columns of text have in the session's results, if the
    /// settings have been asked for.
    pub(crate) results_collation: Option<[u8; 2]>,
    /// The time when the session last used its server connection.
    last_heard: Option<Instant>,
    /// The joined write that was answered last, if no other statement has been executed since.
    pub(crate) last_write: Option<LastWrite>,
    /// True if the session's server connection may have an error or warnings of a statement before
    /// the last joined write.
    pub(crate) has_old_diagnostics: bool,
    /// The number that `LAST_INSERT_ID()` gives, if the session's server connection does not know
    /// it.
    pub(crate) insert_id: Option<u64>,
}

/// A session's request for a lane that no other session has asked for so far.
pub(crate) struct UnsharedLane {
    pub(crate) wanted: Arc<WantedLane>,
    pub(crate) login: LaneLogin,
}

/// The facts about a joined write that a client can ask for after its answer.
#[derive(Debug, Default)]
pub(crate) struct LastWrite {
    /// The affected rows; `None` if the write failed, or returned rows.
    pub(crate) affected: Option<u64>,
    /// The rows of `SHOW WARNINGS`. After a question that is a SELECT, MySQL has none.
    pub(crate) warnings: Vec<Warning>,
    /// The error of a write that failed.
    pub(crate) error: Option<ErrorPacket>,
    /// True once the server has answered a question after the write. From then on `ROW_COUNT()`
    /// counts the rows of the question.
    pub(crate) is_behind_question: bool,
}

impl LastWrite {
    /// Returns the facts about a statement that Windrow has refused.
    pub(crate) fn refused(error: &ErrorPacket) -> Self {
        Self::failed(WriteFailure {
            error: error.encode().into(),
            ..WriteFailure::default()
        })
    }

    /// Returns the facts about a write that failed.
    pub(crate) fn failed(failure: WriteFailure) -> Self {
        let error = ErrorPacket::parse(&failure.error);
        let own = || {
            let error = error.as_ref()?;
            Some(Warning {
                level: b"Error"[..].into(),
                number: error.number,
                message: failure.error.get(MESSAGE_PLACE..)?.into(),
            })
        };
        let warnings = match failure.warnings.is_empty() {
            true => own().into_iter().collect(),
            false => failure.warnings,
        };
        Self {
            affected: None,
            warnings,
            error,
            is_behind_question: false,
        }
    }
}

impl SessionState {
    /// Returns the facts about a session that has just begun with this status.
    pub(crate) fn new(status: StatusFlags) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    /// Notes the status that the server reported.
    pub(crate) fn set_status(&mut self, status: StatusFlags) {
        self.status = status;
    }

    /// Returns true while the session is in a transaction.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.status.contains(StatusFlags::SERVER_STATUS_IN_TRANS)
    }

    /// Returns true if a write does not commit by itself.
    pub(crate) fn has_transaction(&self) -> bool {
        let autocommit = StatusFlags::SERVER_STATUS_AUTOCOMMIT;
        self.is_in_transaction() || !self.status.contains(autocommit)
    }

    /// Returns the status in the report of a joined write.
    pub(crate) fn status_of_write(&self) -> StatusFlags {
        let kept = StatusFlags::SERVER_STATUS_AUTOCOMMIT
            | StatusFlags::SERVER_STATUS_NO_BACKSLASH_ESCAPES
            | ANSI_QUOTES;
        self.status & kept
    }

    /// Returns true if a backslash in a text is an escape.
    pub(crate) fn has_escapes(&self) -> bool {
        let none = StatusFlags::SERVER_STATUS_NO_BACKSLASH_ESCAPES;
        !self.status.contains(none)
    }

    /// Returns the reason for which no write of the session can be joined now.
    pub(crate) fn hindrance(&self) -> Option<&'static str> {
        if self.relayed_for.is_some() {
            self.relayed_for
        } else if self.is_in_transaction() {
            Some(IN_TRANSACTION)
        } else if !self.status.contains(StatusFlags::SERVER_STATUS_AUTOCOMMIT) {
            Some(NO_AUTOCOMMIT)
        } else {
            None
        }
    }

    /// Notes that the session used its server connection.
    pub(crate) fn heard(&mut self) {
        self.last_heard = Some(Instant::now());
    }

    /// Returns true if the session has not used its server connection for a while, although its
    /// writes may go to the lane.
    pub(crate) fn is_unheard(&self) -> bool {
        self.last_heard
            .is_none_or(|at| at.elapsed() >= UNHEARD_LIMIT)
    }

    /// Returns the number of times that settings may have changed.
    pub(crate) fn settings_changes(&self) -> u64 {
        self.settings_changes
    }

    /// Returns true if parameters of prepared statements may have another collation than texts: no
    /// other session can be given both.
    pub(crate) fn has_other_collation(&self) -> bool {
        self.has_other_collation
    }

    /// Returns false if the session is relayed until it is reset, so that the effects of statements
    /// do not matter.
    pub(crate) fn is_followed(&self) -> bool {
        self.relayed_for.is_none()
    }

    /// Notes the effect of a statement that was relayed.
    pub(crate) fn note(&mut self, effect: SessionEffect) {
        match effect {
            SessionEffect::Nothing | SessionEffect::Settings => {}
            SessionEffect::Names => self.has_other_collation = false,
            SessionEffect::Collations => self.has_other_collation = true,
            SessionEffect::Unknown(reason) => self.relay_for(reason),
        }
        if effect.changes_settings() {
            self.settings_changes += 1;
            self.source = None;
            self.wanted = None;
        }
    }

    /// Relays all commands of the session until it is reset.
    pub(crate) fn relay_for(&mut self, reason: &'static str) {
        self.relayed_for.get_or_insert(reason);
        self.source = None;
        self.wanted = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_joined_in_autocommit_and_a_known_session() {
        let autocommit = StatusFlags::SERVER_STATUS_AUTOCOMMIT;
        let mut state = SessionState::new(autocommit);
        assert_eq!(state.hindrance(), None);
        state.set_status(autocommit | StatusFlags::SERVER_STATUS_IN_TRANS);
        assert_eq!(state.hindrance(), Some(IN_TRANSACTION));
        state.set_status(StatusFlags::empty());
        assert_eq!(state.hindrance(), Some(NO_AUTOCOMMIT));
        state.set_status(autocommit);
        state.note(SessionEffect::Settings);
        assert_eq!(state.hindrance(), None);
        assert_eq!(state.settings_changes(), 1);
        state.note(SessionEffect::Unknown("one"));
        state.note(SessionEffect::Unknown("two"));
        assert_eq!(state.hindrance(), Some("one"));
        assert!(!state.is_followed());
    }
}
