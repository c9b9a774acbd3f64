//! The lock timeout of batches. Usually a batch waits, because most locks are released soon. After
//! a batch has met a lock, the next ones wait only briefly, because each lock delays all units of a
//! batch.

use std::time::Duration;

use windrow_core::sink::Purpose;

/// Number of batches without a lock after which the usual timeout is set again.
const CALM: u32 = 64;

/// The divisor of the usual timeout after a batch has met a lock.
const SHARE: u32 = 5;

/// The lock timeout of one connection's batches.
#[derive(Debug)]
pub(super) struct Wariness {
    /// The usual timeout; `None` if the connection has no limit of its own.
    usual: Option<Duration>,
    /// Number of batches until the usual timeout is set again; 0 if it applies.
    wary: u32,
    /// True if the server's `lock_timeout` is up to date.
    is_current: bool,
}

impl Wariness {
    pub(super) fn new(purpose: Purpose, usual: Duration) -> Self {
        Self {
            usual: (purpose == Purpose::Batches).then_some(usual),
            wary: 0,
            is_current: true,
        }
    }

    /// Records the end of a batch. `met`: the batch met a lock.
    pub(super) fn ended(&mut self, met: bool) {
        let before = self.wary > 0;
        self.wary = if met {
            CALM
        } else {
            self.wary.saturating_sub(1)
        };
        self.is_current &= before == (self.wary > 0);
    }

    /// Returns the setting to be sent before the next batch, if the timeout has changed.
    pub(super) fn setting_due(&mut self) -> Option<String> {
        let usual = self.usual?;
        if std::mem::replace(&mut self.is_current, true) {
            return None;
        }
        let wait = if self.wary > 0 { usual / SHARE } else { usual };
        // 0 would switch the timeout off.
        let millis = wait.as_millis().clamp(1, i32::MAX as u128);
        Some(format!("SET lock_timeout = {millis}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_make_it_wary_and_calm_lets_it_wait_again() {
        let mut wariness = Wariness::new(Purpose::Batches, Duration::from_millis(50));
        assert_eq!(wariness.setting_due(), None);
        wariness.ended(true);
        assert_eq!(
            wariness.setting_due().as_deref(),
            Some("SET lock_timeout = 10")
        );
        for _ in 1..CALM {
            wariness.ended(false);
            assert_eq!(wariness.setting_due(), None);
        }
        wariness.ended(true);
        assert_eq!(wariness.setting_due(), None);
        for _ in 0..CALM {
            wariness.ended(false);
        }
        assert_eq!(
            wariness.setting_due().as_deref(),
            Some("SET lock_timeout = 50")
        );
        assert_eq!(wariness.setting_due(), None);
    }

    #[test]
    fn who_is_alone_waits_as_long_as_it_takes() {
        let mut wariness = Wariness::new(Purpose::LockWait, Duration::from_millis(50));
        wariness.ended(true);
        assert_eq!(wariness.setting_due(), None);
    }
}
