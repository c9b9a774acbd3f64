//! How long a batch waits for a lock: a while where nobody has held one lately, as somebody who is
//! quick lets go meanwhile; hardly at all where locks are met again and again, as each of them
//! holds up all units of the batch.

use std::time::Duration;

use windrow_core::sink::Purpose;

/// Batches without a lock after which the usual time is waited again.
const CALM: u32 = 64;

/// The part of the usual time that is waited where locks are met.
const SHARE: u32 = 5;

/// How wary one connection is.
#[derive(Debug)]
pub(super) struct Wariness {
    /// `None`: it waits as long as it takes.
    usual: Option<Duration>,
    /// Batches until the usual time is waited again; 0: it is.
    wary: u32,
    /// What the server was told last is not what it should be.
    told: bool,
}

impl Wariness {
    pub(super) fn new(purpose: Purpose, usual: Duration) -> Self {
        Self {
            usual: (purpose == Purpose::Batches).then_some(usual),
            wary: 0,
            told: true,
        }
    }

    /// A batch has ended. `met`: it met a lock.
    pub(super) fn ended(&mut self, met: bool) {
        let before = self.wary > 0;
        self.wary = if met {
            CALM
        } else {
            self.wary.saturating_sub(1)
        };
        self.told &= before == (self.wary > 0);
    }

    /// What the server is to be told before the next batch.
    pub(super) fn setting_due(&mut self) -> Option<String> {
        let usual = self.usual?;
        if std::mem::replace(&mut self.told, true) {
            return None;
        }
        let wait = if self.wary > 0 { usual / SHARE } else { usual };
        // 0 would switch it off.
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
