//! The watch over one connection, which acts on clients that are idle or make no progress.

use std::time::Duration;

use windrow_core::Budget;

use crate::config::HttpConfig;
use crate::connection_state::{ConnectionState, Phase};

/// The time in which a client that holds memory must move [`PROGRESS_BYTES`] bytes, while other
/// clients need memory.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(10);

/// The time after which a client is dropped that reads nothing of an answer whose memory other
/// clients wait for, and the interval of the checks. Short, because the others wait as long.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(2);
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The bytes that must move in that time.
const PROGRESS_BYTES: u64 = 64 << 10;

/// The action for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// No action.
    Keep,
    /// Close the idle connection.
    Retire,
    /// The head did not arrive in time.
    SlowHead,
    /// The client does not read its answer.
    Drop,
}

/// Resources that other clients wait for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WantedResources {
    /// Memory for request bodies.
    pub(crate) memory: bool,
    /// Memory for answers.
    pub(crate) room: bool,
}

impl WantedResources {
    pub(crate) fn of(budget: &Budget) -> Self {
        Self {
            memory: budget.is_wanted(),
            room: budget.answers().is_wanted(),
        }
    }
}

/// Checks a [`ConnectionState`] periodically. A limit is exceeded by at most one period.
#[derive(Debug)]
pub(crate) struct Watch {
    period: Duration,
    /// The time until the next check.
    step: Duration,
    quiet: Duration,
    stamp: u32,
    head: Duration,
    body: Duration,
    idle: Duration,
    /// The time since which a client that holds memory is watched, and the bytes moved by then.
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
        let shortest = head.min(body).min(idle).min(PROGRESS_TIMEOUT);
        let period = (shortest / 2).max(Duration::from_millis(1));
        Self {
            period,
            step: period,
            quiet: Duration::ZERO,
            stamp: 0,
            head,
            body,
            idle,
            held: Duration::ZERO,
            moved: 0,
        }
    }

    /// Returns the time until the next check, which is shorter while an answer is sent that takes
    /// memory.
    pub(crate) fn step(&mut self, state: &ConnectionState) -> Duration {
        self.step = match state.takes_room() {
            true => self.period.min(LOOK_INTERVAL),
            false => self.period,
        };
        self.step
    }

    /// Checks once, a step after the last check. `wanted`: the memory that other clients need.
    pub(crate) fn look(&mut self, state: &ConnectionState, wanted: WantedResources) -> Ruling {
        if self.is_too_slow(state) && wanted.memory {
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
        self.quiet += self.step;
        if state.takes_room() && wanted.room && self.quiet >= UNREAD_TIMEOUT {
            return Ruling::Drop;
        }
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

    /// True if a client that holds memory, for its body or its answer, has moved too few bytes for
    /// too long.
    fn is_too_slow(&mut self, state: &ConnectionState) -> bool {
        let moved = state.moved_in_all();
        let holds = state.holds_memory() || state.phase() == Phase::Answering;
        if !holds || moved >= self.moved + PROGRESS_BYTES {
            (self.held, self.moved) = (Duration::ZERO, moved);
            return false;
        }
        self.held += self.step;
        self.held >= PROGRESS_TIMEOUT.min(self.body)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::connection_state::Answering;

    fn watch() -> Watch {
        Watch::new(&HttpConfig {
            header_timeout: Duration::from_secs(2),
            body_timeout: Duration::from_secs(4),
            idle_timeout: Duration::from_secs(8),
            ..HttpConfig::default()
        })
    }

    fn looks_until(ruling: Ruling, watch: &mut Watch, state: &ConnectionState) -> Option<u32> {
        (1..100).find(|_| watch.look(state, WantedResources::default()) == ruling)
    }

    #[test]
    fn each_phase_has_its_own_patience() {
        let state = ConnectionState::default();
        let mut watch = watch();
        assert_eq!(watch.step(&state), Duration::from_secs(1));
        assert_eq!(looks_until(Ruling::Retire, &mut watch, &state), Some(8));
        state.received();
        assert_eq!(looks_until(Ruling::SlowHead, &mut watch, &state), Some(3));
        state.enter(Phase::Busy);
        assert_eq!(looks_until(Ruling::Drop, &mut watch, &state), None);
        assert!(!state.is_late());
        state.enter(Phase::Body);
        for _ in 0..5 {
            assert_eq!(watch.look(&state, WantedResources::default()), Ruling::Keep);
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
            watch.look(&state, WantedResources::default());
            watch.look(&state, WantedResources::default());
        }
        assert!(!state.is_late());
        state.enter(Phase::Idle);
        state.received();
        watch.look(&state, WantedResources::default());
        state.received();
        watch.look(&state, WantedResources::default());
        state.received();
        assert_eq!(
            watch.look(&state, WantedResources::default()),
            Ruling::SlowHead
        );
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
                if watch.look(
                    state,
                    WantedResources {
                        memory: wanted,
                        room: false,
                    },
                ) == Ruling::Drop
                    || state.is_given_up()
                {
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

    #[test]
    fn who_takes_nothing_of_an_answer_is_dropped_soon_where_others_want_its_room() {
        let state = Arc::new(ConnectionState::default());
        let looks = |wanted: WantedResources, reads: bool| {
            let mut watch = watch();
            (0..20).find(|_| {
                watch.step(&state);
                if reads {
                    state.progress();
                }
                watch.look(&state, wanted) == Ruling::Drop
            })
        };
        let wanted = WantedResources {
            room: true,
            ..WantedResources::default()
        };
        state.enter(Phase::Answering);
        assert_eq!(looks(wanted, false), None, "it takes no room");
        let answering = Answering::new(Arc::clone(&state), true);
        assert_eq!(looks(WantedResources::default(), false), None);
        assert_eq!(looks(wanted, true), None);
        assert!(looks(wanted, false).is_some_and(|looks| looks < 6));
        drop(answering);
        assert_eq!(looks(wanted, false), None, "it has left");
    }
}
