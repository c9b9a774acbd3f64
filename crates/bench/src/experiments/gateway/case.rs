//! One load over one way to the database.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::experiments::flawed::{self, Flawed, Mix};
use crate::experiments::measure::Offer;
use crate::experiments::outcomes;
use crate::figures::Run;
use crate::generator::pg::Mode;
use crate::generator::transaction::{Shape, TABLES, Transactions};
use crate::generator::{Inserts, Job, Lookups, Outcome, Schedule, Style, Until, limit};
use crate::servers::gate::{Gate, Way};
use crate::servers::{Kind, Store, Table};

/// One kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// Each client sends its next row when the last one is answered.
    Closed { clients: usize, mode: Mode },
    /// Each client reads its next row when the last one is answered.
    Read { clients: usize, mode: Mode },
    /// Each client sends the statements of its next transaction, one after the other.
    Transactions { clients: usize, shape: Shape },
    /// One row at a time again, with bad rows among them.
    Flawed { clients: usize, mix: Mix },
    /// The same, beside clients that are connected and silent.
    Connected { all: usize, busy: usize },
    /// A fixed rate of rows a second, however slow the answers are.
    Open { clients: usize, rate: u32 },
}

impl Case {
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
            }
            | Self::Read {
                clients,
                mode: Mode::Prepared,
            }
            | Self::Transactions { clients, .. } => format!("{way}, {}", of(clients)),
            Self::Closed { clients, mode } | Self::Read { clients, mode } => {
                format!("{way}, {}, {}", of(clients), mode.as_str())
            }
            Self::Flawed { clients, mix } => format!("{way}, {}, {}", of(clients), mix.name()),
            Self::Connected { all, busy } => format!("{way}, {all} connected, {busy} write"),
            Self::Open { rate, .. } => format!("{way}, {rate}/s offered"),
        }
    }

    pub(super) fn shape(self) -> Shape {
        match self {
            Self::Transactions { shape, .. } => shape,
            Self::Read { .. } => Shape::Read,
            _ => Shape::Single,
        }
    }

    pub(super) fn mode(self) -> Mode {
        match self {
            Self::Closed { mode, .. } | Self::Read { mode, .. } => mode,
            _ => Mode::Prepared,
        }
    }

    /// Returns the form of clients' statements for a database.
    fn style(self, to: Kind) -> Style {
        match to {
            Kind::MariaDb => Style::MySql(self.mode()),
            _ => Style::Pg(self.mode()),
        }
    }

    /// Returns the number of clients, and the number of those that write.
    pub(super) fn clients(self) -> (usize, usize) {
        match self {
            Self::Connected { all, busy } => (all, busy.min(all)),
            Self::Closed { clients, .. }
            | Self::Read { clients, .. }
            | Self::Transactions { clients, .. }
            | Self::Flawed { clients, .. }
            | Self::Open { clients, .. } => (clients, clients),
        }
    }

    /// Returns the calls of clients whose rows are good.
    fn job(self, style: Style, first: u64) -> Arc<dyn Job> {
        match self {
            Self::Read { .. } => Arc::new(Lookups { style }),
            Self::Transactions { shape, .. } => {
                let lines = shape.lines();
                Arc::new(Transactions { lines })
            }
            _ => Arc::new(Inserts::from(style, first)),
        }
    }

    /// A proxy that only forwards does not know how clients speak: once is enough.
    pub(super) fn tells_something(self, way: Way) -> bool {
        way != Way::Forward || self.mode() == Mode::Prepared
    }

    /// True if a way to a database has capacity for its clients.
    pub(super) fn fits(self, to: Kind, way: Way) -> Result<bool> {
        let (all, busy) = self.clients();
        way.has_room(to, all, busy, self.mode() == Mode::Prepared)
    }

    /// The generator's own limit with this load.
    pub(super) fn limit(self, to: Kind) -> Result<f64> {
        let style = self.style(to);
        match self {
            Self::Read { clients, .. } => limit::of_reads(clients, style),
            Self::Transactions { clients, shape } => {
                let lines = shape.lines();
                limit::of_transactions(clients, Transactions { lines })
            }
            Self::Closed { clients, .. } | Self::Flawed { clients, .. } => {
                limit::of_rows(clients, style)
            }
            Self::Connected { busy, .. } => limit::of_rows(busy, style),
            Self::Open { clients, .. } => limit::of_rows_at_times(clients, style),
        }
    }
}

/// The times of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) warm_up: Duration,
    pub(super) measured: Duration,
}

/// Offers a load to a way that was just opened, and keeps what came of it.
pub(super) fn measure(
    (store, gate): (&Store, &Gate),
    (run, round): (&mut Run, u32),
    (way, case, limit): (Way, Case, f64),
    times: Times,
) -> Result<()> {
    let empty = gate.resident_mib()?;
    let there = match case {
        Case::Flawed { .. } => flawed::prepare(gate.table())?,
        Case::Transactions { .. } => gate.table().query(TABLES).map(|_| 0)?,
        Case::Read { .. } => gate
            .table()
            .query(&Lookups::rows())
            .map(|_| Lookups::ROWS)?,
        _ => 0,
    };
    let (clients, busy) = case.clients();
    let (arm, unit) = (case.arm(way), case.shape().unit());
    let style = case.style(gate.table().kind);
    let offer = Offer {
        arm: arm.clone(),
        clients,
        busy,
        schedule: match case {
            Case::Open { rate, .. } => Schedule::Poisson {
                rate: rate.into(),
                seed: round.into(),
            },
            _ => Schedule::Closed,
        },
        warm_up: times.warm_up,
        until: Until::after(times.measured),
        unit,
    };
    let flawed = match case {
        Case::Flawed { mix, .. } => Some(Flawed::new(mix, style)),
        _ => None,
    };
    let job = |first| match &flawed {
        Some(flawed) => flawed.from(first),
        None => case.job(style, first),
    };
    let measured = offer.measure(
        &gate.target(),
        |meter| {
            meter
                .of("database", || store.cpu_time())
                .of("gateway", || gate.cpu_time())
        },
        job,
    )?;
    match &flawed {
        Some(flawed) => flawed.check()?,
        None => {
            measured.warm.all(Outcome::Success)?;
            measured.report.all(Outcome::Success)?;
        }
    }
    let written = match case {
        Case::Read { .. } => there,
        _ => there + measured.written(),
    };
    let mut metrics = measured
        .metrics
        .with(format!("generator's limit {unit}s/s"), limit);
    if let (Some((empty, _)), Some((_, peak))) = (empty, gate.resident_mib()?) {
        metrics = metrics
            .with("gateway MiB before", empty)
            .with("gateway peak MiB", peak)
            .maybe("server connections", gate.connections()?)
            .maybe("joined %", gate.joined_percent()?);
    }
    run.add_all(round, &arm, &metrics);
    outcomes::all_there(written, counted(gate.table(), case.shape())?).context(arm)
}

/// Returns the number of calls whose rows are there.
pub(in crate::experiments) fn counted(table: &Table, shape: Shape) -> Result<u64> {
    match shape {
        Shape::Transaction | Shape::Order => whole_orders(table, shape),
        Shape::Single | Shape::Read => table.count(),
    }
}

/// Returns the number of orders, each of which must have its lines.
fn whole_orders(table: &Table, shape: Shape) -> Result<u64> {
    let orders = table.count_of("orders")?;
    let lines = shape.lines();
    let whole = table.count_of(&format!(
        "orders o where {lines} = (select count(*) from lines l where l.order_id = o.id)"
    ))?;
    ensure!(
        whole == orders,
        "{orders} orders are there, {whole} of them with all of their lines and no others"
    );
    Ok(orders)
}
