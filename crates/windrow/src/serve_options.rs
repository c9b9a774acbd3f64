//! The options of `windrow serve`; [`Serve::into_file`] lays them over the configuration file.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use bytesize::ByteSize;
use clap::{Args, FromArgMatches};
use windrow::settings::{File, WrittenAck};
use windrow_core::Secret;

/// Options of `serve`. They win over the environment, which wins over the configuration file.
#[derive(Clone, Debug, Args)]
pub(crate) struct Serve {
    /// Where rows go: sqlite:PATH, postgres://USER@HOST:PORT/DATABASE, mysql://.. and others (see
    /// `windrow databases`) [default: sqlite:windrow.db]
    // The value may hold a password, so help does not show it.
    #[arg(long, value_name = "URL", env = "WINDROW_TO", hide_env_values = true)]
    to: Option<Secret>,

    /// Where PostgreSQL clients connect; port 0 takes a free one [default: nowhere; usual:
    /// 127.0.0.1:6432]
    #[arg(long, value_name = "ADDR", env = "WINDROW_PG")]
    pg: Option<String>,

    /// Where MySQL clients connect; port 0 takes a free one [default: nowhere; usual:
    /// 127.0.0.1:3307]
    #[arg(long, value_name = "ADDR", env = "WINDROW_MYSQL")]
    mysql: Option<String>,

    /// Where HTTP listens, or `off`; port 0 takes a free one [default: 127.0.0.1:8420]
    #[arg(long, value_name = "ADDR", env = "WINDROW_HTTP")]
    http: Option<String>,

    /// Bearer token that HTTP clients must show (better: WINDROW_TOKEN or http.token_file)
    #[arg(
        long,
        value_name = "TOKEN",
        env = "WINDROW_TOKEN",
        hide_env_values = true
    )]
    token: Option<Secret>,

    /// Configuration file in TOML; see `windrow example-config`
    #[arg(long, value_name = "FILE", env = "WINDROW_CONFIG")]
    config: Option<PathBuf>,

    /// Directory of the spool, which keeps writes that are acknowledged before the database has
    /// them; or the topic of Kafka that it is, as kafka://HOST:PORT/TOPIC
    // The value may hold a password, so help does not show it.
    #[arg(
        long,
        value_name = "DIR|URL",
        env = "WINDROW_SPOOL",
        hide_env_values = true
    )]
    spool: Option<PathBuf>,

    /// When HTTP clients get success, unless a request says otherwise [default: commit]
    #[arg(long, value_name = "WHEN", env = "WINDROW_ACK")]
    ack: Option<WrittenAck>,

    /// Listen nowhere: apply what is in the spool, and end
    #[arg(long)]
    pub(crate) drain_only: bool,

    /// Create tables that do not exist from the rows that name them, and columns of such tables
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", env = "WINDROW_CREATE_TABLES")]
    create_tables: Option<bool>,

    /// Memory for all that is accepted and not yet answered [default: 256MiB]
    #[arg(long, value_name = "SIZE", env = "WINDROW_MEMORY", value_parser = size)]
    memory: Option<ByteSize>,

    /// Most rows in one batch [default: found at run time]
    #[arg(long, value_name = "ROWS", env = "WINDROW_BATCH_ROWS", value_parser = number::<usize>)]
    batch_rows: Option<usize>,

    /// Most bytes in one batch [default: 4MiB]
    #[arg(long, value_name = "SIZE", env = "WINDROW_BATCH_BYTES", value_parser = size)]
    batch_bytes: Option<ByteSize>,

    /// Most connections that write at once [default: found at run time]
    #[arg(long, value_name = "N", env = "WINDROW_FLIGHTS", value_parser = number::<usize>)]
    flights: Option<usize>,

    /// Time that a write may be held back for others to join it [default: 0s, never]
    #[arg(long, value_name = "TIME", env = "WINDROW_MAX_WAIT", value_parser = duration)]
    max_wait: Option<Duration>,

    /// Time that writes wait for a database that is away [default: 5s]
    #[arg(long, value_name = "TIME", env = "WINDROW_AWAY_WAIT", value_parser = duration)]
    away_wait: Option<Duration>,

    /// Collector of OpenTelemetry that traces are sent to, by OTLP over HTTP [default: none; usual:
    /// http://127.0.0.1:4318]
    // The value may hold a password, so help does not show it.
    #[arg(
        long,
        value_name = "URL",
        env = "OTEL_EXPORTER_OTLP_ENDPOINT",
        hide_env_values = true
    )]
    traces: Option<Secret>,

    /// Level or filter of the log [default: info]
    #[arg(long, value_name = "FILTER", env = "WINDROW_LOG")]
    log: Option<String>,

    /// Log one JSON object a line
    #[arg(long)]
    log_json: bool,

    /// Threads that serve clients [default: half of the cores]
    #[arg(long, value_name = "N", env = "WINDROW_THREADS", value_parser = number::<NonZero<usize>>)]
    pub(crate) threads: Option<NonZero<usize>>,
}

impl Serve {
    /// Returns the options of `windrow serve --config FILE`, with those of the environment.
    ///
    /// # Errors
    /// A variable of the environment makes no sense.
    pub(crate) fn of_file(file: &Path) -> clap::error::Result<Self> {
        Self::parse([OsString::from("--config"), file.into()])
    }

    fn parse(words: impl IntoIterator<Item = OsString>) -> clap::error::Result<Self> {
        let command = clap::Command::new("serve").bin_name("windrow serve");
        let words = [OsString::from("serve")].into_iter().chain(words);
        Self::from_arg_matches(&Self::augment_args(command).try_get_matches_from(words)?)
    }

    /// Returns the configuration file, if one is named, with these options laid over it.
    pub(crate) fn into_file(self) -> anyhow::Result<File> {
        let file = match &self.config {
            Some(path) => File::read(path)?,
            None => File::default(),
        };
        Ok(self.over(file))
    }

    /// Returns a configuration with these options laid over it.
    pub(crate) fn over(self, mut file: File) -> File {
        fn lay<T>(under: &mut Option<T>, over: Option<T>) {
            if over.is_some() {
                *under = over;
            }
        }
        if self.token.is_some() {
            file.http.token_file = None;
        }
        lay(&mut file.database.url, self.to);
        lay(&mut file.database.create_tables, self.create_tables);
        lay(&mut file.database.ack, self.ack);
        if let Some(spool) = self.spool {
            file.spool.name(spool);
        }
        lay(&mut file.http.listen, self.http);
        lay(&mut file.pg.listen, self.pg);
        lay(&mut file.mysql.listen, self.mysql);
        lay(&mut file.http.token, self.token);
        lay(&mut file.limits.memory, self.memory);
        lay(&mut file.limits.batch_rows, self.batch_rows);
        lay(&mut file.limits.batch_bytes, self.batch_bytes);
        lay(&mut file.limits.flights, self.flights);
        lay(&mut file.limits.max_wait, self.max_wait);
        lay(&mut file.limits.away_wait, self.away_wait);
        lay(&mut file.log.filter, self.log);
        file.log.json |= self.log_json;
        lay(&mut file.traces.endpoint, self.traces);
        lay(
            &mut file.traces.service_name,
            environment("OTEL_SERVICE_NAME"),
        );
        let headers = environment("OTEL_EXPORTER_OTLP_HEADERS");
        lay(&mut file.traces.headers, headers.map(Secret::from));
        file
    }

    /// Returns the text of the configuration file, if one is named and can be read.
    pub(crate) fn text(&self) -> Option<Secret> {
        let path = self.config.as_ref()?;
        std::fs::read_to_string(path).ok().map(Secret::from)
    }
}

/// Reads a size, as the configuration file has it too.
fn size(text: &str) -> Result<ByteSize, &'static str> {
    text.parse()
        .map_err(|_| "expected a size such as 64MiB or 500kB, or a number of bytes")
}

/// Reads a duration, as the configuration file has it too.
fn duration(text: &str) -> Result<Duration, &'static str> {
    humantime::parse_duration(text).map_err(|_| "expected a duration such as 500ms, 5s or 1m")
}

/// Reads a number of things.
fn number<N: FromStr>(text: &str) -> Result<N, &'static str> {
    text.parse()
        .map_err(|_| "expected a whole number, at least 1")
}

/// Returns a variable of the environment that stands for no option.
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_explained() {
        for (text, bytes) in [("64MiB", 64 << 20), ("500kB", 500_000), ("7", 7)] {
            assert_eq!(size(text).unwrap().as_u64(), bytes);
        }
        let refused = Serve::parse(["--memory", "5 apples"].map(OsString::from));
        let refused = refused.err().unwrap().to_string();
        assert!(refused.contains("such as 64MiB"), "{refused}");
    }

    #[test]
    fn options_win_over_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.toml");
        std::fs::write(
            &path,
            "[limits]\nflights = 3\nbatch_rows = 9\n[http]\ntoken_file = 'x'",
        )
        .unwrap();
        let args = [
            "--config",
            path.to_str().unwrap(),
            "--flights",
            "5",
            "--token",
            "t",
        ];
        let serve = Serve::parse(args.map(OsString::from)).unwrap();
        let file = serve.into_file().unwrap();
        assert_eq!(
            (file.limits.flights, file.limits.batch_rows),
            (Some(5), Some(9))
        );
        assert_eq!(
            (
                file.http.token.as_ref().map(Secret::reveal),
                file.http.token_file
            ),
            (Some("t"), None)
        );
    }
}
