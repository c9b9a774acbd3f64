//! The configuration as it was written. Every key is described in `windrow.example.toml`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use clap::ValueEnum;
use serde::Deserialize;
use windrow_core::Secret;

use super::secret;

/// The annotated example of a configuration file: every knob with its default.
pub const EXAMPLE: &str = include_str!("../../windrow.example.toml");

/// The whole file. All of it is optional.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    /// `[database]`
    pub database: Database,
    /// `[http]`
    pub http: Http,
    /// `[pg]`
    pub pg: Pg,
    /// `[spool]`
    pub spool: Spool,
    /// `[replicas]`
    pub replicas: Replicas,
    /// `[[replica]]`
    pub replica: Vec<Replica>,
    /// `[limits]`
    pub limits: Limit,
    /// `[log]`
    pub log: Log,
    /// `[traces]`
    pub traces: Traces,
}

/// `[database]`: where rows are written to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Database {
    /// The database's URL.
    #[serde(deserialize_with = "secret::read")]
    pub url: Option<Secret>,
    /// When clients are told of success, unless a request says otherwise.
    pub ack: Option<Ack>,
    /// True if missing tables, and columns of tables that Windrow made, are created.
    pub create_tables: Option<bool>,
    /// With `create_tables`: whether tables that Windrow did not make get columns too.
    pub extend_tables: bool,
    /// How long a write in a batch waits for a foreign lock.
    #[serde(with = "humantime_serde")]
    pub lock_wait: Option<Duration>,
    /// How long connecting may take.
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Option<Duration>,
    /// How long the keys of requests are remembered.
    #[serde(with = "humantime_serde")]
    pub idempotency_keep: Option<Duration>,
    /// Whether the outcome of a write whose connection was lost is found out.
    pub certain_outcomes: Option<bool>,
    /// Functions, as `schema.name`, that the operator answers for.
    pub trusted_functions: Vec<String>,
    /// `[database.sqlite]`
    pub sqlite: Sqlite,
}

/// When a client is told that a write has succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Ack {
    /// Once the database has committed it
    Commit,
    /// Once it is durable in the spool; the database gets it afterwards
    Spool,
}

/// `[spool]`: where writes are kept that are acknowledged before the database has them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spool {
    /// The directory of its files. Without one there is no spool.
    pub directory: Option<PathBuf>,
    /// The URL of a topic, in place of a directory. It may hold a password.
    #[serde(deserialize_with = "secret::read")]
    pub at: Option<Secret>,
    /// What may be wrong with that topic all the same.
    pub allow: Vec<String>,
    /// The most bytes that it may hold.
    pub max_bytes: Option<ByteSize>,
    /// How long its oldest entry may wait before nothing more is taken.
    #[serde(with = "humantime_serde")]
    pub max_age: Option<Duration>,
}

impl Spool {
    /// Names where it is: a directory, or the URL of a topic.
    pub fn name(&mut self, place: PathBuf) {
        (self.directory, self.at) = (None, None);
        match place.to_str().filter(|text| is_topic(text)) {
            Some(url) => self.at = Some(url.into()),
            None => self.directory = Some(place),
        }
    }
}

/// Whether a place is meant to be a topic of Kafka.
pub fn is_topic(place: &str) -> bool {
    place.starts_with("kafka:") || place.starts_with("kafkas:")
}

/// `[replicas]`: what all replicas have in common.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Replicas {
    /// When clients are answered.
    pub wait_for: WaitFor,
    /// The directory of their logs.
    pub directory: Option<PathBuf>,
    /// The URL of topics, in place of a directory: its topic's name is the beginning of theirs. It
    /// may hold a password.
    #[serde(deserialize_with = "secret::read")]
    pub at: Option<Secret>,
    /// What may be wrong with these topics all the same.
    pub allow: Vec<String>,
    /// The most bytes that the log of each may hold.
    pub max_bytes: Option<ByteSize>,
}

/// Whom a client waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitFor {
    /// The primary alone.
    #[default]
    Primary,
    /// A majority of primary and replicas.
    Quorum,
    /// All replicas.
    All,
}

/// `[[replica]]`: a database that gets what the primary gets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replica {
    /// What it is called, in metrics and as the folder of its log.
    pub name: String,
    /// Its URL.
    #[serde(deserialize_with = "secret::read")]
    pub url: Option<Secret>,
    /// What tables are called there that have another name.
    #[serde(default)]
    pub tables: BTreeMap<String, String>,
    /// Columns that it does not get, as `table.column`.
    #[serde(default)]
    pub leave_out: Vec<String>,
}

/// `[database.sqlite]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sqlite {
    /// How often the file is synced.
    pub synchronous: Sync,
}

/// SQLite's `synchronous`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sync {
    /// At every commit.
    #[default]
    Full,
    /// At checkpoints.
    Normal,
    /// Never.
    Off,
}

/// `[pg]`: the PostgreSQL frontend. It listens where `listen` says, or not at all.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pg {
    /// Address and port.
    pub listen: Option<String>,
    /// A directory for a UNIX-domain socket besides.
    pub unix_socket_dir: Option<PathBuf>,
    /// `[pg.tls]`
    pub tls: Option<Tls>,
    /// Whether clients must use TLS.
    pub require_tls: bool,
    /// Whether writes are joined, unless a database or a session says otherwise.
    pub join: Option<bool>,
    /// What becomes of connections that have run unproven code.
    pub unproven: Option<Unproven>,
    /// The query that finds verifiers.
    pub auth_query: Option<String>,
    /// Roles that may use the console.
    pub admins: Vec<String>,
    /// The most clients.
    pub max_clients: Option<usize>,
    /// The most lanes: sets of database, role and session settings.
    pub max_lanes: Option<usize>,
    /// The most server connections of a database.
    pub max_server_connections: Option<usize>,
    /// How long one is waited for.
    #[serde(with = "humantime_serde")]
    pub server_wait: Option<Duration>,
    /// How long one is kept that nobody needs.
    #[serde(with = "humantime_serde")]
    pub server_idle: Option<Duration>,
    /// How long coming in may take.
    #[serde(with = "humantime_serde")]
    pub login_timeout: Option<Duration>,
    /// The longest message that is not COPY data.
    pub max_message: Option<ByteSize>,
    /// The most that a session may hold back until its Sync.
    pub max_pending: Option<ByteSize>,
    /// `[pg.databases.NAME]`
    pub databases: BTreeMap<String, PgDatabase>,
    /// `[pg.users.NAME]`
    pub users: BTreeMap<String, PgUser>,
}

/// `[pg.databases.NAME]`: a database that clients can name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PgDatabase {
    /// Its URL.
    #[serde(deserialize_with = "secret::read")]
    pub url: Option<Secret>,
    /// Whether writes are joined in it.
    pub join: Option<bool>,
    /// What becomes of connections that have run unproven code.
    pub unproven: Option<Unproven>,
    /// The same for sessions of roles.
    pub unproven_roles: BTreeMap<String, Unproven>,
    /// The same for what tables and functions run.
    pub unproven_objects: BTreeMap<String, Unproven>,
}

/// `pin` or `reset`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unproven {
    /// The session keeps the connection until it ends.
    Pin,
    /// The connection is reset after each transaction.
    Reset,
}

/// `[pg.users.NAME]`: a role that may come in.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PgUser {
    /// Its SCRAM verifier.
    #[serde(deserialize_with = "secret::read")]
    pub verifier: Option<Secret>,
    /// A file that holds its password at the server.
    pub server_password_file: Option<PathBuf>,
    /// Its password at the server.
    #[serde(deserialize_with = "secret::read")]
    pub server_password: Option<Secret>,
}

/// `[http]`: the HTTP frontend.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    /// Address and port.
    pub listen: Option<String>,
    /// The bearer token that clients must show.
    #[serde(deserialize_with = "secret::read")]
    pub token: Option<Secret>,
    /// A file that holds it.
    pub token_file: Option<PathBuf>,
    /// Whether other than loopback may be listened on without a token.
    pub allow_open: bool,
    /// Whether operators are shown what the database says of failed rows, with their values.
    pub show_values: bool,
    /// Names that this server may be called by without a token.
    pub hosts: Vec<String>,
    /// Tables of the database itself that are served all the same.
    pub system_tables: Vec<String>,
    /// `[http.tls]`
    pub tls: Option<Tls>,
    /// The largest body that is not streamed.
    pub max_body: Option<ByteSize>,
    /// The largest row.
    pub max_row: Option<ByteSize>,
    /// The most rows of an atomic body.
    pub max_atomic_rows: Option<usize>,
    /// How long the head of a request may take.
    #[serde(with = "humantime_serde")]
    pub header_timeout: Option<Duration>,
    /// The largest number of connections.
    pub max_connections: Option<usize>,
    /// How long a body may make no progress.
    #[serde(with = "humantime_serde")]
    pub body_timeout: Option<Duration>,
    /// How long an idle connection is kept.
    #[serde(with = "humantime_serde")]
    pub idle_timeout: Option<Duration>,
    /// Whether a read waits for what the same connection has in the spool.
    pub read_your_writes: Option<bool>,
}

/// `[http.tls]`, `[pg.tls]`: both files in PEM.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// `[limits]`: what may be traded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limit {
    /// The memory budget.
    pub memory: Option<ByteSize>,
    /// The most rows in a batch.
    pub batch_rows: Option<usize>,
    /// The most bytes in a batch.
    pub batch_bytes: Option<ByteSize>,
    /// The most connections that write at once.
    pub flights: Option<usize>,
    /// How long a write may be held back for company.
    #[serde(with = "humantime_serde")]
    pub max_wait: Option<Duration>,
    /// How long a connection is kept that no batch needs.
    #[serde(with = "humantime_serde")]
    pub idle_close: Option<Duration>,
    /// How long writes wait for a database that is away.
    #[serde(with = "humantime_serde")]
    pub away_wait: Option<Duration>,
    /// How long the end waits for what was accepted.
    #[serde(with = "humantime_serde")]
    pub stop_wait: Option<Duration>,
}

/// `[log]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// A level, or a filter as of `tracing-subscriber`'s `EnvFilter`.
    pub filter: Option<String>,
    /// Whether a line is JSON.
    pub json: bool,
}

/// `[traces]`: where spans go.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Traces {
    /// The URL of a collector. Without one nothing is traced. It may hold a password.
    #[serde(deserialize_with = "secret::read")]
    pub endpoint: Option<Secret>,
    /// The part of the requests that are traced where their clients do not say.
    pub ratio: Option<f64>,
    /// What this gateway is called in traces.
    pub service_name: Option<String>,
    /// Headers of each request to the collector, as `name=value,name=value`. They may hold a key.
    #[serde(deserialize_with = "secret::read")]
    pub headers: Option<Secret>,
}
