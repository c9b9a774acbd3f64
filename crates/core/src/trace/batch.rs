//! The span of a batch.

use std::time::{Duration, SystemTime};

use super::{Side, Trace, TraceSpan, TraceValue};
use crate::sink::{Rung, Tally};

/// The most requests that a batch's span links to.
const LINKS: usize = 128;

/// A landed batch with traced requests in it.
#[derive(Clone, Copy, Debug)]
pub struct TracedBatch<'a> {
    /// The name of the lane.
    pub lane: &'a str,
    /// The database's name, as its makers write it.
    pub database: &'a str,
    /// The time since the batch left.
    pub took: Duration,
    /// The number of rows.
    pub rows: usize,
    /// The number of units, traced or not.
    pub units: usize,
    /// The number of units that failed.
    pub failed: usize,
    /// The number of units that run again.
    pub again: usize,
    /// The cost of the batch.
    pub tally: &'a Tally,
}

impl TracedBatch<'_> {
    /// Emits the batch's span, and notes the batch in each traced request. `requests`: these
    /// requests, each with the time that its units had waited.
    pub fn landed(&self, requests: &[(Trace, Duration)]) {
        let Some((first, _)) = requests.first() else {
            return;
        };
        let context = first.tracer().root();
        let (mut links, mut left_out) = (Vec::new(), 0);
        for (trace, queued) in requests {
            if !trace.landed(context, *queued, self.tally) {
                continue;
            }
            match links.len() < LINKS {
                true => links.push(trace.context()),
                false => left_out += 1,
            }
        }
        let ended = SystemTime::now();
        first.tracer().take(TraceSpan {
            context,
            parent: None,
            side: Side::Client,
            name: "batch".into(),
            began: ended.checked_sub(self.took).unwrap_or(ended),
            ended,
            links,
            links_left_out: left_out,
            attributes: self.attributes(),
            failed: self.failed == self.units,
        });
    }

    fn attributes(&self) -> Vec<(&'static str, TraceValue)> {
        let count = |count: usize| TraceValue::Count(count as u64);
        let text = |text: &str| TraceValue::Text(text.to_owned().into());
        let seconds = self.tally.in_database.as_secs_f64();
        let mut all = vec![
            ("db.system.name", text(&self.database.to_ascii_lowercase())),
            ("db.operation.batch.size", count(self.rows)),
            ("windrow.lane", text(self.lane)),
            ("windrow.units", count(self.units)),
            ("windrow.database_seconds", TraceValue::Seconds(seconds)),
            (
                "windrow.round_trips",
                TraceValue::Count(self.tally.round_trips.into()),
            ),
            (
                "windrow.commits",
                TraceValue::Count(self.tally.commits.into()),
            ),
        ];
        let names = [
            "windrow.rows_solo",
            "windrow.rows_fused",
            "windrow.rows_grouped",
            "windrow.rows_isolated",
        ];
        let rungs: [u64; Rung::ALL.len()] = self.tally.rungs;
        let rungs = names.into_iter().zip(rungs).filter(|(_, rows)| *rows > 0);
        all.extend(rungs.map(|(name, rows)| (name, TraceValue::Count(rows))));
        for (name, units) in [
            ("windrow.failed", self.failed),
            ("windrow.again", self.again),
        ] {
            if units > 0 {
                all.push((name, count(units)));
            }
        }
        all
    }
}
