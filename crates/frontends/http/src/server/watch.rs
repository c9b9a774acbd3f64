//! The watch over one connection: what becomes of a client that is idle, or makes no progress.

use std::time::Duration;

use crate::config::HttpConfig;
use crate::connection_state::{ConnectionState, Phase};

/// How long a client that holds memory may take to bring, or to take, a little, while others want
/// memory.
const PATIENCE: Duration = Duration::from_secs(10);

/// What has to move in that time, in bytes.
const STEP: u64 = 64 << 10;

/// What the watch wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// Nothing.
    Keep,
    /// An idle connection is to be closed.
    Retire,
    /// A head did not come in time.
    SlowHead,
    /// The client does not read.
    Drop,
}

/// Looks at a [`ConnectionState`] in steps of a period. A limit is kept to within one period.
#[derive(Debug)]
pub(crate) struct Watch {
    period: Duration,
    quiet: Duration,
    stamp: u32,
    head: Duration,
    body: Duration,
    idle: Duration,
    /// Since when a client that holds memory is looked at, and what had moved by then.
    held: Duration,
    moved: u64,
}

impl Watch {
    pub(crate) fn new(config: &HttpConfig) -> Self {
        let (head, body, idle) = (
            config.header_timeout,
            config.body_timeout,
            config.idle_timeout,
        );
        let shortest = head.min(body).min(idle).min(PATIENCE);
        let period = (shortest / 2).max(Duration::from_millis(1));
        Self {
            period,
            quiet: Duration::ZERO,
            stamp: 0,
            head,
            body,
            idle,
            held: Duration::ZERO,
            moved: 0,
        }
    }

    /// Time between two looks.
    pub(crate) fn period(&self) -> Duration {
        self.period
    }

    /// One look, a period after the last. `wanted`: others want memory.
    pub(crate) fn look(&mut self, state: &ConnectionState, wanted: bool) -> Ruling {
        if self.is_too_slow(state) && wanted {
            if state.phase() == Phase::Answering {
                return Ruling::Drop;
            }
            state.give_up();
        }
        let stamp = state.stamp();
        if stamp != self.stamp {
            self.stamp = stamp;
            self.quiet = Duration::ZERO;
            return Ruling::Keep;
        }
        self.quiet += self.period;
        if state.is_stalled() && self.quiet >= self.body {
            return Ruling::Drop;
        }
        match state.phase() {
            Phase::Idle if self.quiet >= self.idle => Ruling::Retire,
            Phase::Head if self.quiet >= self.head => Ruling::SlowHead,
            Phase::Body if self.quiet >= self.body => {
                state.set_late();
                Ruling::Keep
            }
            _ => Ruling::Keep,
        }
    }

    /// True where a client that holds memory, with its body or for its answer, has moved too little
    /// for too long.
    fn is_too_slow(&mut self, state: &ConnectionState) -> bool {
        let moved = state.moved_in_all();
        let holds = state.holds_memory() || state.phase() == Phase::Answering;
        if !holds || moved >= self.moved + STEP {
            (self.held, self.moved) = (Duration::ZERO, moved);
            return false;
        }
        self.held += self.period;
        self.held >= PATIENCE.min(self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> Watch {
        Watch::new(&HttpConfig {
            header_timeout: Duration::from_secs(2),
            body_timeout: Duration::from_secs(4),
            idle_timeout: Duration::from_secs(8),
            ..HttpConfig::default()
        })
    }

    fn looks_until(ruling: Ruling, watch: &mut Watch, state: &ConnectionState) -> Option<u32> {
        (1..100).find(|_| watch.look(state, false) == ruling)
    }

    #[test]
    fn each_phase_has_its_own_patience() {
        let state = ConnectionState::default();
        let mut watch = watch();
        assert_eq!(watch.period(), Duration::from_secs(1));
        assert_eq!(looks_until(Ruling::Retire, &mut watch, &state), Some(8));
        state.received();
        assert_eq!(looks_until(Ruling::SlowHead, &mut watch, &state), Some(3));
        state.enter(Phase::Busy);
        assert_eq!(looks_until(Ruling::Drop, &mut watch, &state), None);
        assert!(!state.is_late());
        state.enter(Phase::Body);
        for _ in 0..5 {
            assert_eq!(watch.look(&state, false), Ruling::Keep);
        }
        assert!(state.is_late());
    }

    #[test]
    fn progress_buys_time_but_a_trickle_of_head_bytes_does_not() {
        let state = ConnectionState::default();
        let mut watch = watch();
        state.enter(Phase::Body);
        for _ in 0..50 {
            state.progress();
            watch.look(&state, false);
            watch.look(&state, false);
        }
        assert!(!state.is_late());
        state.enter(Phase::Idle);
        state.received();
        watch.look(&state, false);
        state.received();
        watch.look(&state, false);
        state.received();
        assert_eq!(watch.look(&state, false), Ruling::SlowHead);
    }

    #[test]
    fn a_client_that_does_not_read_is_dropped() {
        let state = ConnectionState::default();
        let mut watch = watch();
        state.enter(Phase::Busy);
        state.set_stalled(true);
        assert_eq!(looks_until(Ruling::Drop, &mut watch, &state), Some(5));
    }

    #[test]
    fn who_holds_memory_that_others_want_has_to_get_on() {
        let state = ConnectionState::default();
        let mut watch = watch();
        let mut looks = |state: &ConnectionState, wanted: bool, moved: usize| {
            for _ in 0..30 {
                state.moved(moved);
                state.progress();
                if watch.look(state, wanted) == Ruling::Drop || state.is_given_up() {
                    return true;
                }
            }
            false
        };
        state.enter(Phase::Body);
        assert!(!looks(&state, true, 1), "it holds nothing");
        state.set_holds(true);
        assert!(!looks(&state, false, 1), "nobody wants it");
        assert!(!looks(&state, true, 1 << 16), "it comes");
        assert!(looks(&state, true, 1));
        state.set_holds(false);
        assert!(!state.is_given_up());
        state.enter(Phase::Answering);
        assert!(looks(&state, true, 1), "it is not taken");
    }
}
