//! Bulks of rows to a primary and its replicas: forwarded row by row and in batches; and what it
//! costs clients to wait for replicas.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use rand::SeedableRng;
use rand::distr::{Alphanumeric, SampleString};
use rand::rngs::StdRng;
use tempfile::TempDir;

use super::measure::{Bed, Offer};
use crate::figures::{LIMIT, Meter, Metrics, Run, in_turn};
use crate::generator::{Inserts, Style, limit, stream};
use crate::number::as_f64;
use crate::say;
use crate::servers::{Driver, Kind, Param, Store, Table};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Replicas {
    /// Numbers of replicas beside the primary.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    pub replicas: Vec<usize>,
    /// Rows that are forwarded in batches.
    #[arg(long, default_value_t = 50_000)]
    pub rows: u64,
    /// Rows that are forwarded one by one.
    #[arg(long, default_value_t = 10_000)]
    pub single_rows: u64,
    /// Rows of a bulk.
    #[arg(long, default_value_t = 1_000)]
    pub bulk: u64,
    /// Bytes of the random text in each row.
    #[arg(long, default_value_t = 512)]
    pub bytes: usize,
    /// Connections of the clients that send single rows.
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Milliseconds of each measurement with them.
    #[arg(long, default_value_t = 3_000)]
    pub cell_ms: u64,
    /// Milliseconds before each of them, in which the same is done; bulks have one before.
    #[arg(long, default_value_t = 1_000)]
    pub warm_up_ms: u64,
    /// Alternating repetitions: every second one goes from the last measurement to the first.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    /// A program writes each bulk to the primary, and each of its rows to each replica.
    RowByRow(usize),
    /// Windrow is sent the bulks.
    Batches(usize),
    /// Clients send single rows, and wait for none or for some of the replicas.
    Clients(usize, Option<&'static str>),
}

const TIMES: &str = "times row by row";

/// A figure that others have published, of a primary and one replica.
const PUBLISHED: f64 = 2.0;

impl Cell {
    fn arm(self) -> String {
        let with = |n| match n {
            1 => "1 replica".to_owned(),
            n => format!("{n} replicas"),
        };
        match self {
            Self::RowByRow(n) => format!("row by row, {}", with(n)),
            Self::Batches(n) => format!("batches, {}", with(n)),
            Self::Clients(_, None) => "clients, no replica".to_owned(),
            Self::Clients(n, Some(wait_for)) => {
                format!("clients, {}, wait_for = {wait_for}", with(n))
            }
        }
    }

    fn replicas(self) -> usize {
        match self {
            Self::RowByRow(n) | Self::Batches(n) | Self::Clients(n, _) => n,
        }
    }
}

/// The timeout of replicas to have all rows.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(300);

/// A primary and its replicas, each a server of its own.
struct Servers {
    primary: Store,
    replicas: Vec<Store>,
}

/// Empty tables on some of them, and where Windrow keeps its logs.
struct Set {
    primary: Table,
    replicas: Vec<Table>,
    folder: TempDir,
}

impl Servers {
    fn start(replicas: usize) -> Result<Self> {
        let start = |_| Store::start(Kind::Postgres);
        Ok(Self {
            primary: start(0)?,
            replicas: (0..replicas).map(start).collect::<Result<_>>()?,
        })
    }

    fn set(&self, replicas: usize) -> Result<Set> {
        let tables = self.replicas.iter().take(replicas).map(Store::table);
        Ok(Set {
            primary: self.primary.table()?,
            replicas: tables.collect::<Result<_>>()?,
            folder: tempfile::tempdir()?,
        })
    }
}

impl Set {
    fn windrow(&self, wait_for: &str) -> Result<Bed> {
        let config = self.config(wait_for)?;
        let config = config.to_str().context("a folder's name")?;
        Bed::before(self.primary.clone(), &["--config", config])
    }

    fn config(&self, wait_for: &str) -> Result<PathBuf> {
        let path = self.folder.path().join("windrow.toml");
        let logs = self.folder.path().join("logs");
        let mut text = format!("[replicas]\nwait_for = {wait_for:?}\ndirectory = {logs:?}\n");
        for (number, replica) in self.replicas.iter().enumerate() {
            let url = &replica.url;
            text.push_str(&format!(
                "[[replica]]\nname = \"r{number}\"\nurl = {url:?}\n"
            ));
        }
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// Waits until all replicas have so many rows.
    fn level(&self, rows: u64) -> Result<()> {
        let start = Instant::now();
        for replica in &self.replicas {
            while replica.count()? < rows {
                ensure!(start.elapsed() < CATCH_UP_TIMEOUT, "a replica lacks rows");
                thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }
}

/// Random texts, the same in every run.
struct Texts {
    rng: StdRng,
    bytes: usize,
}

impl Texts {
    fn next(&mut self) -> String {
        Alphanumeric.sample_string(&mut self.rng, self.bytes)
    }
}

impl Replicas {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started, or a row is refused.
    pub fn run(&self, root: &Path) -> Result<()> {
        let mut run = Run::new(
            "replicas",
            format!(
                "Bulks of {} rows with {} random bytes to a PostgreSQL primary and its replicas",
                self.bulk, self.bytes
            ),
        );
        let most = self.replicas.iter().copied().max();
        let most = most.context("--replicas names none")?;
        let servers = Servers::start(most)?;
        servers.primary.report_version(&mut run)?;
        let cells = self.cells(most);
        for round in 1..=self.rounds {
            let mut bulks = Vec::new();
            for cell in in_turn(round, &cells) {
                let rate = self.measure(&servers, (&mut run, round), cell)?;
                bulks.push((cell, rate));
            }
            add_times((&mut run, round), &bulks);
        }
        self.conclude(&mut run, most)?;
        run.store(root)?;
        Ok(())
    }

    fn cells(&self, most: usize) -> Vec<Cell> {
        let bulks = self.replicas.iter();
        let bulks = bulks.flat_map(|n| [Cell::RowByRow(*n), Cell::Batches(*n)]);
        let waits = [None, Some("primary"), Some("quorum"), Some("all")];
        let clients = waits.map(|wait_for| Cell::Clients(most, wait_for));
        bulks.chain(clients).collect()
    }

    /// Gives the rows a second.
    fn measure(&self, servers: &Servers, (run, round): (&mut Run, u32), cell: Cell) -> Result<f64> {
        let set = servers.set(cell.replicas())?;
        let arm = cell.arm();
        let metrics = say::during(&arm, Duration::from_secs(5), || match cell {
            Cell::RowByRow(_) => self.row_by_row(&set),
            Cell::Batches(_) => self.batches(&set),
            Cell::Clients(_, wait_for) => self.clients(&set, wait_for),
        })?;
        run.add_all(round, &arm, &metrics);
        Ok(metrics.get("rows/s").unwrap_or(0.0))
    }

    fn texts(&self) -> Texts {
        Texts {
            rng: StdRng::seed_from_u64(1),
            bytes: self.bytes,
        }
    }

    /// Each bulk is one statement at the primary; then each of its rows is a prepared upsert and a
    /// commit of its own, at all replicas at once. The rows need not be read at the primary first,
    /// which Windrow has to do.
    fn row_by_row(&self, set: &Set) -> Result<Metrics> {
        let mut texts = self.texts();
        let notes: Vec<String> = (0..self.bulk + self.single_rows)
            .map(|_| texts.next())
            .collect();
        let (warm_up, measured) = notes.split_at(usize::try_from(self.bulk)?);
        let mut forwarding = Forwarding::connect(set)?;
        forwarding.bulk(0, warm_up)?;
        let start = Instant::now();
        for (number, bulk) in (1..).zip(measured.chunks(usize::try_from(self.bulk.max(1))?)) {
            forwarding.bulk(number * self.bulk, bulk)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        set.level(self.bulk + self.single_rows)?;
        Ok(Metrics::new().with("rows/s", as_f64(self.single_rows) / seconds))
    }

    /// From the first byte of the first bulk until all replicas have all rows.
    fn batches(&self, set: &Set) -> Result<Metrics> {
        let bed = set.windrow("primary")?;
        let mut texts = self.texts();
        let mut bodies = Vec::new();
        for first in (0..self.bulk + self.rows).step_by(usize::try_from(self.bulk.max(1))?) {
            let mut body = String::new();
            for id in first..(first + self.bulk).min(self.bulk + self.rows) {
                let note = texts.next();
                body.push_str(&format!(
                    "{{\"id\":{id},\"device\":1,\"at\":\"2026-01-01T00:00:00Z\",\"note\":\"{note}\"}}\n"
                ));
            }
            bodies.push(body.into_bytes());
        }
        let send = |body: Vec<u8>| {
            let (target, kind) = (
                "POST /v1/tables/readings/rows?results=none",
                "application/x-ndjson",
            );
            let length = Some(body.len() as u64);
            let address = bed.windrow.address();
            stream::send(address, target, kind, length, Cursor::new(body))?.succeeded(200)
        };
        let mut bodies = bodies.into_iter();
        bodies.next().map(send).transpose()?;
        set.level(self.bulk)?;
        let meter = Meter::new("row").of("windrow", || bed.windrow.cpu_time().ok());
        let start = Instant::now();
        bodies.try_for_each(|body| send(body).map(drop))?;
        set.level(self.bulk + self.rows)?;
        let rate = as_f64(self.rows) / start.elapsed().as_secs_f64();
        Ok(Metrics::new()
            .with("rows/s", rate)
            .and(meter.metrics(self.rows)))
    }

    /// Clients that send single rows, each the next once it is answered.
    fn clients(&self, set: &Set, wait_for: Option<&str>) -> Result<Metrics> {
        let bed = match wait_for {
            Some(wait_for) => set.windrow(wait_for)?,
            None => Bed::before(set.primary.clone(), &[])?,
        };
        let offer = Offer {
            warm_up: Duration::from_millis(self.warm_up_ms),
            ..Offer::closed(
                "clients",
                self.connections,
                Duration::from_millis(self.cell_ms),
            )
        };
        let job = |first| Arc::new(Inserts::from(Style::Http, first)) as _;
        let measured = offer.measure(&bed.target(), |meter| meter, job)?;
        let ended = Instant::now();
        let mut until_level = None;
        if wait_for.is_some() {
            set.level(measured.written())?;
            until_level = Some(ended.elapsed().as_secs_f64());
        }
        measured.check(&set.primary)?;
        let limit = limit::of_rows(self.connections, Style::Http)?;
        Ok(measured
            .metrics
            .maybe("s until level", until_level)
            .with(LIMIT, limit))
    }

    fn conclude(&self, run: &mut Run, most: usize) -> Result<()> {
        for n in &self.replicas {
            let arm = Cell::Batches(*n).arm();
            if *n == 1 {
                run.published(&arm, TIMES, PUBLISHED);
            }
            let times = run.median(&arm, TIMES)?;
            run.remark(format!(
                "{arm}: {times:.1} times the rows a second of row by row"
            ));
        }
        let none = run.median(&Cell::Clients(most, None).arm(), "rows/s")?;
        for wait_for in ["primary", "quorum", "all"] {
            let arm = Cell::Clients(most, Some(wait_for)).arm();
            let share = run.median(&arm, "rows/s")? / none;
            run.remark(format!(
                "{arm}: {share:.2} of the rows a second without replicas"
            ));
        }
        run.remark("what was published is of CrateDB, whose nodes forward bulks among each other");
        Ok(())
    }
}

/// Adds how much faster batches are in the same round.
fn add_times((run, round): (&mut Run, u32), rates: &[(Cell, f64)]) {
    for (cell, rate) in rates {
        let Cell::Batches(n) = cell else { continue };
        let single = rates.iter().find(|(cell, _)| *cell == Cell::RowByRow(*n));
        if let Some((_, single)) = single {
            run.add(round, &cell.arm(), TIMES, rate / single);
        }
    }
}

/// The program that forwards row by row: a connection to each database.
struct Forwarding {
    primary: Driver,
    replicas: Vec<Driver>,
}

const INTO: &str = "insert into readings (id, device, at, note)";

impl Forwarding {
    fn connect(set: &Set) -> Result<Self> {
        let replicas = set.replicas.iter().map(Driver::connect);
        Ok(Self {
            primary: Driver::connect(&set.primary)?,
            replicas: replicas.collect::<Result<_>>()?,
        })
    }

    /// Writes rows of these texts, numbered from `first`: to the primary at once, and to each
    /// replica one by one.
    fn bulk(&mut self, first: u64, notes: &[String]) -> Result<()> {
        let at = "timestamptz '2026-01-01T00:00:00Z'";
        let rows: Vec<String> = (first..)
            .zip(notes)
            .map(|(id, note)| format!("({id}, 1, {at}, '{note}')"))
            .collect();
        self.primary
            .run(&format!("{INTO} values {}", rows.join(", ")))?;
        let upsert = format!(
            "{INTO} values ($1, 1, {at}, $2) on conflict (id) do update \
             set device = excluded.device, at = excluded.at, note = excluded.note"
        );
        let one_by_one = |replica: &mut Driver| {
            for (id, note) in (i64::try_from(first)?..).zip(notes) {
                replica.execute(&upsert, &[Param::Int(id), Param::Text(note.clone())])?;
            }
            anyhow::Ok(())
        };
        thread::scope(|scope| {
            let one_by_one = &one_by_one;
            let writers: Vec<_> = self
                .replicas
                .iter_mut()
                .map(|replica| scope.spawn(move || one_by_one(replica)))
                .collect();
            for writer in writers {
                writer.join().map_err(|_| anyhow!("a writer panicked"))??;
            }
            Ok(())
        })
    }
}
