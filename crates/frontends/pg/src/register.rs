//! The sessions, by the process number that each client got.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::RngExt;
use subtle::ConstantTimeEq;
use windrow_core::Name;

use crate::admission::Admission;
use crate::client::Identity;
use crate::session_info::SessionInfo;

/// All sessions.
#[derive(Debug, Default)]
pub(crate) struct Register {
    all: Mutex<HashMap<i32, Arc<SessionInfo>>>,
    /// Statements of sessions that have ended.
    joined: AtomicU64,
    relayed: AtomicU64,
}

/// A session's entry; it is taken out when this is dropped.
#[derive(Debug)]
pub(crate) struct RegisterEntry {
    register: Arc<Register>,
    pub(crate) info: Arc<SessionInfo>,
}

impl Register {
    /// Enters a session under a number that no other has, with a secret of so many bytes that
    /// nobody can guess.
    pub(crate) fn enter(
        self: &Arc<Self>,
        (peer, secret_bytes): (&str, usize),
        identity: Identity,
        application_name: Name,
        admission: Admission,
    ) -> RegisterEntry {
        let mut rng = rand::rng();
        let mut all = self.all();
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

    /// Interrupts what a session does, if the secret is its own.
    pub(crate) async fn cancel(&self, pid: i32, secret: &[u8]) {
        let info = self.all().get(&pid).cloned();
        let Some(info) = info else {
            return;
        };
        if info.secret.ct_eq(secret).into() {
            info.cancel().await;
        }
    }

    /// Statements that were joined and relayed so far, of all sessions that there ever were.
    pub(crate) fn statements(&self) -> (u64, u64) {
        let all = self.all();
        let sum = |ended: &AtomicU64, of: fn(&SessionInfo) -> &AtomicU64| {
            let living = all.values().map(|info| of(info).load(Ordering::Relaxed));
            ended.load(Ordering::Relaxed) + living.sum::<u64>()
        };
        (
            sum(&self.joined, |info| &info.joined),
            sum(&self.relayed, |info| &info.relayed),
        )
    }

    /// Returns the number of sessions of identities for which `is` returns true.
    pub(crate) fn count(&self, is: impl Fn(&Identity) -> bool) -> usize {
        let all = self.all();
        all.values().filter(|info| is(&info.identity)).count()
    }

    /// All sessions at this moment.
    pub(crate) fn list(&self) -> Vec<Arc<SessionInfo>> {
        self.all().values().cloned().collect()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<i32, Arc<SessionInfo>>> {
        // Each change is one insertion or removal: whole at any moment.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RegisterEntry {
    fn drop(&mut self) {
        let register = &self.register;
        let mut all = register.all();
        // Under the lock, so that no count is seen twice or not at all.
        let (joined, relayed) = (&self.info.joined, &self.info.relayed);
        register
            .joined
            .fetch_add(joined.load(Ordering::Relaxed), Ordering::Relaxed);
        register
            .relayed
            .fetch_add(relayed.load(Ordering::Relaxed), Ordering::Relaxed);
        all.remove(&self.info.pid);
    }
}
