//! The judge's own database: units go straight to the server, each source over a session of its
//! own.

use windrow_testkit::pgclient::Address;

use super::play::{PROBE, Session};
use super::program::Case;
use crate::oracle::World;
use crate::record::{Line, Told};

/// A copy of a case's tables.
pub struct Copy<'a> {
    case: &'a Case,
    schema: &'a str,
    /// As whom the sources come.
    role: &'a Address,
    /// A superuser's session, which listens.
    owner: &'a mut Session,
    sessions: Vec<Session>,
    /// Nothing was done since the tables were made.
    fresh: bool,
    /// What came by NOTIFY.
    notified: Vec<Line>,
}

impl<'a> Copy<'a> {
    /// The tables have just been made.
    pub fn new(case: &'a Case, schema: &'a str, role: &'a Address, owner: &'a mut Session) -> Self {
        Self {
            case,
            schema,
            role,
            owner,
            sessions: Vec::new(),
            fresh: true,
            notified: Vec::new(),
        }
    }
}

impl World for Copy<'_> {
    fn reset(&mut self) {
        // What the sessions still hold ends with them.
        if self.case.is_sticky() || self.sessions.is_empty() {
            self.sessions.clear();
            let sources = self.case.sources.iter();
            self.sessions = sources.map(|_| Session::open(self.role).unwrap()).collect();
        }
        if !std::mem::take(&mut self.fresh) {
            let renewal = self.case.catalog.renewal(self.schema, self.case.alters());
            assert!(!self.owner.refuses(&renewal), "{renewal}");
        }
        self.owner.notifications();
        self.notified.clear();
    }

    fn run(&mut self, source: usize, unit: usize) -> Told {
        self.sessions[source].run(self.case, self.schema, (source, unit))
    }

    fn left(&mut self) -> Vec<Line> {
        let mut left = self.owner.rows(&self.case.catalog.reading(self.schema));
        self.notified.extend(self.owner.notifications());
        left.extend(self.notified.iter().cloned());
        left
    }

    fn hidden(&mut self) -> Vec<String> {
        if !self.case.is_sticky() {
            return Vec::new();
        }
        let sessions = self.sessions.iter_mut();
        let found = sessions.map(|session| format!("{:?}", session.query(PROBE)));
        let locks = "select count(*) as locks from pg_locks where locktype = 'advisory'";
        let locks = format!("{:?}", self.owner.rows(locks));
        found.chain([locks]).collect()
    }
}
