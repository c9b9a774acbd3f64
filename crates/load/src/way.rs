//! Which way the next rows go: by the bulk form, whole or in smaller pieces, or one by one through
//! a lane. Pure.
//!
//! A bulk form writes a piece whole or not at all, so a piece with a bad row costs its time in
//! vain, and is filtered or goes through the lane then. What is cheapest follows from numbers that
//! are measured as the load goes on: what a row costs each way, what a piece costs besides its
//! rows, and how many rows are bad.

use std::time::Duration;

/// How rows are to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By the bulk form, in pieces of so many rows at most.
    Bulk(usize),
    /// By the bulk form without what looks bad, which goes through the lane.
    Filter,
    /// Through the lane.
    Lane,
}

/// What the ways were seen to cost so far.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    whole: usize,
    /// Seconds a row by the bulk form.
    bulk: Option<f64>,
    /// Seconds a row through the lane.
    lane: Option<f64>,
    /// The bulk form can filter.
    filters: bool,
    /// Seconds a row where portions are filtered, with what goes through the lane for it.
    filter: Option<f64>,
    /// The part of the rows that are bad.
    bad: f64,
    /// Bulk pieces in a row that were refused although no row of them was bad.
    in_vain: u32,
    /// Portions that go another way before the bulk form is tried again.
    rest: u32,
}

/// Seconds that a piece costs besides its rows: a round trip or two and a commit.
const PIECE: f64 = 0.002;

/// What a row costs through the lane before one has gone there, in terms of the bulk form.
const LANE_TIMES: f64 = 3.0;

/// What a row costs where portions are filtered before one was, in terms of the bulk form.
const FILTER_TIMES: f64 = 2.0;

/// Where a larger part of the rows is bad, there is little left for the bulk form.
const MOST_BAD: f64 = 0.5;

/// How fast old observations fade: rows, for the part that is bad.
const MEMORY_ROWS: f64 = 50_000.0;

/// The smallest piece that is worth a bulk statement.
const SMALLEST: usize = 100;

impl Costs {
    /// Nothing seen. `whole` is the number of rows in a portion; `filters`: the bulk form can leave
    /// rows out.
    pub(super) fn new(whole: usize, filters: bool) -> Self {
        Self {
            whole,
            bulk: None,
            lane: None,
            filters,
            filter: None,
            bad: 0.0,
            in_vain: 0,
            rest: 0,
        }
    }

    /// The way of the next portion.
    pub(super) fn way(&mut self) -> Way {
        // What the other ways cost is a guess by now; nothing speaks for them.
        if self.bad == 0.0 && self.rest == 0 {
            return Way::Bulk(self.whole);
        }
        let guess = || match (self.filter, self.lane) {
            (Some(filter), _) => Some(filter / FILTER_TIMES),
            (None, lane) => lane.map(|lane| lane / LANE_TIMES),
        };
        let Some(bulk) = self.bulk.or_else(guess) else {
            return Way::Bulk(self.whole);
        };
        let other = self.other(bulk);
        if self.rest > 0 {
            self.rest -= 1;
            return other.1;
        }
        let mut best = other;
        let mut rows = self.whole;
        while rows >= SMALLEST.min(self.whole) {
            let cost = self.piece_cost(rows, bulk, other.0);
            if cost < best.0 {
                best = (cost, Way::Bulk(rows));
            }
            rows /= 4;
            if rows == 0 {
                break;
            }
        }
        best.1
    }

    /// The cheapest way that takes bad rows, and what a row costs there.
    fn other(&self, bulk: f64) -> (f64, Way) {
        let lane = self.lane.unwrap_or(bulk * LANE_TIMES);
        let filter = self.filter.unwrap_or(bulk * FILTER_TIMES);
        match self.filters && self.bad < MOST_BAD && filter < lane {
            true => (filter, Way::Filter),
            false => (lane, Way::Lane),
        }
    }

    /// Seconds a row, where pieces have so many and go another way at `other` seconds a row if they
    /// are refused.
    fn piece_cost(&self, rows: usize, bulk: f64, other: f64) -> f64 {
        let clean = (1.0 - self.bad).powf(rows as f64);
        PIECE / rows as f64 + bulk + (1.0 - clean) * other
    }

    /// A piece was written by the bulk form.
    pub(super) fn loaded(&mut self, rows: usize, took: Duration) {
        (self.in_vain, self.rest) = (0, 0);
        // What a piece costs besides is thought of as the same everywhere.
        let seconds = (took.as_secs_f64() - PIECE).max(took.as_secs_f64() / 2.0);
        self.bulk = Some(mixed(self.bulk, seconds, rows));
        self.seen_bad(0, rows);
    }

    /// A piece went through the lane; `refused`: after the bulk form had refused it.
    pub(super) fn written(&mut self, rows: usize, bad: usize, took: Duration, refused: bool) {
        self.lane = Some(mixed(self.lane, took.as_secs_f64(), rows));
        self.outcome(rows, bad, refused);
    }

    /// A piece was filtered, and what was left out went through the lane; `refused`: after the bulk
    /// form had refused it whole.
    pub(super) fn filtered(&mut self, rows: usize, bad: usize, took: Duration, refused: bool) {
        self.filter = Some(mixed(self.filter, took.as_secs_f64(), rows));
        self.outcome(rows, bad, refused);
    }

    /// A piece was filtered, and had to go through the lane all the same; how that went was told
    /// already.
    pub(super) fn filtered_in_vain(&mut self, rows: usize, took: Duration) {
        self.filter = Some(mixed(self.filter, took.as_secs_f64(), rows));
    }

    fn outcome(&mut self, rows: usize, bad: usize, refused: bool) {
        if refused && bad == 0 {
            // The bulk form does not take something that is good: it is tried more and more seldom.
            self.in_vain += 1;
            self.rest = 1 << self.in_vain.min(6);
        }
        self.seen_bad(bad, rows);
    }

    fn seen_bad(&mut self, bad: usize, rows: usize) {
        if rows == 0 {
            return;
        }
        let part = bad as f64 / rows as f64;
        let weight = 1.0 - (-(rows as f64) / MEMORY_ROWS).exp();
        // The first bad rows are believed at once.
        let weight = if self.bad == 0.0 { 1.0 } else { weight };
        self.bad += (part - self.bad) * weight;
    }
}

fn mixed(old: Option<f64>, seconds: f64, rows: usize) -> f64 {
    let new = seconds / rows.max(1) as f64;
    old.map_or(new, |old| old + (new - old) * 0.3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_bad_row_nothing_speaks_for_the_lane() {
        let mut costs = Costs::new(100, false);
        for _ in 0..10 {
            assert_eq!(costs.way(), Way::Bulk(100));
            // Far less than a piece is thought to cost.
            costs.loaded(100, Duration::from_micros(20));
        }
    }

    /// A database where a row costs 2 us by the bulk form, 3.5 us where it is filtered, and 6 us
    /// through the lane, where a bad one costs 20 us; `bad` tells bad rows. Gives seconds.
    fn load_into(filters: bool, rows: usize, bad: impl Fn(usize) -> bool) -> f64 {
        let mut costs = Costs::new(10_000, filters);
        let (mut at, mut seconds) = (0, 0.0);
        while at < rows {
            let end = (at + 10_000).min(rows);
            let (way, mut from) = (costs.way(), at);
            while from < end {
                let to = match way {
                    Way::Bulk(piece) => (from + piece).min(end),
                    Way::Lane | Way::Filter => end,
                };
                let n = to - from;
                let count = (from..to).filter(|row| bad(*row)).count();
                let whole = matches!(way, Way::Bulk(_));
                let refused = count > 0 && whole;
                if whole {
                    let took = PIECE + n as f64 * 2e-6;
                    seconds += took;
                    if !refused {
                        costs.loaded(n, Duration::from_secs_f64(took));
                    }
                }
                if way == Way::Filter || (refused && filters) {
                    let took = PIECE + n as f64 * 3.5e-6 + count as f64 * 20e-6;
                    seconds += took;
                    costs.filtered(n, count, Duration::from_secs_f64(took), refused);
                } else if way == Way::Lane || refused {
                    let took = n as f64 * 6e-6;
                    seconds += took;
                    costs.written(n, count, Duration::from_secs_f64(took), refused);
                }
                from = to;
            }
            at = end;
        }
        seconds
    }

    fn load(rows: usize, bad: impl Fn(usize) -> bool) -> f64 {
        load_into(false, rows, bad)
    }

    /// Bad rows in no order, so many in a million.
    fn scattered(in_a_million: usize) -> impl Fn(usize) -> bool {
        move |row| (row.wrapping_mul(2_654_435_761) >> 7) % 1_000_000 < in_a_million
    }

    #[test]
    fn clean_rows_go_by_the_bulk_form() {
        let clean = load(1_000_000, |_| false);
        assert!((clean - (2.0 + 100.0 * PIECE)).abs() < 1e-9, "{clean}");
    }

    #[test]
    fn few_bad_rows_cost_little() {
        let clean = load(1_000_000, |_| false);
        let one = load(1_000_000, |row| row == 4_711);
        assert!(one < clean * 1.1, "{one} {clean}");
        let some = load(1_000_000, scattered(50));
        assert!(some < clean * 1.8, "{some} {clean}");
    }

    #[test]
    fn many_bad_rows_go_through_the_lane_at_once() {
        for in_a_million in [2_000, 10_000, 100_000] {
            let bad = load(1_000_000, scattered(in_a_million));
            assert!(bad < 6.0 * 1.1, "{in_a_million}: {bad}");
        }
    }

    #[test]
    fn what_can_be_filtered_is() {
        let clean = load_into(true, 1_000_000, |_| false);
        for (in_a_million, most) in [(50, 1.8), (2_000, 2.0), (10_000, 2.1)] {
            let bad = load_into(true, 1_000_000, scattered(in_a_million));
            assert!(bad < clean * most, "{in_a_million}: {bad} {clean}");
        }
        // Where nearly all rows are bad, the lane is cheaper again.
        let bad = load_into(true, 1_000_000, |row| row % 4 > 0);
        assert!(bad < 6.0 * 1.2, "{bad}");
    }

    #[test]
    fn a_bad_stretch_does_not_last() {
        let clean = load(2_000_000, |_| false);
        let bad = load(2_000_000, |row| {
            (500_000..600_000).contains(&row) && row % 50 == 0
        });
        assert!(bad < clean * 1.7, "{bad} {clean}");
    }

    #[test]
    fn what_the_bulk_form_never_takes_is_hardly_tried() {
        let mut costs = Costs::new(1000, false);
        let mut tries = 0;
        for _ in 0..1000 {
            let refused = costs.way() != Way::Lane;
            tries += usize::from(refused);
            costs.written(1000, 0, Duration::from_millis(6), refused);
        }
        assert!((5..30).contains(&tries), "{tries}");
    }
}
