//! Rows per second over several landings.

use std::time::Duration;

use super::Setting;

/// The fewest landings of a sample, and the fewest for each flight.
const LANDINGS: usize = 3;
const PER_FLIGHT: usize = 2;

/// The shortest sample: below this, one delay of the scheduler would decide.
const SHORTEST: Duration = Duration::from_millis(6);

/// A sample is saturated if this share of its rows had waited.
const WAITED_SHARE: f64 = 0.75;

/// A sample is crowded if this share of its rows had waited.
const CROWDED_SHARE: f64 = 0.25;

/// The number of landings to wait until all connections that a setting asks for are open.
const MAX_UNCONNECTED: usize = 256;

/// The end of a flight, for the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landing {
    /// The time since the start of the lane.
    pub at: Duration,
    /// The time of the flight.
    pub took: Duration,
    /// Rows of its batch.
    pub rows: usize,
    /// True if a limit kept rows out of the batch when it departed.
    pub cut: bool,
    /// True if its rows had waited for a flight to end before they left.
    pub waited: bool,
    /// True if the clients that are answered mostly come back at once ([`super::Gather::landed`]).
    pub back: bool,
    /// Flights that were under way when it left, itself included.
    pub flying: usize,
    /// Open connections for flights.
    pub connected: usize,
    /// Sources that had units under way or waiting when it landed, its own included.
    pub sources: usize,
}

/// A sample that is being taken.
#[derive(Clone, Debug)]
pub(super) struct Window {
    setting: Setting,
    /// Landings to skip before the sample begins: flights that left under another setting, and
    /// those in which the queue adapts.
    settle: usize,
    unconnected: usize,
    since: Option<Duration>,
    hopeless: Hopeless,
    landings: usize,
    rows: usize,
    waited: usize,
    cut: usize,
    back: usize,
    flying: usize,
    sources: usize,
}

/// The rate below which a sample ends early after some time: it cannot become good.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hopeless {
    pub(super) after: Duration,
    pub(super) rate: f64,
}

impl Hopeless {
    pub(super) const NEVER: Self = Self {
        after: Duration::ZERO,
        rate: 0.0,
    };
}

/// The result of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Rows per second.
    pub(super) rate: f64,
    /// The time of the window.
    pub(super) took: Duration,
    /// Average rows of a batch.
    pub(super) rows: usize,
    /// Average flights under way.
    pub(super) flying: usize,
    /// True if nearly all rows had waited: the database is the limit.
    pub(super) saturated: bool,
    /// True if a good part of the rows had waited.
    pub(super) crowded: bool,
    /// True if batches were mostly cut by a limit.
    pub(super) cut: bool,
    /// True if the clients that were answered mostly came back at once.
    pub(super) back: bool,
    /// False if the connections that the setting asks for were never opened.
    pub(super) connected: bool,
    /// The most sources that had units at the same time.
    pub(super) sources: usize,
}

impl Window {
    pub(super) fn after(
        settle: usize,
        setting: Setting,
        now: Duration,
        hopeless: Hopeless,
    ) -> Self {
        Self {
            settle,
            hopeless,
            since: (settle == 0).then_some(now),
            ..Self::idle(setting)
        }
    }

    /// Returns a window that begins with the next landing.
    pub(super) fn idle(setting: Setting) -> Self {
        Self {
            setting,
            settle: 0,
            unconnected: 0,
            since: None,
            hopeless: Hopeless::NEVER,
            landings: 0,
            rows: 0,
            waited: 0,
            cut: 0,
            back: 0,
            flying: 0,
            sources: 0,
        }
    }

    /// Adds a landing; returns the sample once it is complete.
    pub(super) fn add(&mut self, landing: Landing) -> Option<Sample> {
        if landing.connected < self.setting.flights && self.unconnected < MAX_UNCONNECTED {
            self.unconnected += 1;
            self.since = Some(landing.at);
            return None;
        }
        if self.settle > 0 {
            self.settle -= 1;
            self.since = (self.settle == 0).then_some(landing.at);
            return None;
        }
        let Some(since) = self.since else {
            self.since = Some(landing.at);
            return None;
        };
        self.landings += 1;
        self.rows += landing.rows;
        self.waited += if landing.waited { landing.rows } else { 0 };
        self.cut += usize::from(landing.cut);
        self.back += usize::from(landing.back);
        self.flying += landing.flying;
        self.sources = self.sources.max(landing.sources);
        let elapsed = landing.at.saturating_sub(since);
        let enough = LANDINGS.max(PER_FLIGHT * self.setting.flights);
        let rate = self.rows as f64 / elapsed.as_secs_f64();
        let hopeless = elapsed > self.hopeless.after && rate < self.hopeless.rate;
        if elapsed < SHORTEST || (self.landings < enough && !hopeless) {
            return None;
        }
        Some(Sample {
            rate,
            took: elapsed,
            rows: self.rows.div_ceil(self.landings),
            flying: ((self.flying + self.landings / 2) / self.landings).max(1),
            saturated: self.waited as f64 >= self.rows as f64 * WAITED_SHARE,
            crowded: self.waited as f64 >= self.rows as f64 * CROWDED_SHARE,
            cut: self.cut * 2 > self.landings,
            back: self.back * 2 > self.landings,
            connected: self.unconnected < MAX_UNCONNECTED,
            sources: self.sources,
        })
    }
}
