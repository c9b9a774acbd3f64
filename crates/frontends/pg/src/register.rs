//! The connected sessions, by the process number that each client got.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rand::RngExt;
use subtle::ConstantTimeEq;
use windrow_core::Name;

use crate::admission::Admission;
use crate::client::Identity;
use crate::session_info::{SessionInfo, StatementCounts, StatementWay};

/// All sessions.
#[derive(Debug, Default)]
pub(crate) struct Register {
    all: Mutex<HashMap<i32, Arc<SessionInfo>>>,
    /// The statement counts of sessions that have ended.
    ended: StatementCounts,
}

/// A session's entry, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct RegisterEntry {
    register: Arc<Register>,
    pub(crate) info: Arc<SessionInfo>,
}

impl Register {
    /// Adds a session under a new number, with a random secret of this many bytes.
    pub(crate) fn enter(
        self: &Arc<Self>,
        (peer, secret_bytes): (&str, usize),
        identity: Identity,
        application_name: Name,
        admission: Admission,
    ) -> RegisterEntry {
        let mut rng = rand::rng();
        let mut all = self.all.lock();
        let pid = loop {
            let pid = rng.random_range(1..=i32::MAX);
            if !all.contains_key(&pid) {
                break pid;
            }
        };
        let info = SessionInfo::new(
            pid,
            (0..secret_bytes).map(|_| rng.random::<u8>()).collect(),
            peer,
            identity,
            application_name,
            admission,
        );
        all.insert(pid, Arc::clone(&info));
        RegisterEntry {
            register: Arc::clone(self),
            info,
        }
    }

    /// Interrupts a session, if the secret is correct.
    pub(crate) async fn cancel(&self, pid: i32, secret: &[u8]) {
        let info = self.all.lock().get(&pid).cloned();
        let Some(info) = info else {
            return;
        };
        if info.secret.ct_eq(secret).into() {
            info.cancel().await;
        }
    }

    /// Returns the numbers of statements by their way, of all sessions since the start.
    pub(crate) fn statements(&self) -> [(StatementWay, u64); StatementWay::ALL.len()] {
        let all = self.all.lock();
        StatementWay::ALL.map(|way| {
            let living = all.values().map(|info| info.statements.get(way));
            (way, self.ended.get(way) + living.sum::<u64>())
        })
    }

    /// Returns the number of sessions of identities for which `is` returns true.
    pub(crate) fn count(&self, is: impl Fn(&Identity) -> bool) -> usize {
        let all = self.all.lock();
        all.values().filter(|info| is(&info.identity)).count()
    }

    /// Returns all sessions at this moment.
    pub(crate) fn list(&self) -> Vec<Arc<SessionInfo>> {
        self.all.lock().values().cloned().collect()
    }
}

impl Drop for RegisterEntry {
    fn drop(&mut self) {
        let register = &self.register;
        let mut all = register.all.lock();
        // Under the lock, so that no count is seen twice or missed.
        for way in StatementWay::ALL {
            register.ended.add(way, self.info.statements.get(way));
        }
        all.remove(&self.info.pid);
    }
}
