//! The lanes that sessions have open, and the databases' verdicts on statements.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use windrow_core::{Apart, CurrentStatements, Described, Fault, LanePorts, SourceId, Statement};
use windrow_mysqlwire::LaneLogin;
use windrow_sql::mysql::{Modes, read};

use crate::services::Lanes;

/// The time after which a statement that is not joined is described again: its table may have
/// changed.
const APART_AGAIN: Duration = Duration::from_secs(10);

/// Character sets in which a byte below 0x80 may be the second one of a character.
const NOT_ASCII_BASED: [&str; 6] = ["big5", "cp932", "eucjpms", "gb18030", "gbk", "sjis"];

/// Lanes that are opened for one session alone.
const MAX_FREE_LANES: usize = 8;

/// The longest text that is kept, in bytes.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// The most texts of a generation, and the most bytes of them.
const MAX_TEXTS: usize = 1_024;
const MAX_BYTES: usize = 4 << 20;

/// The lanes that are open.
pub(crate) struct LaneBook {
    lanes: Arc<dyn Lanes>,
    open: Mutex<HashMap<LaneLogin, Weak<Lane>>>,
    /// The logins that sessions have, with or without a lane.
    wanted: Mutex<HashMap<LaneLogin, Weak<WantedLane>>>,
}

/// A session's request for the lane of its login. Sessions with equal logins share it.
pub(crate) struct WantedLane(());

/// The reason for which a session has no lane.
pub(crate) enum NoLane {
    /// No other session has these settings, so a lane would join nothing.
    Unshared(Arc<WantedLane>),
    /// The lane cannot be opened.
    Refused(Fault),
}

/// A lane, as sessions share it.
pub(crate) struct Lane {
    pub(crate) ports: LanePorts,
    user: Box<[u8]>,
    /// The database of the session's settings; empty if there is none.
    database: Box<str>,
    /// The modes by which texts are read; `None` if none of them is joined.
    modes: Option<Modes>,
    /// The character set of what clients send.
    charset: Arc<str>,
    /// True if texts that are not plain ASCII can be read.
    reads_utf8: bool,
    /// True if each byte of a text below 0x80 is a character of its own.
    is_ascii_based: bool,
    statements: Mutex<Statements>,
    /// Held by the session that asks the database about a statement.
    asking: tokio::sync::Mutex<()>,
}

/// A session that sends units to a lane.
pub(crate) struct LaneSource {
    _wanted: Arc<WantedLane>,
    pub(crate) lane: Arc<Lane>,
    pub(crate) id: SourceId,
}

/// The verdict on a statement's text.
#[derive(Clone, Debug)]
pub(crate) enum TextVerdict {
    /// Calls of it can be joined.
    Joined(Arc<Statement>),
    /// The database gave a reason why they cannot, at this time.
    Apart(Arc<Apart>, Instant),
    /// The text itself is the reason.
    Unread(&'static str),
}

/// Verdicts by text, in two generations: when the younger one is full, the older one is dropped.
#[derive(Default)]
struct Statements {
    young: HashMap<Box<str>, TextVerdict>,
    old: HashMap<Box<str>, TextVerdict>,
    bytes: usize,
}

impl LaneBook {
    pub(crate) fn new(lanes: Arc<dyn Lanes>) -> Self {
        Self {
            lanes,
            open: Mutex::default(),
            wanted: Mutex::default(),
        }
    }

    /// Makes the session a source of the lane of its login. A lane beyond the first
    /// [`MAX_FREE_LANES`] is opened once two sessions want it, or if `is_due` is true.
    ///
    /// # Errors
    /// The reason for which there is no lane.
    pub(crate) fn enter(
        &self,
        login: &LaneLogin,
        is_mariadb: bool,
        is_due: bool,
    ) -> Result<LaneSource, NoLane> {
        let wanted = self.want(login);
        let mut open = self.open.lock();
        let lane = match open.get(login).and_then(Weak::upgrade) {
            Some(lane) => lane,
            None => {
                open.retain(|_, lane| lane.strong_count() > 0);
                let is_unshared = open.len() >= MAX_FREE_LANES && Arc::strong_count(&wanted) < 2;
                if is_unshared && !is_due {
                    return Err(NoLane::Unshared(wanted));
                }
                let ports = self.lanes.open(login).map_err(NoLane::Refused)?;
                let lane = Arc::new(Lane::new(ports, login, is_mariadb));
                open.insert(login.clone(), Arc::downgrade(&lane));
                lane
            }
        };
        Ok(LaneSource {
            _wanted: wanted,
            id: lane.ports.intake.new_source(),
            lane,
        })
    }

    fn want(&self, login: &LaneLogin) -> Arc<WantedLane> {
        let mut all = self.wanted.lock();
        if let Some(wanted) = all.get(login).and_then(Weak::upgrade) {
            return wanted;
        }
        all.retain(|_, wanted| wanted.strong_count() > 0);
        let wanted = Arc::new(WantedLane(()));
        all.insert(login.clone(), Arc::downgrade(&wanted));
        wanted
    }

    /// Has each statement described again before it is joined: tables may have changed.
    pub(crate) fn tables_changed(&self) {
        let open: Vec<_> = self
            .open
            .lock()
            .values()
            .filter_map(Weak::upgrade)
            .collect();
        for lane in open {
            lane.statements.lock().tables_changed();
        }
    }

    /// Ends the lanes of users that are not admitted any more.
    pub(crate) fn revoke(&self, user: &[u8]) {
        self.open.lock().retain(|login, _| *login.user != *user);
        self.lanes.revoke(user);
    }
}

impl Lane {
    fn new(ports: LanePorts, login: &LaneLogin, is_mariadb: bool) -> Self {
        let mode = login.variable("sql_mode").unwrap_or_default();
        let charset = login.variable("character_set_client").unwrap_or_default();
        Self {
            ports,
            user: login.user.clone(),
            database: login.database.clone().unwrap_or_default(),
            modes: Modes::of(mode, is_mariadb),
            charset: charset.into(),
            is_ascii_based: !NOT_ASCII_BASED.contains(&charset),
            reads_utf8: matches!(charset, "utf8mb4" | "utf8mb3" | "utf8"),
            statements: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the character set of what the clients send.
    pub(crate) fn charset(&self) -> Arc<str> {
        Arc::clone(&self.charset)
    }

    /// Returns true if each byte of a text below 0x80 is a character of its own.
    pub(crate) fn is_ascii_based(&self) -> bool {
        self.is_ascii_based
    }

    /// Returns the database of the sessions; an empty name if they have none.
    pub(crate) fn database(&self) -> &str {
        &self.database
    }

    /// Returns the user of the sessions.
    pub(crate) fn user(&self) -> &[u8] {
        &self.user
    }

    /// Returns true if a statement still means what it meant.
    ///
    /// # Errors
    /// As [`CurrentStatements::has`].
    pub(crate) async fn is_current(
        &self,
        current: &CurrentStatements,
        statement: &Arc<Statement>,
    ) -> Result<bool, Fault> {
        let asked = (&self.ports.describer, &self.asking);
        // A change that is made through Windrow retires its statements.
        current.has(asked, statement, 0).await
    }

    /// Returns the modes by which a text is read; `None` if texts of this lane are not joined.
    pub(crate) fn modes(&self) -> Option<Modes> {
        self.modes
    }

    /// Returns true if this lane can read a text.
    pub(crate) fn reads(&self, text: &str) -> bool {
        self.reads_utf8 || text.is_ascii()
    }

    /// Returns the verdict on a text, if there is one that still holds.
    pub(crate) fn known(&self, text: &str) -> Option<TextVerdict> {
        let verdict = self.statements.lock().get(text)?;
        match &verdict {
            TextVerdict::Joined(statement) if statement.is_retired() => None,
            TextVerdict::Apart(_, since) if since.elapsed() >= APART_AGAIN => None,
            _ => Some(verdict),
        }
    }

    /// Returns the verdict on a text, for which the database may be asked. Sessions that ask at the
    /// same time share an answer. Cancel safe.
    ///
    /// # Errors
    /// As [`windrow_core::Describer::describe`].
    pub(crate) async fn describe(&self, text: &str, modes: Modes) -> Result<TextVerdict, Fault> {
        let _turn = self.asking.lock().await;
        if let Some(known) = self.known(text) {
            return Ok(known);
        }
        let verdict = match read(text, modes) {
            Err(reason) => TextVerdict::Unread(reason),
            Ok(parsed) => match self.ports.describer.describe(&Arc::new(parsed)).await? {
                Described::Joined(statement) => TextVerdict::Joined(statement),
                Described::Apart(apart) => TextVerdict::Apart(apart, Instant::now()),
            },
        };
        self.statements.lock().keep(text, verdict.clone());
        Ok(verdict)
    }
}

impl Statements {
    /// Retires the statements that are joined, and forgets why others are not.
    fn tables_changed(&mut self) {
        for verdicts in [&mut self.young, &mut self.old] {
            verdicts.retain(|_, verdict| match verdict {
                TextVerdict::Joined(statement) => {
                    statement.retire();
                    true
                }
                TextVerdict::Apart(..) => false,
                TextVerdict::Unread(_) => true,
            });
        }
    }

    fn get(&mut self, text: &str) -> Option<TextVerdict> {
        if let Some(verdict) = self.young.get(text) {
            return Some(verdict.clone());
        }
        let verdict = self.old.remove(text)?;
        self.keep(text, verdict.clone());
        Some(verdict)
    }

    fn keep(&mut self, text: &str, verdict: TextVerdict) {
        if text.len() > MAX_TEXT_BYTES {
            return;
        }
        if self.young.len() >= MAX_TEXTS || self.bytes + text.len() > MAX_BYTES {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += text.len();
        self.young.insert(text.into(), verdict);
    }
}

/// Returns true if a text may change tables that other sessions use. It misses only texts that
/// begin with a comment or call a procedure.
pub(crate) fn may_change_tables(text: &str) -> bool {
    text.split(';').any(|statement| {
        // The head of an executable comment is skipped.
        let statement = statement.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
        let mut words = statement.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        let is = |word: &&str| first.eq_ignore_ascii_case(word);
        let is_temporary = |word: &str| word.eq_ignore_ascii_case("TEMPORARY");
        ["ALTER", "CREATE", "DROP", "RENAME"].iter().any(is)
            && !words.next().is_some_and(is_temporary)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_change_tables_are_known_by_their_first_words() {
        for text in [
            "create trigger x",
            " ALTER TABLE t",
            "select 1; drop table t",
            "/*!50003 CREATE TRIGGER x */",
            "rename table a to b",
        ] {
            assert!(may_change_tables(text), "{text}");
        }
        for text in [
            "select created_at from t",
            "create temporary table x (a int)",
            "",
            "insert into t values ('create')",
        ] {
            assert!(!may_change_tables(text), "{text}");
        }
    }
}
