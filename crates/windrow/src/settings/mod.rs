//! The server's configuration: a TOML file, environment variables and the command line, in
//! ascending precedence.
//!
//! There are two types, so that unchecked settings cannot be used: [`File`] holds what is written,
//! [`Settings`] what was checked and completed.

pub mod address;
pub mod check;
mod faults;
mod file;
mod keys;
mod log;
#[cfg(feature = "mqtt")]
mod mqtt;
#[cfg(not(feature = "mqtt"))]
#[path = "no_mqtt.rs"]
mod mqtt;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(not(feature = "mysql"))]
#[path = "no_mysql.rs"]
mod mysql;
mod not_after;
#[cfg(feature = "postgres")]
mod pg;
#[cfg(not(feature = "postgres"))]
#[path = "no_pg.rs"]
mod pg;
mod reading;
mod replicas;
mod secret;
mod section;
mod shown;
mod size;
mod spool;
mod tls;
mod traces;
#[cfg(any(test, fuzzing))]
pub mod trial;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use windrow_core::{Limits, Name, Secret, TableName};
use windrow_database::{Options, Synchronous};
use windrow_http::{Ack, HttpConfig, Rights, Tokens};
use windrow_sockets::Threads;

pub use file::{
    Database, EXAMPLE, File, Http, Limit, Log, MqttSection, MqttTopic, MysqlSection, MysqlUser,
    NamedToken, Pg, PgDatabase, PgUser, Replicas, Spool, Sqlite, Sync, Traces, WrittenAck,
    WrittenConflict, WrittenReplica, WrittenTls, WrittenWaitFor, is_topic,
};
pub use keys::markdown;
pub use mqtt::MqttSettings;
pub use mysql::MysqlSettings;
pub use pg::PgSettings;
pub use replicas::{OneReplica, ReplicaSettings};
pub use spool::{Place, SpoolSettings};
pub use tls::Certificate;
pub use traces::TraceSettings;

use faults::Faults;
use reading::Troubles;
use size::bytes;
use tls::ServerTls;

/// The longest time that the end waits. Service managers usually kill a program after 30 seconds.
const STOP_WAIT: Duration = Duration::from_secs(25);

/// The time for which keys are kept: long enough for clients that try again the next morning.
const IDEMPOTENCY_KEEP: Duration = Duration::from_secs(24 * 3600);

/// The database without any configuration.
pub const EMBEDDED_URL: &str = "sqlite:windrow.db";

/// The checked and complete configuration.
pub struct Settings {
    /// The database's URL.
    pub url: Secret,
    /// The URL as it may be shown, without what may be a secret.
    pub database: String,
    /// The sink's settings.
    pub sink: Options,
    /// The lane's settings.
    pub limits: Limits,
    /// The memory budget, in bytes.
    pub memory: usize,
    /// The time that the end waits for what was accepted.
    pub stop_wait: Duration,
    /// The HTTP frontend's settings, unless it is switched off. Its token is a secret, which its
    /// `Debug` does not show.
    pub http: Option<HttpConfig>,
    /// The PostgreSQL frontend's settings, if it is asked for.
    pub pg: Option<PgSettings>,
    /// The MySQL frontend's settings, if it is asked for.
    pub mysql: Option<MysqlSettings>,
    /// The topics that are written, if a broker is named.
    pub mqtt: Option<MqttSettings>,
    /// The spool's settings, if there is one.
    pub spool: Option<SpoolSettings>,
    /// The moment of success for clients, unless a request says otherwise.
    pub ack: Ack,
    /// The shortest time for which the keys of requests are kept.
    pub idempotency_keep: Duration,
    /// True if each write without a key gets one from the gateway, by which an unknown outcome can
    /// be found out.
    pub certain_outcomes: bool,
    /// The replicas, if there are any.
    pub replicas: Option<ReplicaSettings>,
    /// The destination of spans, if requests are traced.
    pub traces: Option<TraceSettings>,
    /// The certificates of the frontends for HTTP, PostgreSQL and MySQL, if they use TLS.
    pub certificates: [Option<Certificate>; 3],
}

impl Settings {
    /// Sets the threads that serve the clients of all frontends.
    pub fn serve_on(&mut self, threads: &Threads) {
        if let Some(http) = &mut self.http {
            http.threads = threads.clone();
        }
        if let Some(pg) = &mut self.pg {
            pg.serve_on(threads.clone());
        }
        if let Some(mysql) = &mut self.mysql {
            mysql.serve_on(threads.clone());
        }
    }

    /// Checks and completes a configuration.
    ///
    /// # Errors
    /// The settings that are invalid, and why.
    pub fn new(file: &File) -> anyhow::Result<Self> {
        let mut faults = Faults::default();
        let settings = Self::served(file, &mut faults);
        faults.end()?;
        Ok(settings)
    }

    /// Checks the configuration of a gateway that listens. Notes errors, and uses a default instead
    /// of an invalid value.
    fn served(file: &File, faults: &mut Faults) -> Self {
        let settings = Self::checked(file, faults);
        let listens =
            file.pg.listen.is_some() || file.mysql.listen.is_some() || file.mqtt.url.is_some();
        if is_off(&file.http) && !listens {
            let what = "http.listen is off, and none of pg.listen, mysql.listen and mqtt.url is set: nobody could write";
            faults.note::<()>(Err(anyhow::anyhow!(what)));
        }
        let (http, pg, mysql) = (&settings.http, &settings.pg, &settings.mysql);
        let refusals = [
            ("http", http.as_ref().map(HttpConfig::check)),
            ("pg", pg.as_ref().map(PgSettings::check)),
            ("mysql", mysql.as_ref().map(MysqlSettings::check)),
        ];
        for (section, said) in refusals {
            faults.note_refusal(section, said.unwrap_or(Ok(())));
        }
        settings
    }

    /// Checks the configuration of a gateway that only applies the spool and does not listen.
    ///
    /// # Errors
    /// As [`Settings::new`], and that there is no spool.
    pub fn to_drain(file: &File) -> anyhow::Result<Self> {
        let mut faults = Faults::default();
        let settings = Self::checked(file, &mut faults);
        faults.end()?;
        ensure!(
            settings.spool.is_some(),
            "no spool is named: give its directory in spool.directory, or with --spool DIR"
        );
        Ok(settings)
    }

    fn checked(file: &File, faults: &mut Faults) -> Self {
        let embedded = file.database.url.is_none();
        let url = file.database.url.clone();
        let url = url.unwrap_or_else(|| EMBEDDED_URL.into());
        let memory = faults.or(memory(&file.limits), crate::writer::DEFAULT_MEMORY);
        let spool = faults.note(spool::settings(file));
        let of_http = file.http.tls.as_ref().filter(|_| !is_off(&file.http));
        let of_http = of_http.map(|tls| tls::server("http.tls", b"http/1.1", tls));
        let of_http = of_http.and_then(|tls| faults.note(tls));
        let of_pg = file.pg.tls.as_ref().filter(|_| file.pg.listen.is_some());
        let of_pg = of_pg.map(|tls| tls::server("pg.tls", b"postgresql", tls));
        let of_pg = of_pg.and_then(|tls| faults.note(tls));
        let of_mysql = file
            .mysql
            .tls
            .as_ref()
            .filter(|_| file.mysql.listen.is_some());
        let of_mysql = of_mysql.map(|tls| tls::server("mysql.tls", b"mysql", tls));
        let of_mysql = of_mysql.and_then(|tls| faults.note(tls));
        let mut ack = Ack::Commit;
        // An invalid spool has been reported already.
        if let Some(spool) = &spool {
            faults.note(spool::check_memory(spool.as_ref(), memory));
            ack = faults.or(spool::ack(file, spool.as_ref()), ack);
        }
        let has_spool = spool.as_ref().is_some_and(Option::is_some);
        let keep = file.database.idempotency_keep;
        let idempotency_keep = keep.unwrap_or(IDEMPOTENCY_KEEP);
        faults.note(file.log.filter());
        faults.note(idempotency_keep_makes_sense(idempotency_keep));
        Self {
            database: shown::url(url.reveal()),
            sink: Options {
                create_tables: file.database.create_tables.unwrap_or(embedded),
                extend_tables: file.database.extend_tables,
                received_at: file.database.received_at.as_deref().map(Name::from),
                lock_wait: file
                    .database
                    .lock_wait
                    .unwrap_or(Options::default().lock_wait),
                connect_timeout: file
                    .database
                    .connect_timeout
                    .unwrap_or(Options::default().connect_timeout),
                own_times: false,
                trusted_functions: file.database.trusted_functions.clone(),
                synchronous: match file.database.sqlite.synchronous {
                    Sync::Full => Synchronous::Full,
                    Sync::Normal => Synchronous::Normal,
                    Sync::Off => Synchronous::Off,
                },
                ..Options::default()
            },
            limits: limits(&file.limits, faults),
            memory,
            stop_wait: file.limits.stop_wait.unwrap_or(STOP_WAIT),
            http: http(&file.http, of_http.as_ref(), faults),
            pg: pg::settings(file, url.reveal(), of_pg.as_ref(), faults),
            mysql: mysql::settings(file, url.reveal(), of_mysql.as_ref(), faults),
            mqtt: mqtt::settings(file, has_spool, (memory, ack), faults),
            certificates: [of_http, of_pg, of_mysql].map(|tls| tls.map(|tls| tls.certificate)),
            ack,
            idempotency_keep,
            certain_outcomes: file.database.certain_outcomes.unwrap_or(false),
            replicas: faults.note(replicas::settings(file)).flatten(),
            spool: spool.flatten(),
            traces: faults.note(traces::settings(&file.traces)).flatten(),
            url,
        }
    }
}

impl File {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// The place in the file and the error. Unknown keys are errors.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("the configuration {} cannot be read", path.display()))?;
        Self::parse(&text)
            .with_context(|| format!("the configuration {} is not valid", path.display()))
    }
}

impl File {
    fn parse(text: &str) -> Result<Self, Troubles> {
        match reading::read(text) {
            (file, troubles) if troubles.is_empty() => Ok(file),
            (_, troubles) => Err(Troubles(troubles)),
        }
    }
}

fn idempotency_keep_makes_sense(keep: Duration) -> anyhow::Result<()> {
    ensure!(
        keep >= Duration::from_secs(1),
        "database.idempotency_keep must be at least 1s: a client that sends a request again needs some time for it"
    );
    Ok(())
}

fn memory(file: &Limit) -> anyhow::Result<usize> {
    let default = crate::writer::DEFAULT_MEMORY;
    let memory = bytes("limits.memory", file.memory, default)?;
    ensure!(
        memory >= 1 << 20,
        "limits.memory must be at least 1 MiB; a single request needs memory too"
    );
    Ok(memory)
}

/// The value of `http.listen` that switches HTTP off.
const OFF: &str = "off";

fn is_off(http: &Http) -> bool {
    http.listen.as_deref() == Some(OFF)
}

fn http(file: &Http, tls: Option<&ServerTls>, faults: &mut Faults) -> Option<HttpConfig> {
    let defaults = HttpConfig::default();
    if is_off(file) {
        return None;
    }
    let listen = file
        .listen
        .as_ref()
        .and_then(|listen| faults.note(address::read("http.listen", listen, defaults.listen)));
    let mut size = |name, written, default| faults.or(bytes(name, written, default), default);
    let max_body = size("http.max_body", file.max_body, defaults.max_body);
    let max_row = size("http.max_row", file.max_row, defaults.max_row);
    Some(HttpConfig {
        listen: listen.unwrap_or(defaults.listen),
        socket: None,
        threads: Threads::default(),
        tokens: tokens(file, faults),
        allow_open: file.allow_open,
        show_values: file.show_values,
        hosts: file.hosts.iter().map(|name| name.as_str().into()).collect(),
        system_tables: file
            .system_tables
            .iter()
            .map(|name| name.as_str().into())
            .collect(),
        tls: tls.map(|tls| Arc::clone(&tls.config)),
        max_body,
        max_row,
        max_atomic_rows: file.max_atomic_rows.unwrap_or(defaults.max_atomic_rows),
        max_connections: file.max_connections.unwrap_or(defaults.max_connections),
        header_timeout: file.header_timeout.unwrap_or(defaults.header_timeout),
        body_timeout: file.body_timeout.unwrap_or(defaults.body_timeout),
        idle_timeout: file.idle_timeout.unwrap_or(defaults.idle_timeout),
        read_your_writes: file.read_your_writes.unwrap_or(defaults.read_your_writes),
    })
}

fn limits(file: &Limit, faults: &mut Faults) -> Limits {
    let defaults = Limits::default();
    for (name, n) in [
        ("limits.batch_rows", file.batch_rows),
        ("limits.flights", file.flights),
    ] {
        if n == Some(0) {
            faults.note::<()>(Err(anyhow::anyhow!(
                "{name} must be at least 1; leave it out to have it found at run time"
            )));
        }
    }
    let batch_bytes = bytes("limits.batch_bytes", file.batch_bytes, defaults.batch_bytes);
    Limits {
        batch_rows: file.batch_rows,
        batch_bytes: faults.or(batch_bytes, defaults.batch_bytes),
        flights: file.flights,
        max_wait: file.max_wait.unwrap_or(defaults.max_wait),
        idle_close: file.idle_close.unwrap_or(defaults.idle_close),
        away_wait: file.away_wait.unwrap_or(defaults.away_wait),
    }
}

/// Reads the tokens of clients: the one that may do everything, and those with limited rights.
fn tokens(http: &Http, faults: &mut Faults) -> Tokens {
    let all = faults.note(token(http)).flatten();
    let named = http.tokens.iter();
    let named: Vec<_> = named
        .filter_map(|(name, written)| faults.note(named_token(name, written)))
        .collect();
    let mut shown: Vec<&str> = all.iter().map(Secret::reveal).collect();
    shown.extend(named.iter().map(|(token, _)| token.reveal()));
    shown.sort_unstable();
    if shown
        .windows(2)
        .any(|pair| matches!(pair, [a, b] if a == b))
    {
        faults.note::<()>(Err(anyhow::anyhow!(
            "two tokens of [http] are the same text: give each client a token of its own"
        )));
    }
    Tokens { all, named }
}

fn named_token(name: &str, written: &NamedToken) -> anyhow::Result<(Secret, Arc<Rights>)> {
    let token = written.token.clone().filter(|token| !token.is_empty());
    let token = token.with_context(|| format!("http.tokens.{name}.token is missing or empty"))?;
    ensure!(
        !written.rights.is_empty(),
        "http.tokens.{name}.rights is empty; name some of read, insert, update, delete, metrics"
    );
    let tables = written.tables.iter().map(|table| {
        TableName::parse(table)
            .map_err(|fault| anyhow::anyhow!("http.tokens.{name}.tables: {}", fault.message))
    });
    let tables = tables.collect::<anyhow::Result<Vec<_>>>()?;
    Ok((token, Arc::new(Rights::new(name, &written.rights, tables))))
}

fn token(http: &Http) -> anyhow::Result<Option<Secret>> {
    let token = match (&http.token, &http.token_file) {
        (Some(_), Some(_)) => {
            anyhow::bail!("http.token and http.token_file are both set; keep one")
        }
        (Some(token), None) => Some(token.clone()),
        (None, Some(path)) => {
            let token = secret::of_file(path)
                .with_context(|| format!("http.token_file: {} cannot be read", path.display()))?;
            Some(token.reveal().trim().into())
        }
        (None, None) => None,
    };
    ensure!(
        !token.as_ref().is_some_and(Secret::is_empty),
        "http.token is empty; leave it out for none"
    );
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_valid_and_holds_the_defaults() {
        let example: File = toml::from_str(EXAMPLE).unwrap();
        let settings = Settings::new(&example).unwrap();
        assert!(settings.pg.is_none());
        let bare = Settings::new(&File::default()).unwrap();
        assert_eq!(
            (
                settings.limits,
                settings.sink,
                settings.memory,
                settings.http.map(|http| http.listen),
                settings.url
            ),
            (
                bare.limits,
                bare.sink,
                bare.memory,
                bare.http.map(|http| http.listen),
                bare.url
            )
        );
    }

    #[test]
    fn the_example_names_every_knob() {
        // Each key, also a commented one, must be one that is known: uncomment all of them.
        let all: String = EXAMPLE
            .lines()
            .map(
                |line| match line.strip_prefix("# ").or(line.strip_prefix('#')) {
                    Some(rest) if rest.contains(" = ") && !rest.starts_with(' ') => {
                        format!("{rest}\n")
                    }
                    Some(rest) if rest.starts_with('[') => format!("{rest}\n"),
                    Some(_) => "\n".to_owned(),
                    None => format!("{line}\n"),
                },
            )
            .collect();
        let parsed = toml::from_str::<File>(&all).unwrap();
        let shown = format!("{parsed:?}");
        assert!(
            !shown.contains("None"),
            "a knob is missing from the example: {shown}"
        );
    }

    #[test]
    fn unknown_keys_and_nonsense_are_refused() {
        for (text, word) in [
            ("[database]\nurll = 'x'", "urll"),
            ("[limits]\nbatch_rows = 'many'", "batch_rows"),
            ("[limits]\nmemory = '12 apples'", "memory"),
        ] {
            let error = toml::from_str::<File>(text).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        for text in [
            "[limits]\nflights = 0",
            "[http]\nlisten = 'here'",
            "[limits]\nmemory = '1kB'",
            "[http]\nlisten = 'off'",
        ] {
            assert!(
                Settings::new(&toml::from_str(text).unwrap()).is_err(),
                "{text}"
            );
        }
    }
}
