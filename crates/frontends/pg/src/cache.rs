//! Answers that cost a round trip, kept for a while. Tasks that ask the same question at the same
//! time share one answer.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use windrow_core::{Fault, FaultClass};

/// The time for which a failure is returned without asking again. All tasks that wait for the
/// answer get it at once.
const MAX_FAILURE_AGE: Duration = Duration::from_secs(1);

/// The time for which an answer may be used if there is no newer one.
const MAX_OLD_AGE: Duration = Duration::from_secs(600);

/// Answers by question.
#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    entries: Mutex<HashMap<K, Entry<V>>>,
    most: usize,
    keep: Duration,
}

type Entry<V> = Arc<tokio::sync::Mutex<Known<V>>>;

/// The answer to one question.
#[derive(Debug)]
struct Known<V> {
    answer: Option<(Instant, V)>,
    failure: Option<(Instant, Fault)>,
}

impl<K: Eq + Hash + Clone, V: Clone> Cache<K, V> {
    /// Returns a cache of at most `most` answers, which are asked for again after `keep`. With a
    /// `keep` of zero, an answer is only shared by tasks that wanted it before it was asked for.
    pub(crate) fn new(most: usize, keep: Duration) -> Self {
        Self {
            entries: Mutex::default(),
            most,
            keep,
        }
    }

    /// Returns the kept answer, or a new one. While the database cannot be reached, returns an
    /// older answer. `ask` gets true if there is one. Cancel safe.
    ///
    /// # Errors
    /// That of `ask`, which other tasks get for a moment too.
    pub(crate) async fn get<F: Future<Output = Result<V, Fault>>>(
        &self,
        key: &K,
        ask: impl FnOnce(bool) -> F,
    ) -> Result<V, Fault> {
        let entry = self.entry(key);
        let came = Instant::now();
        let mut known = entry.lock().await;
        if let Some(answer) = known.fresh(self.keep, came) {
            return answer;
        }
        let asked = Instant::now();
        match ask(known.older().is_some()).await {
            Ok(value) => {
                known.answer = Some((asked, value.clone()));
                known.failure = None;
                Ok(value)
            }
            Err(fault) => {
                known.failure = Some((Instant::now(), fault.clone()));
                known.stale(&fault).ok_or(fault)
            }
        }
    }

    /// Replaces a kept answer by one that was found in another way.
    pub(crate) fn learn(&self, key: &K, value: V) {
        let entry = self.entries.lock().get(key).cloned();
        // An answer that is being fetched will be as new.
        if let Some(entry) = entry
            && let Ok(mut known) = entry.try_lock()
        {
            known.answer = Some((Instant::now(), value));
            known.failure = None;
        }
    }

    /// Removes all answers.
    pub(crate) fn clear(&self) {
        self.entries.lock().clear();
    }

    fn entry(&self, key: &K) -> Entry<V> {
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.get(key) {
            return Arc::clone(entry);
        }
        if entries.len() >= self.most {
            let now = Instant::now();
            entries.retain(|_, entry| {
                entry
                    .try_lock()
                    .is_ok_and(|known| known.fresh(self.keep, now).is_some())
            });
        }
        if entries.len() >= self.most {
            // All are new, so any one is removed. Tasks that wait for it hold a reference of their
            // own.
            let any = entries.keys().next().cloned();
            any.map(|key| entries.remove(&key));
        }
        let entry = Arc::new(tokio::sync::Mutex::new(Known {
            answer: None,
            failure: None,
        }));
        entries.insert(key.clone(), Arc::clone(&entry));
        entry
    }
}

impl<V: Clone> Known<V> {
    /// Returns the answer for a task that began to ask at this time, if no new one is needed.
    fn fresh(&self, keep: Duration, came: Instant) -> Option<Result<V, Fault>> {
        if let Some((at, fault)) = &self.failure
            && at.elapsed() < MAX_FAILURE_AGE
        {
            return Some(self.stale(fault).ok_or_else(|| fault.clone()));
        }
        let (at, value) = self.answer.as_ref()?;
        let is_fresh = *at >= came || at.elapsed() < keep;
        is_fresh.then(|| Ok(value.clone()))
    }

    fn stale(&self, fault: &Fault) -> Option<V> {
        let away = matches!(
            fault.class,
            FaultClass::Unavailable | FaultClass::Overloaded
        );
        self.older().filter(|_| away)
    }

    fn older(&self) -> Option<V> {
        let (at, value) = self.answer.as_ref()?;
        (at.elapsed() < MAX_OLD_AGE).then(|| value.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn many_who_ask_at_once_are_told_one_answer() {
        let cache = Cache::new(2, Duration::from_secs(5));
        let asked = AtomicU32::new(0);
        let ask = async || {
            let n = asked.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            Ok(n)
        };
        let both = tokio::join!(cache.get(&"a", |_| ask()), cache.get(&"a", |_| ask()));
        assert_eq!(both, (Ok(0), Ok(0)));
        cache.learn(&"a", 7);
        cache.learn(&"never asked", 7);
        assert_eq!(cache.get(&"a", |_| ask()).await, Ok(7));
        tokio::time::advance(Duration::from_secs(6)).await;
        assert_eq!(cache.get(&"a", |_| ask()).await, Ok(1));
        for other in ["b", "c", "d"] {
            cache.get(&other, |_| ask()).await.unwrap();
        }
        assert!(cache.entries.lock().len() <= 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_answer_is_better_than_none() {
        let cache = Cache::new(2, Duration::from_secs(5));
        let away = async || Err(Fault::unavailable("away"));
        assert_eq!(
            cache.get(&"a", |_| away()).await,
            Err(Fault::unavailable("away"))
        );
        // The failure is returned again without asking.
        assert!(cache.get(&"a", |_| async { Ok(1) }).await.is_err());
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(cache.get(&"a", |_| async { Ok(1) }).await, Ok(1));
        tokio::time::advance(Duration::from_secs(6)).await;
        assert_eq!(cache.get(&"a", |_| away()).await, Ok(1));
        assert_eq!(cache.get(&"a", |_| away()).await, Ok(1));
        tokio::time::advance(Duration::from_secs(6)).await;
        let denied = async { Err(Fault::invalid("gone")) };
        assert_eq!(
            cache
                .get(&"a", |older| async move {
                    assert!(older);
                    denied.await
                })
                .await,
            Err(Fault::invalid("gone"))
        );
    }
}
