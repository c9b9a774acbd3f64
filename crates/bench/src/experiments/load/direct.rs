//! The same rows without Windrow, by what each database comes with.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use super::{DIRECT, Load, PREPARED, WARM, check, latencies};
use crate::baseline::{cratedb, mariadb, pgbench, slap, sqlite};
use crate::figures::Run;
use crate::http::closed::{self, Closed, Until};
use crate::http::{Job, Live};
use crate::number::as_f64;
use crate::say;
use crate::servers::cluster::Schema;
use crate::servers::{Store, Table};

/// The number of written rows, and the cost besides the database's CPU.
struct Written {
    rows: u64,
    metrics: Vec<(&'static str, f64)>,
}

impl Written {
    fn new(rows: u64, rate: f64) -> Self {
        Self {
            rows,
            metrics: vec![("rows/s", rate)],
        }
    }
}

impl Load {
    /// The usual program of each database.
    pub(super) fn direct(&self, store: &Store, run: &mut Run, round: u32) -> Result<()> {
        self.without(store, run, round, DIRECT, |table| match (table, store) {
            (Table::Postgres(url), Store::Postgres(server)) => {
                let direct = pgbench::run(server, url, self.connections, self.time())?;
                let mut written = Written::new(direct.rows, direct.rate);
                written.metrics.push(("mean ms", direct.latency_ms));
                Ok(written)
            }
            (Table::Sqlite(file), _) => {
                let written = sqlite::run(file, self.time())?;
                let rate = as_f64(written.rows) / written.elapsed.as_secs_f64();
                Ok(Written::new(written.rows, rate))
            }
            (Table::MariaDb(url), Store::MariaDb(server)) => {
                let database = url.rsplit('/').next().unwrap_or_default();
                let direct = slap::run(server, database, self.connections, self.time())?;
                Ok(Written::new(table.count()?, direct.rate))
            }
            (Table::CrateDb(schema), _) => self.cratedb(table, schema),
            _ => anyhow::bail!("a table of another database"),
        })
    }

    /// MariaDB's own best: prepared statements.
    pub(super) fn prepared(&self, store: &Store, run: &mut Run, round: u32) -> Result<()> {
        self.without(store, run, round, PREPARED, |table| {
            let direct = mariadb::run(&table.url(), self.connections, self.time())?;
            Ok(Written::new(direct.rows, direct.rate))
        })
    }

    fn without(
        &self,
        store: &Store,
        run: &mut Run,
        round: u32,
        arm: &str,
        write: impl FnOnce(&Table) -> Result<Written>,
    ) -> Result<()> {
        let table = store.table()?;
        let before = store.cpu_time();
        let mut written = say::during(arm, self.time(), || write(&table))?;
        if let (Some(before), Some(after)) = (before, store.cpu_time()) {
            let micros = (after - before).as_secs_f64() * 1e6 / as_f64(written.rows.max(1));
            written.metrics.push(("database CPU us/row", micros));
        }
        run.add_all(round, arm, &written.metrics);
        table.clear()
    }

    /// The same rows to CrateDB's own endpoint, by the same program.
    fn cratedb(&self, table: &Table, schema: &Schema) -> Result<Written> {
        let offer = |time, first| {
            let load = Closed {
                connections: self.connections,
                until: Until::Elapsed(time),
            };
            let job: Arc<dyn Job> = Arc::new(cratedb::Direct::new(&schema.table(), first));
            let address = schema.cluster().address();
            closed::run(address, &load, &job, &Arc::new(Live::default()))
        };
        let warm = offer(Duration::from_secs(1), WARM)?;
        let report = offer(self.time(), 0)?;
        check(&report, table, warm.successes())?;
        Ok(Written {
            rows: report.successes() + warm.successes(),
            metrics: latencies(&report),
        })
    }
}
