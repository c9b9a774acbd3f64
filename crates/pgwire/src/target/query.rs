//! The parameters after the `?` of a connection URL.

use std::path::PathBuf;
use std::time::Duration;

use windrow_core::{Fault, shown_parameter};

use super::options::{ChannelBinding, Roots, SessionKind, SslMode, TcpOptions, TlsOptions};
use super::passing;
use super::percent::decode;
use super::url::RawUrl;

const KNOWN: &str = "host, port, user, password, dbname, sslmode, sslrootcert, sslcert, sslkey, sslnegotiation, \
                     channel_binding, target_session_attrs, load_balance_hosts, application_name, options, \
                     connect_timeout, passfile, keepalives, tcp_user_timeout";

/// The parameters that do not replace another part of the URL.
#[derive(Default)]
pub(super) struct Parameters {
    pub(super) tls: TlsOptions,
    pub(super) binding: ChannelBinding,
    pub(super) session: SessionKind,
    pub(super) application_name: Option<String>,
    pub(super) options: Option<String>,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) tcp: TcpOptions,
    pub(super) passfile: Option<String>,
    /// True if the hosts are tried in random order.
    pub(super) is_balanced: bool,
}

#[derive(Default)]
struct Tls {
    mode: Option<SslMode>,
    roots: Option<String>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    direct: bool,
}

/// Parses the parameters. Those that stand for another part of the URL replace it.
pub(super) fn read(raw: &mut RawUrl<'_>) -> Result<Parameters, Fault> {
    let mut parameters = Parameters::default();
    let mut tls = Tls::default();
    let mut fallback_name = None;
    for pair in raw.query.split('&').filter(|pair| !pair.is_empty()) {
        // The text may be part of an unencoded password, so the message does not repeat it.
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            Fault::invalid("a parameter of the URL has no value: write ?NAME=VALUE&NAME=VALUE")
        })?;
        let name = decode(name, "a parameter's name")?;
        let value = decode(value, &format!("the value of {name}"))?;
        match name.as_str() {
            "host" => raw.hosts = list(&value),
            "port" => raw.ports = list(&value),
            "user" => raw.user = Some(value),
            "password" => raw.password = Some(value.into()),
            "dbname" => raw.database = Some(value),
            "sslmode" => tls.mode = Some(choose(&name, &value, &SSL_MODES)?),
            "sslrootcert" => tls.roots = Some(value),
            "sslcert" => tls.cert = Some(value.into()),
            "sslkey" => tls.key = Some(value.into()),
            "channel_binding" => parameters.binding = choose(&name, &value, &BINDINGS)?,
            "target_session_attrs" => parameters.session = choose(&name, &value, &SESSIONS)?,
            "application_name" => parameters.application_name = Some(value),
            "options" => parameters.options = Some(value),
            "connect_timeout" => parameters.connect_timeout = seconds(&name, &value)?,
            "fallback_application_name" => fallback_name = Some(value),
            "passfile" => parameters.passfile = Some(value),
            "load_balance_hosts" => {
                let words = [("disable", false), ("random", true)];
                parameters.is_balanced = choose(&name, &value, &words)?;
            }
            "sslnegotiation" => {
                let words = [("postgres", false), ("direct", true)];
                tls.direct = choose(&name, &value, &words)?;
            }
            // As in URLs of JDBC and of old versions of libpq.
            "ssl" => tls.mode = Some(choose(&name, &value, &[("true", SslMode::Require)])?),
            "requiressl" => {
                let words = [("0", SslMode::Prefer), ("1", SslMode::Require)];
                tls.mode = Some(choose(&name, &value, &words)?);
            }
            "keepalives" => parameters.tcp.no_keepalive = number(&name, &value)? == 0,
            "keepalives_idle" => parameters.tcp.idle = seconds(&name, &value)?,
            "keepalives_interval" => parameters.tcp.interval = seconds(&name, &value)?,
            "keepalives_count" => {
                parameters.tcp.count = u32::try_from(number(&name, &value)?)
                    .ok()
                    .filter(|n| *n > 0);
            }
            "tcp_user_timeout" => {
                let milliseconds = u64::try_from(number(&name, &value)?).ok();
                let timeout = milliseconds.filter(|n| *n > 0).map(Duration::from_millis);
                parameters.tcp.user_timeout = timeout;
            }
            _ if passing::is_known(&name, &value)? => {}
            _ => {
                return Err(Fault::invalid(format!(
                    "the URL has a parameter {} that is not known; known are {KNOWN}",
                    shown_parameter(&name)
                )));
            }
        }
    }
    parameters.application_name = parameters.application_name.or(fallback_name);
    parameters.tls = tls.settle()?;
    Ok(parameters)
}

const SSL_MODES: [(&str, SslMode); 6] = [
    ("disable", SslMode::Disable),
    ("allow", SslMode::Allow),
    ("prefer", SslMode::Prefer),
    ("require", SslMode::Require),
    ("verify-ca", SslMode::VerifyCa),
    ("verify-full", SslMode::VerifyFull),
];

const BINDINGS: [(&str, ChannelBinding); 3] = [
    ("disable", ChannelBinding::Disable),
    ("prefer", ChannelBinding::Prefer),
    ("require", ChannelBinding::Require),
];

const SESSIONS: [(&str, SessionKind); 3] = [
    ("any", SessionKind::Any),
    ("read-write", SessionKind::ReadWrite),
    ("primary", SessionKind::Primary),
];

impl Tls {
    fn settle(self) -> Result<TlsOptions, Fault> {
        let system = self.roots.as_deref() == Some("system");
        let mode = match (self.mode, &self.roots) {
            // As libpq: without sslmode, the system's roots mean the strictest; a root file makes
            // `require` verify.
            (None, Some(_)) if system => SslMode::VerifyFull,
            (Some(SslMode::Require), Some(_)) => SslMode::VerifyCa,
            (mode, _) => mode.unwrap_or_default(),
        };
        if system && mode != SslMode::VerifyFull {
            return Err(Fault::invalid(
                "sslrootcert=system needs sslmode=verify-full: anybody can have a certificate of a public authority",
            ));
        }
        let is_weak = matches!(mode, SslMode::Disable | SslMode::Allow | SslMode::Prefer);
        if self.direct && is_weak {
            return Err(Fault::invalid(
                "sslnegotiation=direct of the URL needs sslmode=require, verify-ca or verify-full",
            ));
        }
        let identity = match (self.cert, self.key) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => {
                return Err(Fault::invalid(
                    "sslcert and sslkey of the URL go together: the client's certificate and its key, as PEM files",
                ));
            }
        };
        Ok(TlsOptions {
            mode,
            roots: match self.roots {
                Some(path) if !system => Roots::File(path.into()),
                _ => Roots::System,
            },
            identity,
            is_direct: self.direct,
        })
    }
}

fn number(name: &str, value: &str) -> Result<i32, Fault> {
    value
        .trim()
        .parse()
        .map_err(|_| Fault::invalid(format!("the URL's parameter {name} is a whole number")))
}

fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::to_owned).collect()
}

fn choose<T: Copy>(name: &str, value: &str, among: &[(&str, T)]) -> Result<T, Fault> {
    let found = among.iter().find(|(word, _)| *word == value);
    found.map(|(_, choice)| *choice).ok_or_else(|| {
        let words: Vec<_> = among.iter().map(|(word, _)| *word).collect();
        Fault::invalid(format!(
            "the URL's parameter {name} is one of {}",
            words.join(", ")
        ))
    })
}

/// Parses seconds. As in libpq, 0 and negative numbers mean no limit.
fn seconds(name: &str, value: &str) -> Result<Option<Duration>, Fault> {
    let seconds = number(name, value)?;
    Ok(u64::try_from(seconds)
        .ok()
        .filter(|seconds| *seconds > 0)
        .map(Duration::from_secs))
}
