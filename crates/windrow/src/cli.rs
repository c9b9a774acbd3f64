//! The command line as it was written; [`Serve::into_file`] lays it over the configuration file.

use std::io::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use bytesize::ByteSize;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use windrow::settings::{File, WrittenAck};
use windrow_core::Secret;

use crate::help;

/// Gathers the single-row writes of many clients into multi-row statements; every client keeps its
/// own answer.
#[derive(Parser)]
#[command(name = "windrow", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the gateway. Without any option: HTTP on loopback, rows go into ./windrow.db
    Serve(Box<Serve>),
    /// Load files into a table
    Load(Box<crate::command::load::Load>),
    /// Move rows of a table that serves as a queue into their final tables, one for each tenant if
    /// asked
    Move(Box<crate::command::moves::Move>),
    /// Look into a spool
    Spool(Box<crate::command::spool::Spool>),
    /// Look after replicas: databases that get what the primary gets
    Replica(Box<crate::command::replica::Replica>),
    /// Look after the dead letters: rows and writes that the database refused after they had been
    /// acknowledged or taken from a queue
    Rejects(Box<crate::command::rejects::Rejects>),
    /// Say which writes of a database would be joined, which not and why
    Doctor(crate::command::doctor::Doctor),
    /// Check that a gateway is running
    Health {
        /// Where its HTTP listens
        #[arg(
            long,
            value_name = "ADDR",
            env = "WINDROW_HTTP",
            default_value = "127.0.0.1:8420"
        )]
        http: String,
    },
    /// Say all that is wrong with a configuration file
    CheckConfig(crate::command::check_config::CheckConfig),
    /// Print a configuration file that explains every knob and holds its default
    ExampleConfig,
    /// List the databases that rows can go to, and what each of them cannot promise
    Sinks {
        /// As the page docs/sinks.md
        #[arg(long)]
        markdown: bool,
    },
    /// Write manual pages into a directory, one for each command
    #[command(hide = true)]
    ManPages {
        /// Where they go
        directory: PathBuf,
    },
    /// Print the completions of a shell, to be sourced by it
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

/// Options of `serve`. They win over the environment, which wins over the configuration file.
#[derive(Clone, Debug, Args)]
pub(crate) struct Serve {
    /// Where rows go: sqlite:PATH, postgres://USER@HOST:PORT/DATABASE, mysql://.. and others (see
    /// `windrow sinks`) [default: sqlite:windrow.db]
    // The value may hold a password, so help does not show it.
    #[arg(long, value_name = "URL", env = "WINDROW_TO", hide_env_values = true)]
    to: Option<Secret>,

    /// Where PostgreSQL clients connect; port 0 takes a free one [default: nowhere; usual:
    /// 127.0.0.1:6432]
    #[arg(long, value_name = "ADDR", env = "WINDROW_PG")]
    pg: Option<String>,

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

    /// When HTTP clients are told of success, unless a request says otherwise [default: commit]
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
    #[arg(long, value_name = "ROWS", env = "WINDROW_BATCH_ROWS")]
    batch_rows: Option<usize>,

    /// Most bytes in one batch [default: 4MiB]
    #[arg(long, value_name = "SIZE", env = "WINDROW_BATCH_BYTES", value_parser = size)]
    batch_bytes: Option<ByteSize>,

    /// Most connections that write at once [default: found at run time]
    #[arg(long, value_name = "N", env = "WINDROW_FLIGHTS")]
    flights: Option<usize>,

    /// How long a write may be held back for others to join it [default: 0s, never]
    #[arg(long, value_name = "TIME", env = "WINDROW_MAX_WAIT", value_parser = humantime::parse_duration)]
    max_wait: Option<Duration>,

    /// How long writes wait for a database that is away [default: 5s]
    #[arg(long, value_name = "TIME", env = "WINDROW_AWAY_WAIT", value_parser = humantime::parse_duration)]
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
    #[arg(long, value_name = "N", env = "WINDROW_THREADS")]
    pub(crate) threads: Option<NonZero<usize>>,
}

impl Serve {
    /// The configuration file, if one is named, with these options laid over it.
    pub(crate) fn into_file(self) -> anyhow::Result<File> {
        let file = match &self.config {
            Some(path) => File::read(path)?,
            None => File::default(),
        };
        Ok(self.over(file))
    }

    /// A configuration with these options laid over it.
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

    /// The text of the configuration file, where one is named and can be read.
    pub(crate) fn text(&self) -> Option<Secret> {
        let path = self.config.as_ref()?;
        std::fs::read_to_string(path).ok().map(Secret::from)
    }
}

/// A size, as the configuration file has it too.
fn size(text: &str) -> Result<ByteSize, &'static str> {
    text.parse()
        .map_err(|_| "expected a size such as 64MiB or 500kB, or a number of bytes")
}

/// A variable of the environment that stands for no option.
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Options that are needed, and the environment variables that may stand for them: they keep a
/// password out of the process list.
const FROM_ENVIRONMENT: [(&str, &str); 2] = [("--to", "WINDROW_TO"), ("--from", "WINDROW_FROM")];

/// Reads the command line. Ends the program where it makes no sense or asks for help.
pub(crate) fn parse() -> Cli {
    let matches = command().try_get_matches();
    let read = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    read.unwrap_or_else(|error| with_environment(error).exit())
}

/// The command line as it is read.
pub(crate) fn command() -> clap::Command {
    help::on_one_screen(Cli::command())
}

/// Adds that a missing option may come from the environment.
fn with_environment(mut error: clap::Error) -> clap::Error {
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing))
            if error.kind() == ErrorKind::MissingRequiredArgument =>
        {
            missing.clone()
        }
        _ => return error,
    };
    let is_missing = |option: &str| {
        missing
            .iter()
            .any(|name| name.split(' ').next() == Some(option))
    };
    let mut tips = FROM_ENVIRONMENT
        .iter()
        .filter(|(option, _)| is_missing(option));
    if let Some((option, name)) = tips.next() {
        let tip = format!(
            "{option} names a database, as in postgres://USER@HOST/DATABASE or sqlite:PATH; the environment variable {name} stands for it"
        );
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
    }
    error
}

/// Writes to standard output; a reader that has left is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes the manual pages.
pub(crate) fn man_pages(directory: &Path) -> anyhow::Result<()> {
    let written = clap_mangen::generate_to(command(), directory);
    written.with_context(|| format!("{} takes no pages", directory.display()))
}

/// Prints what a shell needs to complete `windrow`.
pub(crate) fn completions(shell: clap_complete::Shell) -> anyhow::Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command(), "windrow", &mut text);
    print(&String::from_utf8_lossy(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn a_size_is_explained() {
        for (text, bytes) in [("64MiB", 64 << 20), ("500kB", 500_000), ("7", 7)] {
            assert_eq!(size(text).unwrap().as_u64(), bytes);
        }
        let refused = Cli::try_parse_from(["windrow", "serve", "--memory", "5 apples"]);
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
            "windrow",
            "serve",
            "--config",
            path.to_str().unwrap(),
            "--flights",
            "5",
            "--token",
            "t",
        ];
        let Command::Serve(serve) = Cli::parse_from(args).command else {
            unreachable!()
        };
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
