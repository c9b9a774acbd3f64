//! Who is in, by the process number that each client was told.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::RngExt;
use subtle::ConstantTimeEq;
use windrow_core::Name;

use crate::client::Identity;
use crate::presence::Presence;
use crate::warrant::Warrant;

/// All sessions.
#[derive(Debug, Default)]
pub(crate) struct Register {
    all: Mutex<HashMap<i32, Arc<Presence>>>,
    /// Statements of sessions that have ended.
    joined: AtomicU64,
    relayed: AtomicU64,
}

/// A session's entry; it is taken out when this is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    register: Arc<Register>,
    pub(crate) presence: Arc<Presence>,
}

impl Register {
    /// Enters a session under a number that no other has, with a secret that nobody can guess.
    pub(super) fn enter(
        self: &Arc<Self>,
        peer: &str,
        identity: Identity,
        application_name: Name,
        warrant: Warrant,
    ) -> Entry {
        let mut rng = rand::rng();
        let mut all = self.all();
        let pid = loop {
            let pid = rng.random_range(1..=i32::MAX);
            if !all.contains_key(&pid) {
                break pid;
            }
        };
        let presence = Presence::new(pid, rng.random(), peer, identity, application_name, warrant);
        all.insert(pid, Arc::clone(&presence));
        Entry {
            register: Arc::clone(self),
            presence,
        }
    }

    /// Interrupts what a session does, if the secret is its own.
    pub(super) async fn cancel(&self, pid: i32, secret: [u8; 4]) {
        let presence = self.all().get(&pid).cloned();
        let Some(presence) = presence else {
            return;
        };
        if presence.secret.ct_eq(&secret).into() {
            presence.cancel().await;
        }
    }

    /// Statements that were joined and relayed so far, of all sessions that there ever were.
    pub(crate) fn statements(&self) -> (u64, u64) {
        let all = self.all();
        let sum = |ended: &AtomicU64, of: fn(&Presence) -> &AtomicU64| {
            let living = all
                .values()
                .map(|presence| of(presence).load(Ordering::Relaxed));
            ended.load(Ordering::Relaxed) + living.sum::<u64>()
        };
        (
            sum(&self.joined, |presence| &presence.joined),
            sum(&self.relayed, |presence| &presence.relayed),
        )
    }

    /// How many sessions are of somebody.
    pub(crate) fn count(&self, is: impl Fn(&Identity) -> bool) -> usize {
        let all = self.all();
        all.values()
            .filter(|presence| is(&presence.identity))
            .count()
    }

    /// All sessions at this moment.
    pub(crate) fn list(&self) -> Vec<Arc<Presence>> {
        self.all().values().cloned().collect()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<i32, Arc<Presence>>> {
        // Each change is one insertion or removal: whole at any moment.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let register = &self.register;
        let mut all = register.all();
        // Under the lock, so that no count is seen twice or not at all.
        let (joined, relayed) = (&self.presence.joined, &self.presence.relayed);
        register
            .joined
            .fetch_add(joined.load(Ordering::Relaxed), Ordering::Relaxed);
        register
            .relayed
            .fetch_add(relayed.load(Ordering::Relaxed), Ordering::Relaxed);
        all.remove(&self.presence.pid);
    }
}
