//! A CrateDB cluster that runs already, spoken to over HTTP.

use std::net::{SocketAddr, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use windrow_testkit::procfs;

use crate::generator::stream;
use crate::reading::CRATEDB_COLUMNS;

/// The timeout until the shards of a new table are up.
const SHARDS_TIMEOUT: Duration = Duration::from_secs(60);

/// Where a cluster is reached, and what is made there.
#[derive(Clone, Debug)]
pub struct Cluster {
    address: SocketAddr,
    replicas: u32,
    pids: Vec<u32>,
}

/// A schema of its own with a table `readings`.
#[derive(Clone, Debug)]
pub struct Schema {
    cluster: Cluster,
    name: String,
}

impl Cluster {
    /// The cluster at a `cratedb://HOST:PORT`, whose tables get so many replicas. `pids`: the
    /// processes of its nodes, where they run on this machine and their CPU time is to be
    /// counted.
    ///
    /// # Errors
    /// The URL is another one, or no address.
    pub fn at(url: &str, replicas: u32, pids: Vec<u32>) -> Result<Self> {
        let form = "write cratedb://HOST:PORT, of a cluster that asks for no password";
        let authority = url.strip_prefix("cratedb://").context(form)?;
        let authority = authority.trim_end_matches('/');
        ensure!(!authority.contains(['@', '/']), form);
        let mut addresses = authority.to_socket_addrs().context(form)?;
        Ok(Self {
            address: addresses.next().context("the host has no address")?,
            replicas,
            pids,
        })
    }

    /// Where it is reached.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// An empty table in a schema of its own, once all of its shards are up.
    ///
    /// # Errors
    /// The cluster refuses, or a shard does not come up: one node cannot hold a replica, for
    /// example.
    pub fn schema(&self) -> Result<Schema> {
        let schema = Schema {
            cluster: self.clone(),
            name: format!("bench_{:016x}", rand::random::<u64>()),
        };
        let create = format!(
            "create table {}.readings {CRATEDB_COLUMNS} with (number_of_replicas = '{}')",
            schema.name, self.replicas
        );
        self.sql(&create)?;
        let missing = format!(
            "select count(*) from sys.shards where schema_name = '{}' and state <> 'STARTED'",
            schema.name
        );
        let begun = Instant::now();
        while self.number(&missing)? > 0 {
            ensure!(
                begun.elapsed() < SHARDS_TIMEOUT,
                "the table's shards are not up after {SHARDS_TIMEOUT:?}; has the cluster a node for each replica?"
            );
            thread::sleep(Duration::from_millis(100));
        }
        Ok(schema)
    }

    /// CPU time of its nodes, where they were named.
    pub fn cpu_time(&self) -> Option<Duration> {
        let times = self.pids.iter().map(|pid| procfs::cpu_time(*pid).ok());
        let sum = times.sum::<Option<Duration>>()?;
        (!self.pids.is_empty()).then_some(sum)
    }

    /// The version of its nodes, and how many there are.
    ///
    /// # Errors
    /// It is down.
    pub fn version(&self) -> Result<String> {
        let answer = self.sql("select version['number'] from sys.nodes")?;
        let version = answer.pointer("/rows/0/0").and_then(Value::as_str);
        let nodes = answer.get("rows").and_then(Value::as_array).map(Vec::len);
        Ok(format!(
            "{}, {} nodes, {} replicas of each shard",
            version.unwrap_or("unknown"),
            nodes.unwrap_or_default(),
            self.replicas
        ))
    }

    fn number(&self, sql: &str) -> Result<u64> {
        let answer = self.sql(sql)?;
        let number = answer.pointer("/rows/0/0").and_then(Value::as_u64);
        number.context("a count")
    }

    /// One statement.
    fn sql(&self, sql: &str) -> Result<Value> {
        let body = json!({ "stmt": sql }).to_string();
        let (length, kind) = (body.len() as u64, "application/json");
        let sent = stream::send(
            self.address,
            "POST /_sql",
            kind,
            Some(length),
            body.as_bytes(),
        );
        let said = sent?.succeeded(200).with_context(|| sql.to_owned())?;
        serde_json::from_str(&said).context("CrateDB's answer")
    }
}

impl Schema {
    /// Returns Windrow's URL of the table.
    pub fn url(&self) -> String {
        format!("cratedb://{}/{}", self.cluster.address, self.name)
    }

    /// Returns the table's cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The table's full name.
    pub fn table(&self) -> String {
        format!("{}.readings", self.name)
    }

    /// Runs a statement that names its tables in full.
    ///
    /// # Errors
    /// The cluster refuses.
    pub fn execute(&self, sql: &str) -> Result<()> {
        self.cluster.sql(sql).map(drop)
    }

    /// Returns the number of rows, the last ones included.
    ///
    /// # Errors
    /// The cluster is down.
    pub fn count(&self) -> Result<u64> {
        self.execute(&format!("refresh table {}", self.table()))?;
        self.cluster
            .number(&format!("select count(*) from {}", self.table()))
    }

    /// Removes the table.
    ///
    /// # Errors
    /// The cluster refuses.
    pub fn drop_table(&self) -> Result<()> {
        self.execute(&format!("drop table {}", self.table()))
    }
}
