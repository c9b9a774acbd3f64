//! The sessions by the number that their clients were greeted with.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use windrow_core::{Intake, SourceId};
use windrow_mysqlwire::Verifier;

/// The first number. A server that counts its own connections from 1 takes long to get there.
const FIRST_ID: u32 = 0x4000_0000;

/// The number behind the last one. Clients may keep it as a signed number.
const END_ID: u32 = 0x8000_0000;

/// The sessions.
#[derive(Default)]
pub(crate) struct Register {
    sessions: Mutex<HashMap<u32, Arc<SessionInfo>>>,
    count: AtomicU32,
}

/// The facts about one session that others may use.
#[derive(Default)]
pub(crate) struct SessionInfo {
    /// The server's number of the session's connection; 0 before there is one.
    server_id: AtomicU32,
    /// The user, with the verifier of the proof, if one was asked for.
    login: Mutex<Option<(Vec<u8>, Option<Verifier>)>>,
    /// The handle that cancels what the session waits for.
    interrupt: Mutex<Option<Interrupt>>,
    /// Cancelled when the login is revoked.
    pub(crate) revoked: CancellationToken,
}

/// A handle that cancels what a session waits for.
pub(crate) enum Interrupt {
    /// A write in a lane, and the session's identity there.
    Lane(Intake, SourceId),
    /// The session waits until its writes in the spool are in the database.
    Spool(CancellationToken),
}

/// A place in the register, which is given up when it is dropped.
pub(crate) struct RegisterEntry {
    pub(crate) id: u32,
    pub(crate) info: Arc<SessionInfo>,
    register: Arc<Register>,
}

impl SessionInfo {
    /// Notes a login and the server's number of its connection.
    pub(crate) fn note(&self, user: &[u8], verifier: Option<Verifier>, server_id: u32) {
        let mut login = self.login.lock();
        *login = Some((user.to_vec(), verifier));
        self.server_id.store(server_id, Ordering::Relaxed);
    }

    /// Notes what the session waits for.
    pub(crate) fn set_interrupt(&self, interrupt: Option<Interrupt>) {
        let mut known = self.interrupt.lock();
        *known = interrupt;
    }
}

impl Register {
    /// Enters a session under a number of its own.
    pub(crate) fn enter(self: &Arc<Self>) -> RegisterEntry {
        let info = Arc::<SessionInfo>::default();
        let mut sessions = self.sessions.lock();
        let id = loop {
            let count = self.count.fetch_add(1, Ordering::Relaxed);
            let id = FIRST_ID + count % (END_ID - FIRST_ID);
            if !sessions.contains_key(&id) {
                break id;
            }
        };
        sessions.insert(id, Arc::clone(&info));
        drop(sessions);
        RegisterEntry {
            id,
            info,
            register: Arc::clone(self),
        }
    }

    /// Returns the server's number of a session's connection. `id`: the session's number, or the
    /// server's itself.
    pub(crate) fn server_id(&self, id: u64) -> Option<u32> {
        let server_id = self.find(id)?.server_id.load(Ordering::Relaxed);
        (server_id != 0).then_some(server_id)
    }

    /// Returns a session by its number, or by the server's number of its connection.
    fn find(&self, id: u64) -> Option<Arc<SessionInfo>> {
        let id = u32::try_from(id).ok().filter(|id| *id != 0)?;
        let sessions = self.sessions.lock();
        let known = sessions.get(&id).or_else(|| {
            let mut all = sessions.values();
            all.find(|info| info.server_id.load(Ordering::Relaxed) == id)
        });
        known.map(Arc::clone)
    }

    /// Cancels what a session waits for. `id`: as for [`Self::server_id`].
    pub(crate) fn cancel(&self, id: u64) {
        let Some(info) = self.find(id) else { return };
        let interrupt = info.interrupt.lock();
        match &*interrupt {
            Some(Interrupt::Lane(intake, source)) => intake.cancel(*source),
            Some(Interrupt::Spool(cancelled)) => cancelled.cancel(),
            None => {}
        }
    }

    /// Ends the sessions whose login is not admitted any more.
    pub(crate) fn revoke(&self, admits: impl Fn(&[u8], Option<&Verifier>) -> bool) {
        for info in self.sessions.lock().values() {
            let login = info.login.lock();
            if let Some((user, verifier)) = &*login
                && !admits(user, verifier.as_ref())
            {
                info.revoked.cancel();
            }
        }
    }
}

impl Drop for RegisterEntry {
    fn drop(&mut self) {
        self.register.sessions.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_found_while_they_last() {
        let register = Arc::<Register>::default();
        let (one, other) = (register.enter(), register.enter());
        assert_ne!(one.id, other.id);
        assert_eq!(register.server_id(one.id.into()), None);
        one.info.note(b"app", None, 7);
        other.info.note(b"web", None, 8);
        assert_eq!(register.server_id(one.id.into()), Some(7));
        assert_eq!(register.server_id(7), Some(7));
        assert_eq!((register.server_id(0), register.server_id(9)), (None, None));
        register.revoke(|user, _| user == b"app");
        assert!(!one.info.revoked.is_cancelled() && other.info.revoked.is_cancelled());
        let id = one.id;
        drop(one);
        assert_eq!(register.server_id(id.into()), None);
    }
}
