//! Trouble beside clients that behave.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::streams::Streams;
use super::under_load::UnderLoad;
use crate::experiments::soak::manners::Manner;
use crate::experiments::soak::others::Others;
use crate::figures::Metrics;
use crate::generator::{
    Call, Clients, Inserts, Job, Live, Outcome, Report, Schedule, Style, Until,
};
use crate::number::as_f64;
use crate::say;
use crate::servers::{Store, Table};

/// One kind of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Trouble {
    /// A slow database, and large rows at ten times the rate that it carries.
    TenTimes,
    /// The database stands still, and bodies without end go on coming.
    Stalled,
    /// The database is killed, and started again later.
    Killed,
    /// Several times as many clients as the good ones, of whose rows each is refused.
    BadRows,
    /// The same over SQL, on another table than that of the good ones: directly, and through
    /// Windrow.
    BadStatements,
    /// Clients that ask for much and never read it.
    Deaf,
}

/// The size of the trouble.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// The good clients, behind whose rows all others have theirs.
    pub(super) good: usize,
    pub(super) clients: usize,
    pub(super) streams: usize,
    pub(super) row_bytes: usize,
    pub(super) time: Duration,
}

/// The multiple of the rate that can be carried.
const TIMES: f64 = 10.0;

impl Trouble {
    /// Returns the name in tables.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::TenTimes => "ten times the load",
            Self::Stalled => "the database stands still",
            Self::Killed => "the database is killed",
            Self::BadRows => "a flood of bad rows",
            Self::BadStatements => "a flood of failing statements",
            Self::Deaf => "clients that never read",
        }
    }

    /// Returns the name in file names.
    pub(super) fn file(self) -> &'static str {
        match self {
            Self::TenTimes => "ten-times",
            Self::Stalled => "stalled",
            Self::Killed => "killed",
            Self::BadRows => "bad-rows",
            Self::BadStatements => "bad-statements",
            Self::Deaf => "deaf",
        }
    }

    /// Prepares the table for the trouble.
    pub(super) fn prepare(self, table: &Table, slow_ms: u64) -> Result<()> {
        let query = |sql: &str| table.query(sql).map(drop);
        match self {
            Self::TenTimes => query(&format!(
                "create function slow() returns trigger language plpgsql as $$begin \
                 perform pg_sleep({}); return new; end$$; \
                 create trigger slow before insert on readings for each row execute function slow()",
                as_f64(slow_ms) / 1000.0
            )),
            Self::BadRows => {
                query("alter table readings add constraint warm check (temperature > -300)")
            }
            Self::Stalled | Self::Killed | Self::BadStatements | Self::Deaf => Ok(()),
        }
    }

    /// Makes it for a while; says what came of it. `rate`: what the good clients had before.
    pub(super) fn make(
        self,
        size: Size,
        store: &Store,
        load: &UnderLoad,
        rate: f64,
    ) -> Result<Seen> {
        let time = size.time;
        let server = store.server()?;
        say::during(self.as_str(), time, || match self {
            Self::TenTimes => size.ten_times(load, rate),
            Self::BadRows => size.bad_rows(load),
            Self::Stalled => {
                let streams = Streams::start(load.bed.windrow.address(), size.streams, size.good);
                server.pause()?;
                thread::sleep(time);
                server.resume();
                streams.stop();
                Ok(Seen::Streams(streams))
            }
            Self::Killed => {
                server.kill9()?;
                thread::sleep(time);
                server.restart()?;
                Ok(Seen::Nothing)
            }
            // Measured with loads of its own.
            Self::BadStatements => Ok(Seen::Nothing),
            Self::Deaf => {
                let targets = [load.bed.pg_target()?, load.bed.target()];
                // Each connects several times meanwhile, and never reads.
                let deaf = Others::start(&targets, size.clients, time / 5, &[Manner::Deaf]);
                thread::sleep(time);
                Ok(Seen::Counted(deaf.metrics()))
            }
        })
    }
}

/// The results of the clients that made the trouble.
pub(super) enum Seen {
    Nothing,
    /// Streams that are ending, once the database has their rows.
    Streams(Streams),
    /// Requests that were sent within this time; answers may have come later.
    Requests(Report, Duration),
    Counted(Metrics),
}

/// The result of the others' requests.
pub(super) struct TroubleResult {
    pub(super) metrics: Metrics,
    /// Rows that were reported as written.
    pub(super) rows: u64,
}

impl Seen {
    pub(super) fn result(self, before: f64) -> Result<TroubleResult> {
        let (metrics, rows) = match self {
            Self::Nothing => (Metrics::new(), 0),
            Self::Counted(metrics) => (metrics, 0),
            Self::Streams(streams) => {
                let rows = streams.end()?;
                (Metrics::new().with("others' rows", as_f64(rows)), rows)
            }
            Self::Requests(report, time) => {
                let (calls, rows) = (as_f64(report.calls()), as_f64(report.successes()));
                let offered = calls / time.as_secs_f64();
                let metrics = Metrics::new()
                    .with("others offered rows/s", offered)
                    .with("others offered, times the rate before", offered / before)
                    .with("others' rows", rows)
                    .with("others refused", calls - rows)
                    .with("others refused %", 100.0 * (calls - rows) / calls.max(1.0));
                (metrics, report.successes())
            }
        };
        Ok(TroubleResult { metrics, rows })
    }
}

impl Size {
    /// At a fixed rate, whatever the answers are.
    fn ten_times(self, load: &UnderLoad, rate: f64) -> Result<Seen> {
        ensure!(rate > 0.0, "no row came through before");
        let job = Other {
            inserts: self.inserts(),
            note: "x".repeat(self.row_bytes),
            end: Some(Instant::now() + self.time),
        };
        let rate = rate * TIMES;
        let report = self.offer(load, Schedule::FirstFree { rate }, job)?;
        Ok(Seen::Requests(report, self.time))
    }

    /// Rows that a check refuses.
    fn bad_rows(self, load: &UnderLoad) -> Result<Seen> {
        let job = Other {
            inserts: self.inserts(),
            note: String::new(),
            end: None,
        };
        let report = self.offer(load, Schedule::Closed, job)?;
        report.all(Outcome::Refused(422))?;
        Ok(Seen::Requests(report, self.time))
    }

    fn inserts(self) -> Inserts {
        Inserts {
            first_client: self.good,
            ..Inserts::from(Style::Http, 0)
        }
    }

    fn offer(self, load: &UnderLoad, schedule: Schedule, job: Other) -> Result<Report> {
        let mut clients = Clients::open(&load.bed.target(), self.clients)?;
        let (until, job): (_, Arc<dyn Job>) = (Until::after(self.time), Arc::new(job));
        clients.run(schedule, &until, &job, &Arc::new(Live::default()))
    }
}

/// Rows with a long note until a moment, or rows that a check refuses.
struct Other {
    inserts: Inserts,
    note: String,
    end: Option<Instant>,
}

impl Job for Other {
    fn write(&self, call: Call<'_>, out: &mut Vec<u8>) {
        let mut reading = self.inserts.reading(call);
        match self.end {
            Some(_) => reading.note = &self.note,
            None => reading.temperature = -1000.0,
        }
        self.inserts.style.write("readings", &reading, out);
    }

    fn ends(&self, _: Call<'_>) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }
}
