//! Trouble beside clients that behave.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::streams::Streams;
use super::under_load::UnderLoad;
use crate::experiments::soak::manners::Manner;
use crate::experiments::soak::others::Others;
use crate::experiments::soak::ways::Ways;
use crate::http::closed::{self, Closed, Until};
use crate::http::job::{ROWS, id_of};
use crate::http::open::{self, Open};
use crate::http::{Job, Live, Outcome, Report};
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
        match self {
            Self::TenTimes => table.execute(&format!(
                "create function slow() returns trigger language plpgsql as $$begin \
                 perform pg_sleep({}); return new; end$$; \
                 create trigger slow before insert on readings for each row execute function slow()",
                as_f64(slow_ms) / 1000.0
            )),
            Self::BadRows => table.execute(
                "alter table readings add constraint warm check (temperature > -300)",
            ),
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
                let streams = Streams::start(load.windrow.address(), size.streams, size.good);
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
                let ways = Ways::to(&load.windrow, &load.table.url())?;
                // Each connects several times meanwhile, and never reads.
                let deaf = Others::start(&ways, size.clients, time / 5, &[Manner::Deaf]);
                thread::sleep(time);
                Ok(Seen::Counted(deaf.metrics().to_vec()))
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
    Counted(Vec<(&'static str, f64)>),
}

/// The result of the others' requests.
pub(super) struct TroubleResult {
    pub(super) metrics: Vec<(&'static str, f64)>,
    /// Rows that were reported as written.
    pub(super) rows: u64,
}

impl Seen {
    pub(super) fn result(self, before: f64) -> Result<TroubleResult> {
        let (metrics, rows) = match self {
            Self::Nothing => (Vec::new(), 0),
            Self::Counted(metrics) => (metrics, 0),
            Self::Streams(streams) => {
                let rows = streams.end()?;
                (vec![("others' rows", as_f64(rows))], rows)
            }
            Self::Requests(report, time) => {
                let refused = report.requests() - report.successes();
                let offered = as_f64(report.requests()) / time.as_secs_f64();
                let metrics = vec![
                    ("others offered rows/s", offered),
                    ("others offered, times the rate before", offered / before),
                    ("others' rows", as_f64(report.successes())),
                    ("others refused", as_f64(refused)),
                    (
                        "others refused %",
                        100.0 * as_f64(refused) / as_f64(report.requests().max(1)),
                    ),
                ];
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
        let job: Arc<dyn Job> = Arc::new(Large {
            first: self.good,
            bytes: self.row_bytes,
            end: Instant::now() + self.time,
        });
        let offered = Open {
            connections: self.clients,
            rate: rate * TIMES,
            time: self.time,
            seed: 1,
        };
        let report = open::run_by_free_connections(load.windrow.address(), &offered, &job)?;
        Ok(Seen::Requests(report, self.time))
    }

    fn bad_rows(self, load: &UnderLoad) -> Result<Seen> {
        let job: Arc<dyn Job> = Arc::new(Bad { first: self.good });
        let offered = Closed {
            connections: self.clients,
            until: Until::Elapsed(self.time),
        };
        let live = Arc::new(Live::default());
        let report = closed::run(load.windrow.address(), &offered, &job, &live)?;
        let own = report.outcomes.get(&Outcome::Refused(422));
        let own = own.copied().context("no bad row was refused")?;
        ensure!(
            own == report.requests(),
            "a bad row got another error than its own: {:?}\n{}",
            report.outcomes,
            report.samples.join("\n")
        );
        Ok(Seen::Requests(report, self.time))
    }
}

/// Rows with a long note, until a moment.
struct Large {
    first: usize,
    bytes: usize,
    end: Instant,
}

impl Job for Large {
    fn target(&self) -> &str {
        ROWS
    }

    fn body(&self, connection: usize, n: u64, out: &mut Vec<u8>) {
        let id = id_of(self.first + connection, n);
        let head = format!(
            r#"{{"id":{id},"device":7,"at":"2026-01-01T00:00:00Z","temperature":1,"note":""#
        );
        out.extend_from_slice(head.as_bytes());
        out.resize(out.len() + self.bytes, b'x');
        out.extend_from_slice(b"\"}");
    }

    fn ends(&self, _connection: usize, _n: u64) -> bool {
        Instant::now() >= self.end
    }
}

/// Rows that a check refuses.
struct Bad {
    first: usize,
}

impl Job for Bad {
    fn target(&self) -> &str {
        ROWS
    }

    fn body(&self, connection: usize, n: u64, out: &mut Vec<u8>) {
        let id = id_of(self.first + connection, n);
        let row = format!(
            r#"{{"id":{id},"device":7,"at":"2026-01-01T00:00:00Z","temperature":-1000,"note":"bad"}}"#
        );
        out.extend_from_slice(row.as_bytes());
    }
}
