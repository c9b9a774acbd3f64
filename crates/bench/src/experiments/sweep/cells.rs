//! Measurements of the sweep, each of which begins with an emptied table and ends with a count.

use std::sync::{Arc, Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::library::{Found, Library};
use super::rows::Rows;
use crate::experiments::outcomes;
use crate::servers::{Driver, Store, Table};

/// Where rows are written, and which.
pub(super) struct Field<'a> {
    pub(super) table: &'a Table,
    pub(super) rows: &'a Arc<Rows>,
    /// The time of warming up before each measurement.
    pub(super) warm_up: Duration,
    /// The server, if it is ours, so that its disk can be brought to rest before.
    pub(super) store: Option<&'a Store>,
}

impl Field<'_> {
    /// Rows a second of so many connections, each of which writes such batches one after the other.
    pub(super) fn cell(&self, (batch, connections): (u32, u32), time: Duration) -> Result<f64> {
        self.make_ready()?;
        let ready = Barrier::new(usize::try_from(connections)?);
        let begun = OnceLock::new();
        let window = || {
            let from = *begun.get_or_init(Instant::now) + self.warm_up;
            let until = from + time;
            Window { from, until }
        };
        let (inside, written) = thread::scope(|scope| {
            let writers: Vec<_> = (0..connections)
                .map(|_| {
                    scope.spawn(|| {
                        let writer = Driver::connect(self.table);
                        // Also where it failed: the others wait.
                        ready.wait();
                        window().fill(&mut writer?, self.rows, batch)
                    })
                })
                .collect();
            let (mut inside, mut all) = (0.0, 0);
            for writer in writers {
                let (its, written) = writer.join().map_err(|_| anyhow!("a writer panicked"))??;
                inside += its;
                all += written;
            }
            anyhow::Ok((inside, all))
        })?;
        outcomes::all_there(written, self.table.count_of("lineitem")?)?;
        Ok(inside / time.as_secs_f64())
    }

    /// Empties the table.
    fn make_ready(&self) -> Result<()> {
        self.table.empty("lineitem")?;
        self.store.map_or(Ok(()), Store::settle)
    }

    /// Rows through Windrow's library into the emptied table, measured behind a while.
    pub(super) fn through(
        &self,
        library: &Library,
        (before, time): (Duration, Duration),
    ) -> Result<Found> {
        self.make_ready()?;
        let found = library.write(self.rows, (before, time))?;
        outcomes::all_there(found.written, self.table.count_of("lineitem")?)?;
        Ok(found)
    }
}

/// When a cell is measured: the same time for all of its connections. With a time of its own, one
/// that had to wait for the others would be measured when these are done.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: Instant,
    until: Instant,
}

impl Window {
    /// Returns the share (up to 1) of the time from `begun` to `ended` that lies in the window.
    fn share(&self, begun: Instant, ended: Instant) -> f64 {
        let inside = ended
            .min(self.until)
            .saturating_duration_since(begun.max(self.from));
        let took = ended.saturating_duration_since(begun);
        inside.as_secs_f64() / took.as_secs_f64().max(1e-9)
    }

    /// Writes batches until it is over, one at least. Gives back the rows that were written in it,
    /// of a batch at its edge a part, and all.
    fn fill(&self, writer: &mut Driver, rows: &Rows, batch: u32) -> Result<(f64, u64)> {
        let (mut inside, mut all) = (0.0, 0);
        loop {
            let begun = Instant::now();
            rows.write(writer, batch)?;
            let ended = Instant::now();
            inside += f64::from(batch) * self.share(begun, ended);
            all += u64::from(batch);
            if ended >= self.until {
                return Ok((inside, all));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_batch_at_the_edge_a_part_counts() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let window = Window {
            from: at(100),
            until: at(200),
        };
        for (begun, ended, share) in [
            (120, 140, 1.0),
            (80, 120, 0.5),
            (190, 230, 0.25),
            (50, 250, 0.5),
            (0, 100, 0.0),
            (200, 300, 0.0),
        ] {
            let found = window.share(at(begun), at(ended));
            assert!((found - share).abs() < 1e-9, "{begun} {ended}: {found}");
        }
    }
}
