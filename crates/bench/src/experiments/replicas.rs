//! Two replicas: the same rows in batches and row by row, and what it costs clients to wait.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use tempfile::TempDir;
use tokio_postgres::NoTls;
use windrow_testkit::postgres::psql;
use windrow_testkit::process::Windrow;

use super::load::{check, latencies};
use crate::figures::{LIMIT, Run};
use crate::http::closed::{self, Closed, Until};
use crate::http::report::as_f64;
use crate::http::{Inserts, Job, Live, stream};
use crate::limit;
use crate::reading::{AT, NOTE, Reading};
use crate::say;
use crate::servers::{self, Kind, Store, Table};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Replicas {
    /// Rows that each replica gets in batches.
    #[arg(long, default_value_t = 100_000)]
    pub rows: u64,
    /// Rows that each replica gets one by one.
    #[arg(long, default_value_t = 10_000)]
    pub single_rows: u64,
    /// Connections of the clients that send single rows.
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Seconds of each measurement with them.
    #[arg(long, default_value_t = 5)]
    pub seconds: u64,
    /// Alternating repetitions.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
}

const SINGLE: &str = "row by row";
const CATCHING_UP: &str = "batches, catching up";
const WRITING: &str = "batches, while they are written";
const NONE: &str = "clients, no replica";
const WAITS: [(&str, &str); 3] = [
    ("clients, wait_for = primary", "primary"),
    ("clients, wait_for = quorum", "quorum"),
    ("clients, wait_for = all", "all"),
];

/// How long replicas may take to have all.
const PATIENCE: Duration = Duration::from_secs(300);

/// A primary and its two replicas, each a server of its own.
struct Servers {
    primary: Store,
    replicas: [Store; 2],
}

/// Empty tables on all of them, and where Windrow keeps its logs.
struct Set {
    primary: Table,
    replicas: [Table; 2],
    folder: TempDir,
}

impl Servers {
    fn set(&self) -> Result<Set> {
        let [one, two] = &self.replicas;
        Ok(Set {
            primary: self.primary.table()?,
            replicas: [one.table()?, two.table()?],
            folder: tempfile::tempdir()?,
        })
    }
}

impl Set {
    fn windrow(&self, wait_for: &str) -> Result<Windrow> {
        let config = self.config(wait_for)?;
        let config = config.to_str().context("a folder's name")?;
        servers::windrow(&self.primary.url(), &["--config", config])
    }

    fn config(&self, wait_for: &str) -> Result<PathBuf> {
        let path = self.folder.path().join("windrow.toml");
        let logs = self.folder.path().join("logs");
        let mut text = format!("[replicas]\nwait_for = {wait_for:?}\ndirectory = {logs:?}\n");
        for (number, replica) in self.replicas.iter().enumerate() {
            let url = replica.url();
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
                ensure!(start.elapsed() < PATIENCE, "a replica lacks rows");
                thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
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
            "Two PostgreSQL replicas of a PostgreSQL primary",
        );
        let start = || Store::start(Kind::Postgres);
        let servers = Servers {
            primary: start()?,
            replicas: [start()?, start()?],
        };
        servers.primary.tell_version(&mut run)?;
        for round in 1..=self.rounds {
            self.single(&servers, &mut run, round)?;
            self.catching_up(&servers, &mut run, round)?;
            self.writing(&servers, &mut run, round)?;
            self.clients(&servers, &mut run, round, NONE, None)?;
            for (arm, wait_for) in WAITS {
                self.clients(&servers, &mut run, round, arm, Some(wait_for))?;
            }
        }
        let single = run.median(SINGLE, "rows/s")?;
        for arm in [CATCHING_UP, WRITING] {
            let times = run.median(arm, "rows/s")? / single;
            run.remark(format!(
                "{arm}: {times:.1} times the rows per second of {SINGLE}"
            ));
        }
        for (arm, _) in WAITS {
            let share = run.median(arm, "rows/s")? / run.median(NONE, "rows/s")?;
            run.remark(format!(
                "{arm}: {share:.2} of the rows per second without replicas"
            ));
        }
        run.store(root)?;
        Ok(())
    }

    /// Each row a prepared upsert and a commit of its own, at both replicas at once. The rows need
    /// not be read at the primary first, which Windrow has to do.
    fn single(&self, servers: &Servers, run: &mut Run, round: u32) -> Result<()> {
        let set = servers.set()?;
        let start = Instant::now();
        say::during(SINGLE, Duration::from_secs(10), || {
            let writers = set.replicas.each_ref().map(|replica| {
                let (url, rows) = (replica.url(), self.single_rows);
                thread::spawn(move || one_by_one(&url, rows))
            });
            for writer in writers {
                writer.join().map_err(|_| anyhow!("a writer panicked"))??;
            }
            set.level(self.single_rows)
        })?;
        let rate = as_f64(self.single_rows) / start.elapsed().as_secs_f64();
        run.add_all(round, SINGLE, &[("rows/s", rate)]);
        Ok(())
    }

    /// The rows are at the primary already: Windrow is started and brings them to both.
    fn catching_up(&self, servers: &Servers, run: &mut Run, round: u32) -> Result<()> {
        let set = servers.set()?;
        let rows = self.rows;
        psql(
            &set.primary.url(),
            &format!(
                "insert into readings select n, n % 1000, '{AT}', 15 + (n % 100) / 10.0, '{NOTE}' \
                 from generate_series(0, {rows} - 1) n; vacuum analyze readings"
            ),
        )?;
        let start = Instant::now();
        let windrow = set.windrow("primary")?;
        say::during(CATCHING_UP, Duration::from_secs(5), || set.level(rows))?;
        self.tell(&windrow, run, (round, CATCHING_UP), start.elapsed())
    }

    /// From the first byte of one body of them until both replicas have them.
    fn writing(&self, servers: &Servers, run: &mut Run, round: u32) -> Result<()> {
        let set = servers.set()?;
        let windrow = set.windrow("primary")?;
        let mut body = Vec::new();
        for id in 0..self.rows {
            Reading::new(id).json(&mut body);
            body.push(b'\n');
        }
        let start = Instant::now();
        say::during(WRITING, Duration::from_secs(5), || {
            let length = Some(body.len() as u64);
            let target = "/v1/tables/readings/rows?results=none";
            let body = Cursor::new(body);
            let kind = "application/x-ndjson";
            let reply = stream::post(windrow.address(), target, kind, length, body)?;
            ensure!(reply.status == 200, "{} {}", reply.status, reply.body);
            set.level(self.rows)
        })?;
        self.tell(&windrow, run, (round, WRITING), start.elapsed())
    }

    fn tell(
        &self,
        windrow: &Windrow,
        run: &mut Run,
        (round, arm): (u32, &str),
        elapsed: Duration,
    ) -> Result<()> {
        let rows = as_f64(self.rows);
        let metrics = [
            ("rows/s", rows / elapsed.as_secs_f64()),
            (
                "windrow CPU us/row",
                windrow.cpu_time()?.as_secs_f64() * 1e6 / rows,
            ),
        ];
        run.add_all(round, arm, &metrics);
        Ok(())
    }

    /// Clients that send single rows, each the next once it is answered.
    fn clients(
        &self,
        servers: &Servers,
        run: &mut Run,
        round: u32,
        arm: &str,
        wait_for: Option<&str>,
    ) -> Result<()> {
        let set = servers.set()?;
        let windrow = match wait_for {
            Some(wait_for) => set.windrow(wait_for)?,
            None => servers::windrow(&set.primary.url(), &[])?,
        };
        let offer = |seconds, first| {
            let load = Closed {
                connections: self.connections,
                until: Until::Elapsed(Duration::from_secs(seconds)),
            };
            let job: Arc<dyn Job> = Arc::new(Inserts::from(first));
            closed::run(windrow.address(), &load, &job, &Arc::new(Live::default()))
        };
        let warm = offer(1, 50_000_000)?;
        let time = Duration::from_secs(self.seconds);
        let report = say::during(arm, time, || offer(self.seconds, 0))?;
        let mut metrics = latencies(&report);
        let ended = Instant::now();
        if wait_for.is_some() {
            set.level(warm.successes() + report.successes())?;
            metrics.push(("s until level", ended.elapsed().as_secs_f64()));
        }
        metrics.push((LIMIT, limit::of_http(self.connections)?));
        run.add_all(round, arm, &metrics);
        check(&report, &set.primary, warm.successes())
    }
}

fn one_by_one(url: &str, rows: u64) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        let text = format!(
            "insert into readings values ($1, $2, '{AT}', $3, '{NOTE}') on conflict (id) do update \
             set device = excluded.device, at = excluded.at, temperature = excluded.temperature, note = excluded.note"
        );
        let upsert = client.prepare(&text).await?;
        for id in 0..rows {
            let reading = Reading::new(id);
            let (id, device) = (i64::try_from(id)?, i32::try_from(reading.device())?);
            let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
                [&id, &device, &reading.temperature()];
            client.execute(&upsert, &values).await?;
        }
        Ok(())
    })
}
