//! The state of a partition on its way into the database: written by its worker, read by all.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use windrow_core::Fault;
use windrow_spool::{Log, LogStatus};

use crate::metrics::Meters;
use crate::status::{DrainState, PartitionStatus};

/// The interval at which an idle worker asks the database how far it is, as long as the entries
/// applied last are kept.
const ASK: Duration = Duration::from_secs(1);

const CANNOT: &str = "the spool cannot be applied; it is tried again";

/// A partition that is being applied to the database.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) meters: Meters,
    reached: watch::Sender<ReachedPosition>,
    /// The number of requests that wait for the database to reach a position.
    waiting: watch::Sender<usize>,
    doing: Mutex<ActivityState>,
}

/// The position that the database has reached.
#[derive(Clone, Debug, Default)]
struct ReachedPosition {
    /// The first position that is not applied; `None` until the database was asked.
    position: Option<u64>,
    /// The time at which the database reached it, and the time at which the database last confirmed
    /// it.
    since: Option<(Instant, Instant)>,
    /// The reason why nothing will be applied before the next start.
    ended: Option<Arc<str>>,
}

#[derive(Debug, Default)]
struct ActivityState {
    now: Activity,
    /// The time at which the next entry to be applied was written.
    oldest: Option<SystemTime>,
}

#[derive(Debug, Default)]
enum Activity {
    #[default]
    Starting,
    Applying,
    Level,
    Waiting {
        why: Arc<str>,
        /// The fault's code.
        code: Box<str>,
        since: Instant,
    },
    Stopped(Arc<str>),
}

impl Partition {
    pub(crate) fn new(log: Arc<dyn Log>, meters: Meters) -> Self {
        Self {
            log,
            meters,
            reached: watch::Sender::default(),
            waiting: watch::Sender::default(),
            doing: Mutex::default(),
        }
    }

    /// Notes that the database has all entries before a position, and not the one there.
    pub(crate) fn reached(&self, position: u64) {
        let now = Instant::now();
        self.reached.send_if_modified(|reached| {
            let is_new = reached.position.replace(position) != Some(position);
            let came = reached.since.filter(|_| !is_new);
            reached.since = Some((came.map_or(now, |(came, _)| came), now));
            is_new
        });
    }

    /// Returns the time at which to ask the database for its position, unless it reports one
    /// before; `None` if it has confirmed it late enough.
    pub(crate) fn ask_at(&self, keep: Duration) -> Option<Instant> {
        let (came, heard) = self.reached.borrow().since?;
        (heard < came + keep).then_some(heard + ASK.min(keep))
    }

    /// Returns the first position that the database does not have; `None` before it was asked.
    pub(crate) fn position(&self) -> Option<u64> {
        self.reached.borrow().position
    }

    /// Returns a follower of [`Partition::reached`].
    pub(crate) fn watch(&self) -> Follower {
        Follower(self.reached.subscribe())
    }

    /// Waits until a request waits for the database to reach a position. Cancel safe.
    pub(crate) async fn awaited(&self) {
        let mut waiting = self.waiting.subscribe();
        // The sender cannot be dropped: it is in the same struct.
        waiting.wait_for(|waiting| *waiting > 0).await.ok();
    }

    /// Waits until the database has all entries before a position. Cancel safe.
    pub(crate) async fn wait(&self, position: u64) -> Result<(), Fault> {
        let mut reached = self.reached.subscribe();
        let _waits = Waits::new(&self.waiting);
        let there = |reached: &ReachedPosition| {
            reached.ended.is_some() || reached.position.is_some_and(|at| at >= position)
        };
        // The sender cannot be dropped: it is in the same struct.
        let Ok(reached) = reached.wait_for(there).await else {
            return Err(Fault::internal("nobody applies the spool"));
        };
        match &reached.ended {
            Some(why) if reached.position.is_none_or(|at| at < position) => {
                Err(Fault::unavailable(format!(
                    "what was written has not come to the database, and will not before the next \
                     start of Windrow: {why}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Notes the time at which the next entry to be applied was written.
    pub(crate) fn oldest(&self, written: Option<SystemTime>) {
        self.doing.lock().oldest = written;
    }

    /// Notes that entries are being applied.
    pub(crate) fn applying(&self) {
        self.goes_on(Activity::Applying);
    }

    /// Notes that entries are being applied, for the first time or again.
    pub(crate) fn begins(&self) {
        let mut doing = self.doing.lock();
        if matches!(doing.now, Activity::Starting | Activity::Level) {
            doing.now = Activity::Applying;
        }
    }

    /// Notes that the database has all entries.
    pub(crate) fn level(&self) {
        self.goes_on(Activity::Level);
    }

    fn goes_on(&self, now: Activity) {
        let before = std::mem::replace(&mut self.doing.lock().now, now);
        if let Activity::Waiting { since, .. } = before {
            let waited = since.elapsed();
            let partition = self.log.partition();
            tracing::warn!(partition, ?waited, "the spool is applied again");
            self.meters.waiting.set(0);
        }
    }

    /// Notes that nothing can be applied at this moment. Logs it once for each kind of trouble.
    pub(crate) fn waits(&self, fault: &Fault) {
        let why: Arc<str> = fault.to_string().into();
        let (since, is_new) = self.note_wait(fault, &why);
        self.meters.waiting.set(1);
        if !is_new {
            return;
        }
        let (partition, waited) = (self.log.partition(), since.elapsed());
        match fault.may_retry() {
            true => tracing::warn!(partition, %why, ?waited, "{CANNOT}"),
            false => tracing::error!(partition, %why, ?waited, "{CANNOT}"),
        }
    }

    /// Returns the time since which nothing can be applied, and true if this kind of trouble is
    /// new.
    fn note_wait(&self, fault: &Fault, why: &Arc<str>) -> (Instant, bool) {
        let mut doing = self.doing.lock();
        let (since, is_new) = match &doing.now {
            Activity::Waiting { code, since, .. } => (*since, **code != *fault.code),
            _ => (Instant::now(), true),
        };
        doing.now = Activity::Waiting {
            why: Arc::clone(why),
            code: (&*fault.code).into(),
            since,
        };
        (since, is_new)
    }

    /// Notes that nothing will be applied before the next start.
    pub(crate) fn stop(&self, why: &str) {
        let why: Arc<str> = why.into();
        let partition = self.log.partition();
        tracing::error!(
            partition, %why,
            "the spool is not applied any more before the next start"
        );
        self.doing.lock().now = Activity::Stopped(Arc::clone(&why));
        self.meters.waiting.set(0);
        self.meters.stopped.set(1);
        self.end(why);
    }

    /// Notes that the worker has ended, for whatever reason; an earlier reason stays.
    pub(crate) fn end(&self, why: Arc<str>) {
        self.reached.send_modify(|reached| {
            reached.ended.get_or_insert(why);
        });
    }

    /// Returns the reason why nothing will be applied before the next start.
    pub(crate) fn stopped(&self) -> Option<Arc<str>> {
        match &self.doing.lock().now {
            Activity::Stopped(why) => Some(Arc::clone(why)),
            _ => None,
        }
    }

    pub(crate) async fn status(&self) -> PartitionStatus {
        let held = self.log.status().await.ok();
        let applied = self.reached.borrow().position;
        let end = self.log.end().0;
        let first = held.map_or(0, |held| held.first.0);
        let entries = end.saturating_sub(applied.unwrap_or(first));
        let doing = self.doing.lock();
        PartitionStatus {
            partition: self.log.partition(),
            applied,
            end,
            entries,
            bytes: held.map_or(0, |held| held.bytes),
            age: age(entries, doing.oldest, held),
            state: state(&doing.now),
            applied_entries: self.meters.applied.get(),
            rejected_entries: self.meters.rejected.get(),
        }
    }
}

fn state(now: &Activity) -> DrainState {
    match now {
        Activity::Starting => DrainState::Starting,
        Activity::Applying => DrainState::Applying,
        Activity::Level => DrainState::Level,
        Activity::Waiting { why, since, .. } => DrainState::Waiting {
            why: Arc::clone(why),
            since: since.elapsed(),
        },
        Activity::Stopped(why) => DrainState::Stopped {
            why: Arc::clone(why),
        },
    }
}

/// If nothing has been read yet, the spool knows the age of what is not trimmed.
fn age(entries: u64, oldest: Option<SystemTime>, held: Option<LogStatus>) -> Option<Duration> {
    if entries == 0 {
        return None;
    }
    match oldest {
        Some(written) => Some(written.elapsed().unwrap_or_default()),
        None => held.and_then(|held| held.age),
    }
}

/// Counts a waiting request until it is dropped.
struct Waits<'a>(&'a watch::Sender<usize>);

impl<'a> Waits<'a> {
    fn new(waiting: &'a watch::Sender<usize>) -> Self {
        waiting.send_modify(|waiting| *waiting += 1);
        Self(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting -= 1);
    }
}

/// A view of the position that the database has reached.
#[derive(Debug)]
pub(crate) struct Follower(watch::Receiver<ReachedPosition>);

impl Follower {
    /// Returns the position, when the database reached it, and when the database last reported it.
    pub(crate) fn position(&mut self) -> Option<(u64, Instant, Instant)> {
        let reached = self.0.borrow_and_update();
        let (came, heard) = reached.since?;
        Some((reached.position?, came, heard))
    }

    /// Waits until the position has changed. Cancel safe.
    pub(crate) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
