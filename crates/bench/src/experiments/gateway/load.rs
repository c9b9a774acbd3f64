//! One load over one way to the database.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use windrow_testkit::procfs;

use super::flawed::{self, Flawed, Mix};
use crate::experiments::outcomes;
use crate::figures::Run;
use crate::limit;
use crate::number::as_f64;
use crate::pg::closed::Clients;
use crate::pg::open::{self, Open};
use crate::pg::transaction::{Shape, TABLES, Transactions};
use crate::pg::{Inserts, Job, Mode, Report};
use crate::say;
use crate::servers::pg::{Database, Gate, Way};

/// Each client's rows before this one are written while measuring, rows from it on while warming
/// up.
const WARM: u64 = 50_000_000;

/// One kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// Each client sends its next row when the last one is answered.
    Closed { clients: usize, mode: Mode },
    /// Each client sends the statements of its next transaction, one after the other.
    Transactions { clients: usize, shape: Shape },
    /// One row at a time again, with bad rows among them.
    Flawed { clients: usize, mix: Mix },
    /// The same, beside clients that are connected and silent.
    Connected { all: usize, busy: usize },
    /// A fixed rate of rows a second, however slow the answers are.
    Open { clients: usize, rate: u32 },
}

impl Load {
    pub(super) fn arm(self, way: Way) -> String {
        let way = way.as_str();
        let of = |clients| match clients {
            1 => "1 client".to_owned(),
            many => format!("{many} clients"),
        };
        match self {
            Self::Closed {
                clients,
                mode: Mode::Prepared,
            } => format!("{way}, {}", of(clients)),
            Self::Transactions { clients, .. } => format!("{way}, {}", of(clients)),
            Self::Closed { clients, mode } => format!("{way}, {}, {}", of(clients), mode.as_str()),
            Self::Flawed { clients, mix } => format!("{way}, {}, {}", of(clients), mix.name()),
            Self::Connected { all, busy } => format!("{way}, {all} connected, {busy} write"),
            Self::Open { rate, .. } => format!("{way}, {rate}/s offered"),
        }
    }

    pub(super) fn shape(self) -> Shape {
        match self {
            Self::Transactions { shape, .. } => shape,
            _ => Shape::Single,
        }
    }

    pub(super) fn mode(self) -> Mode {
        match self {
            Self::Closed { mode, .. } => mode,
            _ => Mode::Prepared,
        }
    }

    /// Returns the number of clients, and the number of those that write.
    pub(super) fn clients(self) -> (usize, usize) {
        match self {
            Self::Connected { all, busy } => (all, busy.min(all)),
            Self::Closed { clients, .. }
            | Self::Transactions { clients, .. }
            | Self::Flawed { clients, .. }
            | Self::Open { clients, .. } => (clients, clients),
        }
    }

    /// A proxy that only forwards does not know how clients speak: once is enough.
    pub(super) fn tells_something(self, way: Way) -> bool {
        way != Way::Forward || self.mode() == Mode::Prepared
    }

    /// True if a way has capacity for its clients.
    pub(super) fn fits(self, way: Way) -> Result<bool> {
        let (all, busy) = self.clients();
        way.has_room(all, busy, self.mode() == Mode::Prepared)
    }

    /// The generator's own limit with this load.
    pub(super) fn limit(self) -> Result<f64> {
        match self {
            Self::Closed { clients, mode } => limit::of_pg(clients, mode),
            Self::Transactions { clients, shape } => {
                let lines = shape.lines();
                limit::of_transactions(clients, Transactions { lines })
            }
            Self::Flawed { clients, .. } => limit::of_pg(clients, Mode::Prepared),
            Self::Connected { busy, .. } => limit::of_pg(busy, Mode::Prepared),
            Self::Open { clients, .. } => limit::of_pg_open(clients),
        }
    }
}

/// The times of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) warm_up: Duration,
    pub(super) measured: Duration,
}

/// Clients that are connected and have prepared.
enum Ready {
    Closed { clients: Clients, busy: usize },
    Open { clients: open::Clients, rate: u32 },
}

impl Ready {
    fn open(gate: &Gate, load: Load) -> Result<Self> {
        if let Load::Open { clients, rate } = load {
            let clients = open::Clients::open(gate.address(), clients, &Inserts::default())?;
            return Ok(Self::Open { clients, rate });
        }
        let (all, busy) = load.clients();
        let mut clients = Clients::open(gate.address(), all)?;
        clients.prepare(busy, &*Checked::new(load, 0).dynamic())?;
        Ok(Self::Closed { clients, busy })
    }

    fn offer(&mut self, time: Duration, seed: u64, job: &Arc<dyn Job>) -> Result<Report> {
        match self {
            Self::Closed { clients, busy } => clients.run(*busy, time, job),
            Self::Open { clients, rate } => {
                let rate = f64::from(*rate);
                clients.run(&Open { rate, time, seed }, job)
            }
        }
    }
}

/// Offers a load to a way that was just opened, and keeps what came of it.
pub(super) fn measure(
    (database, gate): (&Database, &Gate),
    (run, round): (&mut Run, u32),
    (way, load, limit): (Way, Load, f64),
    times: Times,
) -> Result<()> {
    let empty = gate.resident_mib()?;
    let mut written = match load {
        Load::Flawed { .. } => flawed::prepare(gate)?,
        Load::Transactions { .. } => {
            gate.exec(TABLES)?;
            0
        }
        _ => 0,
    };
    let mut ready = Ready::open(gate, load)?;
    let mut offer = |time, first| {
        let job = Checked::new(load, first);
        let report = ready.offer(time, round.into(), &job.dynamic())?;
        job.check(&report)?;
        written += report.successes();
        anyhow::Ok(report)
    };
    offer(times.warm_up, WARM)?;
    let before = (database.server().cpu_time(), gate.cpu_time()?);
    let generator = procfs::thread_cpu_time()?;
    let arm = load.arm(way);
    let report = say::during(&arm, times.measured, || offer(times.measured, 0))?;
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / as_f64(report.requests().max(1));
    let unit = load.shape().unit();
    let mut metrics = report.metrics(unit);
    let mut add = |metric: &str, value| metrics.push((metric.to_owned(), value));
    let database_cpu = database.server().cpu_time() - before.0;
    add(&format!("database CPU us/{unit}"), micros(database_cpu));
    if let (Some(before), Some(after)) = (before.1, gate.cpu_time()?) {
        add(&format!("gateway CPU us/{unit}"), micros(after - before));
    }
    if !matches!(load, Load::Open { .. }) {
        let cpu = procfs::thread_cpu_time()? - generator;
        add(&format!("generator CPU us/{unit}"), micros(cpu));
    }
    add(&format!("generator's limit {unit}s/s"), limit);
    if let (Some((empty, _)), Some((_, peak))) = (empty, gate.resident_mib()?) {
        add("gateway MiB before", empty);
        add("gateway peak MiB", peak);
        add("server connections", as_f64(gate.connections()?));
    }
    run.add_all(round, &arm, &metrics);
    let there = match load {
        Load::Transactions { shape, .. } => whole_orders(gate, shape)?,
        _ => gate.count()?,
    };
    outcomes::all_there(written, there).context(arm)?;
    Ok(())
}

/// Returns the number of orders, each of which must have its lines.
fn whole_orders(gate: &Gate, shape: Shape) -> Result<u64> {
    let count = |sql: &str| gate.exec(sql)?.parse::<u64>().context("a count");
    let orders = count("select count(*) from orders")?;
    let whole = count(&format!(
        "select count(*) from orders o where {} = (select count(*) from lines l where l.order_id = o.id)",
        shape.lines()
    ))?;
    ensure!(
        whole == orders,
        "{orders} orders are there, {whole} of them with all of their lines and no others"
    );
    Ok(orders)
}

/// Rows whose outcomes are looked at.
enum Checked {
    Good(Arc<dyn Job>),
    Flawed(Arc<Flawed>),
}

impl Checked {
    fn new(load: Load, first: u64) -> Self {
        match load {
            Load::Flawed { mix, .. } => Self::Flawed(Arc::new(Flawed::new(mix, first))),
            Load::Transactions { shape, .. } => {
                let lines = shape.lines();
                Self::Good(Arc::new(Transactions { lines }))
            }
            _ => Self::Good(Arc::new(Inserts {
                first,
                mode: load.mode(),
            })),
        }
    }

    fn dynamic(&self) -> Arc<dyn Job> {
        match self {
            Self::Good(job) => Arc::clone(job),
            Self::Flawed(job) => Arc::clone(job) as _,
        }
    }

    fn check(&self, report: &Report) -> Result<()> {
        match self {
            Self::Good(_) => ensure!(
                report.successes() == report.requests(),
                "statements were refused: {:?}",
                report.outcomes
            ),
            Self::Flawed(job) => job.check()?,
        }
        Ok(())
    }
}
