//! The part of a session that other tasks see, and the ways to interrupt it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use windrow_core::{Intake, Name, SourceId, UnitOutcome};
use windrow_pgwire::wire::CancelKey;

use crate::admission::Admission;
use crate::client::Identity;

/// The longest time that a cancel request may take on its way to the server.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// The time for which a cancel request waits for its statement, which was sent earlier but on
/// another connection, and may be read later.
const STATEMENT_TIMEOUT: Duration = Duration::from_millis(50);

/// The activity of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Waiting for its client.
    #[default]
    Idle,
    /// Writes of it are in a lane.
    Joining,
    /// The session waits for a server connection.
    Waiting,
    /// The session has a server connection.
    Relaying,
    /// Keeps its server connection because of something that it did there.
    Pinned,
}

impl State {
    const ALL: [Self; 5] = [
        Self::Idle,
        Self::Joining,
        Self::Waiting,
        Self::Relaying,
        Self::Pinned,
    ];

    /// Returns the word that the console shows.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Joining => "joining",
            Self::Waiting => "waiting",
            Self::Relaying => "relaying",
            Self::Pinned => "pinned",
        }
    }
}

/// The work that a cancel request interrupts now.
#[derive(Clone, Debug, Default)]
pub(crate) enum Interrupt {
    /// Nothing.
    #[default]
    Nothing,
    /// The session's units in a lane, unless they have left.
    Lane(Intake, SourceId),
    /// The statement of its server connection.
    Server(CancelKey),
    /// The wait for a server connection.
    Waiting(CancellationToken),
}

/// The way of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatementWay {
    /// In a batch with statements of other clients.
    Joined,
    /// In a batch of its own, or through the spool.
    Joinable,
    /// On a server connection.
    Relayed,
}

impl StatementWay {
    /// All ways, in the order of display.
    pub(crate) const ALL: [Self; 3] = [Self::Joined, Self::Joinable, Self::Relayed];

    /// Returns the word for metrics and the console.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Joined => "joined",
            Self::Joinable => "joinable",
            Self::Relayed => "relayed",
        }
    }

    /// Returns the explanation of its count.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::Joined => "statements that shared a batch with those of other clients",
            Self::Joinable => {
                "statements that can be joined and met no others, or that went to the spool"
            }
            Self::Relayed => "statements that went to the server by themselves",
        }
    }
}

/// The numbers of statements by their way.
#[derive(Debug, Default)]
pub(crate) struct StatementCounts([AtomicU64; StatementWay::ALL.len()]);

impl StatementCounts {
    /// Counts statements.
    pub(crate) fn add(&self, way: StatementWay, count: u64) {
        if let Some(counter) = self.0.get(way as usize) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Returns the number of statements of a way.
    pub(crate) fn get(&self, way: StatementWay) -> u64 {
        let counter = self.0.get(way as usize);
        counter.map_or(0, |counter| counter.load(Ordering::Relaxed))
    }
}

/// The state of a session that other tasks see.
#[derive(Debug)]
pub(crate) struct SessionInfo {
    /// The process number that the client got.
    pub(crate) pid: i32,
    /// The secret that a cancel request must contain. Never shown; compared in constant time.
    pub(crate) secret: Box<[u8]>,
    /// The client's address.
    pub(crate) peer: Box<str>,
    /// The role and the database.
    pub(crate) identity: Identity,
    /// The credential of the session.
    pub(crate) admission: Admission,
    /// The statements of the session.
    pub(crate) statements: StatementCounts,
    state: AtomicU8,
    words: parking_lot::Mutex<Words>,
    interrupt: Mutex<Interrupt>,
    /// True while a statement is under way on its server connection.
    is_busy: AtomicBool,
    /// Notified when something begins that could be interrupted.
    begun: Notify,
}

/// The part that changes rarely.
#[derive(Debug)]
struct Words {
    application_name: Name,
    pinned: Box<str>,
    advice: &'static str,
}

impl SessionInfo {
    /// Returns the state of a new session.
    pub(crate) fn new(
        pid: i32,
        secret: Box<[u8]>,
        peer: impl Into<Box<str>>,
        identity: Identity,
        application_name: Name,
        admission: Admission,
    ) -> Arc<Self> {
        Arc::new(Self {
            pid,
            secret,
            peer: peer.into(),
            identity,
            admission,
            statements: StatementCounts::default(),
            state: AtomicU8::default(),
            words: parking_lot::Mutex::new(Words {
                application_name,
                pinned: Box::default(),
                advice: "",
            }),
            interrupt: Mutex::default(),
            is_busy: AtomicBool::default(),
            begun: Notify::new(),
        })
    }

    /// Counts the statements of a unit that has its outcome. If the unit has failed, so has the
    /// last one counted. `is_shared`: true if the unit's batch had units of other clients.
    pub(crate) fn count(&self, outcome: &UnitOutcome, is_shared: bool) {
        let count = match outcome {
            Ok(dones) => dones.len(),
            Err(failed) => failed.before.len() + 1,
        };
        let way = match is_shared {
            true => StatementWay::Joined,
            false => StatementWay::Joinable,
        };
        self.statements.add(way, count as u64);
    }

    /// Interrupts the session's current work, for a cancel request. Success is not promised.
    /// Returns once the request has been passed on; until then its client sends nothing else.
    pub(crate) async fn cancel(&self) {
        let deadline = Instant::now() + STATEMENT_TIMEOUT;
        loop {
            let begun = self.begun.notified();
            let mut begun = std::pin::pin!(begun);
            begun.as_mut().enable();
            if self.cancel_now(false).await {
                return;
            }
            if timeout_at(deadline, begun).await.is_err() {
                self.cancel_now(true).await;
                return;
            }
        }
    }

    /// Interrupts the current work. Returns false if the work that is meant may be about to come.
    /// `late`: true if nothing more is waited for.
    async fn cancel_now(&self, late: bool) -> bool {
        // Locked until the server has passed the signal on: before that, the session gives its
        // server connection to no other, so that the signal cannot hit another client's statement.
        let interrupt = self.interrupt.lock().await;
        match &*interrupt {
            Interrupt::Lane(intake, source) if late || self.state() == State::Joining => {
                intake.cancel(*source);
                true
            }
            Interrupt::Waiting(canceled) => {
                canceled.cancel();
                true
            }
            Interrupt::Server(key) if late || self.is_busy.load(Ordering::Acquire) => {
                if let Err(error) = key.send(CANCEL_TIMEOUT).await {
                    tracing::warn!(%error, "a cancel request did not reach the server");
                }
                true
            }
            Interrupt::Nothing | Interrupt::Lane(..) | Interrupt::Server(_) => false,
        }
    }

    /// Sets the work that a cancel request interrupts from now on. Waits while a request is under
    /// way.
    pub(crate) async fn set_interrupt(&self, interrupt: Interrupt) {
        *self.interrupt.lock().await = interrupt;
        self.begun.notify_waiters();
    }

    /// Waits for something that a cancel request may end; `None` if one has ended the wait. `then`:
    /// the work that a request interrupts afterwards.
    pub(crate) async fn wait<T>(
        &self,
        awaited: impl Future<Output = T>,
        then: Interrupt,
    ) -> Option<T> {
        let cancelled = CancellationToken::new();
        let interrupt = Interrupt::Waiting(cancelled.clone());
        self.set_interrupt(interrupt).await;
        let done = tokio::select! {
            done = awaited => Some(done),
            () = cancelled.cancelled() => None,
        };
        self.set_interrupt(then).await;
        done
    }

    /// Sets whether a statement is under way on its server connection.
    pub(crate) fn set_busy(&self, is_busy: bool) {
        let was_busy = self.is_busy.swap(is_busy, Ordering::Release);
        if is_busy && !was_busy {
            self.begun.notify_waiters();
        }
    }

    /// Returns the session's activity.
    pub(crate) fn state(&self) -> State {
        let state = usize::from(self.state.load(Ordering::Acquire));
        State::ALL.get(state).copied().unwrap_or_default()
    }

    /// Sets the session's activity.
    pub(crate) fn set_state(&self, state: State) {
        let before = self.state.swap(state as u8, Ordering::AcqRel);
        if before != state as u8 && state == State::Joining {
            self.begun.notify_waiters();
        }
    }

    /// Returns the client's `application_name`.
    pub(crate) fn application_name(&self) -> Name {
        self.with_words(|words| Name::clone(&words.application_name))
    }

    /// Sets the client's `application_name`.
    pub(crate) fn set_application_name(&self, name: Name) {
        self.with_words(|words| words.application_name = name);
    }

    /// Returns the reason why the session keeps its server connection, and the advice; empty if it
    /// does not.
    pub(crate) fn pinned(&self) -> (Box<str>, &'static str) {
        self.with_words(|words| (words.pinned.clone(), words.advice))
    }

    /// Sets the reason why the session keeps its server connection.
    pub(crate) fn set_pinned(&self, why: &str, advice: &'static str) {
        self.with_words(|words| (words.pinned, words.advice) = (why.into(), advice));
    }

    fn with_words<T>(&self, with: impl FnOnce(&mut Words) -> T) -> T {
        with(&mut self.words.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_cancel_request_finds_the_statement_that_was_sent_before_it() {
        let identity = Identity {
            database: "d".into(),
            role: "r".into(),
        };
        let info = SessionInfo::new(
            1,
            [0; 4].into(),
            "here",
            identity,
            "".into(),
            Admission::default(),
        );
        let waits = CancellationToken::new();
        // The statement is read after the request.
        let comes = info.set_interrupt(Interrupt::Waiting(waits.clone()));
        tokio::join!(info.cancel(), comes);
        assert!(waits.is_cancelled());
        // There may be none.
        info.set_interrupt(Interrupt::Nothing).await;
        info.cancel().await;
    }
}
