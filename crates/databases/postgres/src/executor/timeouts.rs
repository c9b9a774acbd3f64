//! The timeouts of a lane's clients: `lock_timeout` and `statement_timeout`, set by the client, for
//! its role, for the database, or on the server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::Fault;
use windrow_core::sink::Purpose;
use windrow_pgwire::wire::{Broken, Wire};

/// The query for both timeouts.
const QUESTION: &str = "SELECT pg_catalog.current_setting('lock_timeout', true), \
     pg_catalog.current_setting('statement_timeout', true)";

/// Both timeouts, as a session of the lane has them; `None` if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timeouts {
    pub(crate) lock: Option<Duration>,
    pub(crate) statement: Option<Duration>,
}

/// The newest connection's `statement_timeout`, in milliseconds; 0 if there is none.
#[derive(Debug, Default)]
pub(crate) struct KnownTimeout(AtomicU64);

impl KnownTimeout {
    pub(crate) fn statement(&self) -> Option<Duration> {
        millis(self.0.load(Ordering::Relaxed))
    }
}

impl Timeouts {
    /// Reads the timeouts of a new session. If the session is for batches, sets their lock timeout,
    /// which is shorter than that of any client.
    ///
    /// # Errors
    /// If the connection broke.
    pub(crate) async fn read(
        wire: &mut Wire,
        purpose: Purpose,
        lock_wait: Duration,
        known: &KnownTimeout,
    ) -> Result<Self, Fault> {
        let answer = ask(wire, QUESTION).await?;
        let mut row = answer.into_iter().flatten();
        let mut next = || row.next().flatten().as_deref().and_then(parse);
        let timeouts = Self {
            lock: next(),
            statement: next(),
        };
        let statement = timeouts.statement.map_or(0, |limit| limit.as_millis());
        known.0.store(
            u64::try_from(statement).unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
        if purpose == Purpose::Batches {
            let millis = whole(timeouts.of_batches(lock_wait));
            ask(wire, &format!("SET lock_timeout = {millis}")).await?;
        }
        Ok(timeouts)
    }

    /// Returns the SQL that restores a session of the lane after a reset. `set`: the SQL that each
    /// new session runs first.
    pub(crate) fn session(&self, set: &str, purpose: Purpose, lock_wait: Duration) -> String {
        let behind = if set.is_empty() { "" } else { ";\n" };
        match purpose {
            Purpose::Batches => {
                let millis = whole(self.of_batches(lock_wait));
                format!("{set}{behind}SET lock_timeout = {millis}")
            }
            Purpose::LockWait => set.to_owned(),
        }
    }

    /// Returns the lock timeout of a batch. It is short, so that a unit that meets a lock can still
    /// run again alone within its client's timeouts.
    pub(crate) fn of_batches(&self, lock_wait: Duration) -> Duration {
        let halves = [self.lock, self.statement].into_iter().flatten();
        halves.map(|limit| limit / 2).fold(lock_wait, Duration::min)
    }

    /// Returns the settings for a unit that arrived at this time: the remainder of both timeouts.
    pub(crate) fn left(&self, arrived: Instant) -> Option<String> {
        let spent = arrived.elapsed();
        let rest = |limit: Option<Duration>| limit.map(|limit| whole(limit.saturating_sub(spent)));
        let lock = rest(self.lock).map(|millis| format!("SET lock_timeout = {millis};"));
        let statement = rest(self.statement);
        let statement = statement.map(|millis| format!("SET statement_timeout = {millis};"));
        let both: String = [lock, statement].into_iter().flatten().collect();
        (!both.is_empty()).then_some(both)
    }

    /// Returns true once a statement that arrived at that time has exceeded its timeout.
    pub(crate) fn is_over(&self, arrived: Instant) -> bool {
        self.statement
            .is_some_and(|limit| arrived.elapsed() >= limit)
    }
}

/// Sets the remainder of a unit's timeouts.
///
/// # Errors
/// If the connection broke.
pub(crate) async fn set(wire: &mut Wire, settings: &str) -> Result<(), Broken> {
    if let Err(error) = wire.simple(settings).await? {
        tracing::warn!(%error, "the timeouts of a client could not be set");
    }
    Ok(())
}

async fn ask(wire: &mut Wire, sql: &str) -> Result<Vec<Vec<Option<String>>>, Fault> {
    match wire.simple(sql).await {
        Ok(answer) => answer.map_err(Fault::from),
        Err(broken) => Err(broken.unavailable()),
    }
}

/// Returns whole milliseconds, at least 1, because 0 would switch the timeout off.
fn whole(duration: Duration) -> u128 {
    duration.as_millis().clamp(1, i32::MAX as u128)
}

fn millis(millis: u64) -> Option<Duration> {
    (millis > 0).then(|| Duration::from_millis(millis))
}

/// Parses a time as the server shows it: `0`, `50ms`, `2s`, `1min`, `3h`, `1d`.
fn parse(shown: &str) -> Option<Duration> {
    let digits = shown.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = shown.split_at_checked(digits)?;
    let factor = match unit {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    millis(number.parse::<u64>().ok()?.checked_mul(factor)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_the_server_shows_them() {
        let shown = ["0", "50ms", "2s", "1min", "3h", "1d", "700", "", "1 day"];
        let read = shown.map(|shown| parse(shown).map(|time| time.as_millis()));
        let day = 86_400_000;
        assert_eq!(
            read,
            [
                None,
                Some(50),
                Some(2_000),
                Some(60_000),
                Some(day / 8),
                Some(day),
                Some(700),
                None,
                None
            ]
        );
    }

    #[test]
    fn batches_wait_for_locks_less_than_any_client() {
        let wait = Duration::from_millis(500);
        let of = |lock, statement| Timeouts {
            lock: millis(lock),
            statement: millis(statement),
        };
        assert_eq!(of(0, 0).of_batches(wait), wait);
        assert_eq!(of(50, 0).of_batches(wait), Duration::from_millis(25));
        assert_eq!(of(50, 20).of_batches(wait), Duration::from_millis(10));
        assert_eq!(of(60_000, 60_000).of_batches(wait), wait);
    }

    #[test]
    fn what_is_left_is_never_nothing() {
        let none = Timeouts::default();
        assert_eq!(none.left(Instant::now()), None);
        let timeouts = Timeouts {
            lock: millis(1),
            statement: millis(3_600_000),
        };
        let long_ago = Instant::now() - Duration::from_millis(5);
        let settings = timeouts.left(long_ago).unwrap();
        assert!(settings.starts_with("SET lock_timeout = 1;SET statement_timeout = 3599"));
        assert!(!timeouts.is_over(long_ago));
    }
}
