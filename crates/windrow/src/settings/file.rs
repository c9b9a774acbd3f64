//! The configuration as it is written. `windrow.example.toml` describes every key.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use clap::ValueEnum;
use serde::Deserialize;
use windrow_core::Secret;
use windrow_http::Right;

use super::secret;
use super::section::section;

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
    /// `[mysql]`
    pub mysql: MysqlSection,
    /// `[mqtt]`
    pub mqtt: MqttSection,
    /// `[pg]`
    pub pg: Pg,
    /// `[spool]`
    pub spool: Spool,
    /// `[replicas]`
    pub replicas: Replicas,
    /// `[[replica]]`
    pub replica: Vec<WrittenReplica>,
    /// `[limits]`
    pub limits: Limit,
    /// `[log]`
    pub log: Log,
    /// `[traces]`
    pub traces: Traces,
}

section! {
    /// `[database]`: where rows are written to.
    #[derive(Clone, Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    Database {
        #[serde(deserialize_with = "secret::read")]
        url: Option<Secret> { "URL of the database", secret },
        ack: Option<WrittenAck> { "Moment of success for clients: `commit`, or `spool`" },
        create_tables: Option<bool> { "True if tables and columns are made from rows; types never change" },
        extend_tables: bool { "True if tables that Windrow did not make get columns too" },
        received_at: Option<String> { "Column of new tables with the time of arrival at the database" },
        #[serde(with = "humantime_serde")]
        lock_wait: Option<Duration> { "Time that a batch waits for a lock" },
        #[serde(with = "humantime_serde")]
        connect_timeout: Option<Duration> { "Time limit for opening a connection" },
        #[serde(with = "humantime_serde")]
        idempotency_keep: Option<Duration> { "Life of idempotency keys" },
        certain_outcomes: Option<bool> { "True if Windrow [finds out](operations.md#unknown-outcomes) unknown outcomes" },
        trusted_functions: Vec<String> { "Functions that you declare harmless" },
        sqlite: Sqlite { "`[database.sqlite]`", section },
    }
}

/// The moment at which a client gets success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum WrittenAck {
    /// Once the database has committed it
    Commit,
    /// Once it is durable in the spool; the database gets it afterwards
    Spool,
}

section! {
    /// `[spool]`: where writes are kept that are acknowledged before the database has them.
    #[derive(Clone, Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    Spool {
        directory: Option<PathBuf> { "Directory of the spool" },
        #[serde(deserialize_with = "secret::read")]
        at: Option<Secret> { "Topic of Kafka in place of a directory", secret },
        allow: Vec<String> { "Accepted weaknesses of the topic" },
        max_bytes: Option<ByteSize> { "Most bytes of the spool" },
        #[serde(with = "humantime_serde")]
        max_age: Option<Duration> { "Age of the oldest write at which it takes no more" },
    }
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

/// Returns true if a place is meant to be a topic of Kafka.
pub fn is_topic(place: &str) -> bool {
    place.starts_with("kafka:") || place.starts_with("kafkas:")
}

section! {
    /// `[replicas]`: what all replicas have in common.
    #[derive(Clone, Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    Replicas {
        wait_for: WrittenWaitFor { "Databases that clients wait for: `primary`, `quorum` or `all`" },
        directory: Option<PathBuf> { "Directory of the replicas' logs" },
        #[serde(deserialize_with = "secret::read")]
        at: Option<Secret> { "Topics of Kafka in place of a directory", secret },
        allow: Vec<String> { "Accepted weaknesses of these topics" },
        max_bytes: Option<ByteSize> { "Most bytes of each log in files" },
    }
}

/// Whom a client waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WrittenWaitFor {
    /// The primary alone.
    #[default]
    Primary,
    /// A majority of primary and replicas.
    Quorum,
    /// All replicas.
    All,
}

section! {
    /// `[[replica]]`: a database that gets what the primary gets.
    #[derive(Clone, Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    WrittenReplica {
        name: String { "Name of a replica" },
        #[serde(deserialize_with = "secret::read")]
        url: Option<Secret> { "URL of the replica", secret },
        #[serde(default)]
        tables: BTreeMap<String, String> { "Tables with another name at the replica" },
        #[serde(default)]
        leave_out: Vec<String> { "Columns that the replica does not get" },
    }
}

section! {
    /// `[database.sqlite]`
    #[derive(Clone, Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    Sqlite {
        synchronous: Sync { "Safety against power loss, against speed" },
    }
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

section! {
    /// `[mysql]`: the MySQL frontend. It listens where `listen` says, or not at all.
    #[derive(Clone, Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    MysqlSection {
        listen: Option<String> { "Address and port, or a local port" },
        unix_socket: Option<PathBuf> { "Path of a UNIX-domain socket" },
        tls: Option<WrittenTls> { "`[mysql.tls]`", section },
        require_tls: bool { "True if clients must use TLS" },
        join: Option<bool> { "True if writes are joined" },
        max_clients: Option<usize> { "Most clients" },
        max_lanes: Option<usize> { "Most lanes" },
        max_server_connections: Option<usize> { "Most server connections" },
        #[serde(with = "humantime_serde")]
        server_wait: Option<Duration> { "Longest wait for a server connection" },
        #[serde(with = "humantime_serde")]
        login_timeout: Option<Duration> { "Time limit for logging in" },
        users: BTreeMap<String, MysqlUser> { "`[mysql.users.NAME]`", section },
    }
}

section! {
    /// `[mysql.users.NAME]`: a user that is admitted.
    #[derive(Clone, Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    MysqlUser {
        #[serde(deserialize_with = "secret::read")]
        verifier: Option<Secret> { "Verifier of a user's password", reload, secret },
        #[serde(deserialize_with = "secret::read")]
        server_password: Option<Secret> { "Password of the user at the server", reload, secret },
    }
}

section! {
    /// `[mqtt]`: topics of a broker that are written as rows. It is off unless `url` is set.
    #[derive(Clone, Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    MqttSection {
        #[serde(deserialize_with = "secret::read")]
        url: Option<Secret> { "URL of an MQTT broker: `mqtt://` or `mqtts://`", secret },
        ca: Option<PathBuf> { "Certificates to check the broker's by, PEM" },
        client_id: Option<String> { "Name of this gateway at the broker" },
        #[serde(with = "humantime_serde")]
        keep_session: Option<Duration> { "Time that the broker keeps messages" },
        window: Option<u16> { "Most unacknowledged messages" },
        max_message: Option<ByteSize> { "Longest message" },
        topics: BTreeMap<String, MqttTopic> { "`[mqtt.topics.NAME]`", section },
    }
}

section! {
    /// `[mqtt.topics.NAME]`: what becomes of the messages of some topics.
    #[derive(Clone, Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    MqttTopic {
        topic: Option<String> { "Topics, with `{column}` for values" },
        table: Option<String> { "Table of the rows" },
        on_conflict: Option<WrittenConflict> { "Action for a row whose key exists: `ignore`, `update` or `error`" },
        ack: Option<WrittenAck> { "As `database.ack`, for these messages" },
    }
}

/// `ignore`, `update` or `error`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WrittenConflict {
    /// The row is left out.
    Ignore,
    /// The row that is there gets the new values.
    Update,
    /// The row becomes a dead letter.
    Error,
}

section! {
    /// `[pg]`: the PostgreSQL frontend. It listens where `listen` says, or not at all.
    #[derive(Clone, Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    Pg {
        listen: Option<String> { "Address and port, or a local port" },
        unix_socket_dir: Option<PathBuf> { "Directory of a UNIX-domain socket" },
        tls: Option<WrittenTls> { "`[pg.tls]`", section },
        require_tls: bool { "True if clients must use TLS" },
        join: Option<bool> { "True if writes are joined" },
        unproven: Option<Unproven> { "Treatment of unproven code: `pin` or `reset`" },
        auth_query: Option<String> { "Query that finds verifiers", reload, secret },
        admins: Vec<String> { "Roles that may use the console", reload },
        max_clients: Option<usize> { "Most clients" },
        max_lanes: Option<usize> { "Most lanes" },
        max_server_connections: Option<usize> { "Most connections to each database" },
        #[serde(with = "humantime_serde")]
        server_wait: Option<Duration> { "Longest wait for a server connection" },
        #[serde(with = "humantime_serde")]
        server_idle: Option<Duration> { "Life of idle server connections" },
        #[serde(with = "humantime_serde")]
        login_timeout: Option<Duration> { "Time limit for logging in" },
        max_message: Option<ByteSize> { "Longest message that is not COPY data" },
        max_pending: Option<ByteSize> { "Most bytes held back until Sync" },
        databases: BTreeMap<String, PgDatabase> { "`[pg.databases.NAME]`", section },
        users: BTreeMap<String, PgUser> { "`[pg.users.NAME]`", section },
    }
}

section! {
    /// `[pg.databases.NAME]`: a database that clients can name.
    #[derive(Clone, Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    PgDatabase {
        #[serde(deserialize_with = "secret::read")]
        url: Option<Secret> { "URL of another database", secret },
        join: Option<bool> { "True if its writes are joined" },
        unproven: Option<Unproven> { "As `pg.unproven`" },
        unproven_roles: BTreeMap<String, Unproven> { "The same by role" },
        unproven_objects: BTreeMap<String, Unproven> { "The same by table or function" },
    }
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

section! {
    /// `[pg.users.NAME]`: a role that may come in.
    #[derive(Clone, Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    PgUser {
        #[serde(deserialize_with = "secret::read")]
        verifier: Option<Secret> { "SCRAM verifier of a role", reload, secret },
        server_password_file: Option<PathBuf> { "File with the role's password at the server", reload },
        #[serde(deserialize_with = "secret::read")]
        server_password: Option<Secret> { "Password of the role at the server", reload, secret },
    }
}

section! {
    /// `[http]`: the HTTP frontend.
    #[derive(Clone, Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    Http {
        listen: Option<String> { "Address and port, a local port, or `off`" },
        #[serde(deserialize_with = "secret::read")]
        token: Option<Secret> { "Token that clients show", reload, secret },
        token_file: Option<PathBuf> { "File with the token", reload },
        tokens: BTreeMap<String, NamedToken> { "`[http.tokens.NAME]`", section },
        allow_open: bool { "True if no token is needed beyond loopback" },
        show_values: bool { "True if messages about failed rows are shown" },
        hosts: Vec<String> { "Names of this server, if no token is set" },
        system_tables: Vec<String> { "Tables of the database itself that are served" },
        tls: Option<WrittenTls> { "`[http.tls]`", section },
        max_body: Option<ByteSize> { "Largest body that is not streamed" },
        max_row: Option<ByteSize> { "Largest row" },
        max_atomic_rows: Option<usize> { "Most rows of an atomic body" },
        #[serde(with = "humantime_serde")]
        header_timeout: Option<Duration> { "Time limit for the head of a request" },
        max_connections: Option<usize> { "Most connections" },
        #[serde(with = "humantime_serde")]
        body_timeout: Option<Duration> { "Time that a body may make no progress" },
        #[serde(with = "humantime_serde")]
        idle_timeout: Option<Duration> { "Life of idle connections" },
        read_your_writes: Option<bool> { "True if reads wait for rows in the spool" },
    }
}

section! {
    /// `[http.tokens.NAME]`: a token that may do some things.
    #[derive(Clone, Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    NamedToken {
        #[serde(deserialize_with = "secret::read")]
        token: Option<Secret> { "Another token", reload, secret },
        rights: Vec<Right> { "Its rights: `read`, `insert`, `update`, `delete`, `metrics`", reload },
        tables: Vec<String> { "Its tables; all if none is named", reload },
    }
}

section! {
    /// `[http.tls]`, `[pg.tls]`: both files in PEM.
    #[derive(Clone, Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    WrittenTls {
        certificate: PathBuf { "Certificate chain, PEM", reload },
        key: PathBuf { "Private key, PEM", reload },
    }
}

section! {
    /// `[limits]`: what may be traded.
    #[derive(Clone, Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    Limit {
        memory: Option<ByteSize> { "Memory for what is not answered yet" },
        batch_rows: Option<usize> { "Most rows in a batch" },
        batch_bytes: Option<ByteSize> { "Most bytes in a batch" },
        flights: Option<usize> { "Most connections that write at once" },
        #[serde(with = "humantime_serde")]
        max_wait: Option<Duration> { "Time that a write waits for others" },
        #[serde(with = "humantime_serde")]
        idle_close: Option<Duration> { "Life of unneeded connections" },
        #[serde(with = "humantime_serde")]
        away_wait: Option<Duration> { "Time that writes wait for a database that is away" },
        #[serde(with = "humantime_serde")]
        stop_wait: Option<Duration> { "Time that the end waits for accepted writes" },
    }
}

section! {
    /// `[log]`
    #[derive(Clone, Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    Log {
        filter: Option<String> { "Level or filter of the log", reload },
        json: bool { "True for one JSON object a line" },
    }
}

section! {
    /// `[traces]`: where spans go.
    #[derive(Clone, Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    Traces {
        #[serde(deserialize_with = "secret::read")]
        endpoint: Option<Secret> { "Collector of [traces](traces.md)", secret },
        ratio: Option<f64> { "Part of the requests that is traced" },
        service_name: Option<String> { "Name of this gateway in traces" },
        #[serde(deserialize_with = "secret::read")]
        headers: Option<Secret> { "Headers for the collector", secret },
    }
}
