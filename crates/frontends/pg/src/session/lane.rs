//! The lanes that sessions have opened, and what is known of statements in each.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use windrow_core::{Apart, Described, Fault, FaultClass, ParsedStatement, SourceId, Statement};
use windrow_pgwire::target::Credential;

use crate::client::Identity;
use crate::services::{Door, LaneKey, Lanes};
use crate::session_info::Interrupt;

/// How long it is believed that a statement cannot be joined.
const APART: Duration = Duration::from_secs(10);

/// Why there is no lane for a session.
pub(super) const UNSHARED: &str = "settings that no other session has";

/// The most descriptions that a lane keeps.
const MOST: usize = 10_000;

/// So many lanes are opened for whoever comes, where a session has only the settings that it
/// started with.
const FREELY: usize = 8;

/// All lanes that are open, and who wants to be in one.
pub(crate) struct LaneBook {
    lanes: Arc<dyn Lanes>,
    open: Mutex<HashMap<LaneKey, Weak<Lane>>>,
    wishes: Mutex<HashMap<LaneKey, Weak<Wish>>>,
}

/// That somebody wants to be in a lane. All who want to be in the same one share it.
#[derive(Debug)]
pub(crate) struct Wish(());

/// A lane as sessions share it.
pub(crate) struct Lane {
    /// A number that no other lane of this process has.
    pub(crate) number: u64,
    /// The way in.
    pub(crate) door: Door,
    /// Whose turn it is to ask the database.
    asking: tokio::sync::Mutex<()>,
    known: Mutex<HashMap<u64, Known>>,
}

/// A session among those who hand units to a lane.
pub(super) struct LaneSource {
    pub(super) lane: Arc<Lane>,
    pub(super) id: SourceId,
}

impl LaneSource {
    /// What a cancel request means while the session has something in its lane.
    pub(super) fn interrupt(&self) -> Interrupt {
        Interrupt::Lane(self.lane.door.intake.clone(), self.id)
    }
}

/// What is known of a statement.
#[derive(Clone)]
enum Known {
    /// Since when its types are known to be those of the moment.
    Joined(Arc<Statement>, Instant),
    Apart(Arc<Apart>, Instant),
}

impl LaneBook {
    /// A book in which no lane is open. `lanes`: those of the process.
    pub(crate) fn new(lanes: Arc<dyn Lanes>) -> Self {
        Self {
            lanes,
            open: Mutex::default(),
            wishes: Mutex::default(),
        }
    }

    /// Notes that a session wants to be in the lane of a key, as long as it keeps what this gives.
    pub(crate) fn wish(&self, key: &LaneKey) -> Arc<Wish> {
        let mut wishes = lock(&self.wishes);
        if let Some(wish) = wishes.get(key).and_then(Weak::upgrade) {
            return wish;
        }
        wishes.retain(|_, wish| wish.strong_count() > 0);
        let wish = Arc::new(Wish(()));
        wishes.insert(key.clone(), Arc::downgrade(&wish));
        wish
    }

    /// True where settings are those of one session alone, so that a lane for them would join
    /// nothing.
    fn is_unshared(&self, key: &LaneKey, wish: &Arc<Wish>) -> bool {
        let freely = key.settings.set.is_empty() && lock(&self.open).len() < FREELY;
        !freely && Arc::strong_count(wish) < 2
    }

    /// The lane of a key; it is opened if no session has it open. `wish`: that this one wants it.
    /// Cancel safe.
    ///
    /// # Errors
    /// Those of [`Lanes::open`]; [`windrow_core::FaultClass::Overloaded`] where nobody else has
    /// these settings.
    pub(crate) async fn open(&self, key: &LaneKey, wish: &Arc<Wish>) -> Result<Arc<Lane>, Fault> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if let Some(lane) = lock(&self.open).get(key).and_then(Weak::upgrade) {
            return Ok(lane);
        }
        if self.is_unshared(key, wish) {
            return Err(Fault::new(FaultClass::Overloaded, "53400", UNSHARED));
        }
        let lane = Arc::new(Lane {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            door: self.lanes.open(key).await?,
            known: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        });
        let mut open = lock(&self.open);
        // Somebody else may have been faster.
        if let Some(lane) = open.get(key).and_then(Weak::upgrade) {
            return Ok(lane);
        }
        open.retain(|_, lane| lane.strong_count() > 0);
        open.insert(key.clone(), Arc::downgrade(&lane));
        Ok(lane)
    }

    /// Forgets and ends the lanes of a role and a credential that are not let in any more.
    pub(crate) fn revoke(&self, identity: &Identity, credential: &Credential) {
        let other = |key: &LaneKey| key.identity != *identity || key.credential != *credential;
        lock(&self.open).retain(|key, _| other(key));
        self.lanes.revoke(identity, credential);
    }
}

impl Lane {
    /// What the lane's database says of a parsed statement. `number`: the statement's process-wide
    /// number. Cancel safe.
    ///
    /// # Errors
    /// Those of [`windrow_core::Describer::describe`].
    pub(crate) async fn describe(
        &self,
        number: u64,
        parsed: &Arc<ParsedStatement>,
    ) -> Result<Described, Fault> {
        match self.known(number) {
            Some(described) => Ok(described),
            None => Box::pin(self.ask(number, parsed)).await,
        }
    }

    /// The same, if it is known.
    pub(crate) fn known(&self, number: u64) -> Option<Described> {
        match lock(&self.known).get(&number)? {
            Known::Joined(statement, _) if !statement.is_retired() => {
                Some(Described::Joined(Arc::clone(statement)))
            }
            Known::Apart(reason, since) if since.elapsed() < APART => {
                Some(Described::Apart(Arc::clone(reason)))
            }
            _ => None,
        }
    }

    /// Whether a statement's types are those that the database has said at some time after `asked`.
    /// Those who ask at the same time share an answer. Cancel safe.
    ///
    /// # Errors
    /// Those of [`windrow_core::Describer::holds`].
    pub(crate) async fn holds(
        &self,
        number: u64,
        statement: &Arc<Statement>,
        asked: Instant,
    ) -> Result<bool, Fault> {
        let _turn = self.asking.lock().await;
        let is_new = |all: &HashMap<u64, Known>| match all.get(&number) {
            Some(Known::Joined(known, since)) => Arc::ptr_eq(known, statement) && *since >= asked,
            _ => false,
        };
        if statement.is_retired() || is_new(&lock(&self.known)) {
            return Ok(!statement.is_retired());
        }
        let begun = Instant::now();
        let holds = self.door.describer.holds(statement).await?;
        if let Some(Known::Joined(known, since)) = lock(&self.known).get_mut(&number)
            && holds
            && Arc::ptr_eq(known, statement)
        {
            *since = begun;
        }
        Ok(holds)
    }

    async fn ask(&self, number: u64, parsed: &Arc<ParsedStatement>) -> Result<Described, Fault> {
        // One at a time: when a thousand sessions send a new text at once, the database is asked
        // once.
        let _turn = self.asking.lock().await;
        if let Some(described) = self.known(number) {
            return Ok(described);
        }
        let since = Instant::now();
        let described = self.door.describer.describe(parsed).await?;
        let known = match &described {
            Described::Joined(statement) => Known::Joined(Arc::clone(statement), since),
            Described::Apart(reason) => Known::Apart(Arc::clone(reason), Instant::now()),
        };
        let mut all = lock(&self.known);
        if all.len() >= MOST {
            // Sessions keep what they use; everything else is asked for again.
            all.clear();
        }
        all.insert(number, known);
        Ok(described)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whoever panicked while holding it left a whole map behind.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
