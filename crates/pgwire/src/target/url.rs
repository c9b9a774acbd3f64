//! Splits a connection URL into its parts.

use windrow_core::{Fault, Secret};

use super::host::{Address, Host};
use super::percent::decode;

/// The schemes of URLs, each with its default port.
const SCHEMES: [(&str, u16); 4] = [
    ("postgres://", 5432),
    ("postgresql://", 5432),
    ("cockroachdb://", 26257),
    ("cockroach://", 26257),
];

/// Directories of sockets: of Debian's and Red Hat's packages, then of PostgreSQL's own build.
const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];

const ENCODE: &str = "characters such as @ : / ? # % in a user or password must be percent-encoded \
                      (@ is %40, / is %2F)";

/// The parts of a URL, decoded except for the query.
pub(super) struct RawUrl<'u> {
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
    /// The names of the hosts; empty if the URL names none.
    pub(super) hosts: Vec<String>,
    /// The ports: one for each host, one for all, or none.
    pub(super) ports: Vec<String>,
    pub(super) database: Option<String>,
    pub(super) query: &'u str,
    /// The port of hosts without one.
    pub(super) default_port: u16,
}

/// Splits a URL.
pub(super) fn split(url: &str) -> Result<RawUrl<'_>, Fault> {
    let (rest, default_port) = SCHEMES
        .iter()
        .find_map(|(scheme, port)| Some((url.strip_prefix(scheme)?, *port)))
        .ok_or_else(|| {
            Fault::invalid(
                "a PostgreSQL URL begins with postgres:// or postgresql://, one of CockroachDB with cockroachdb://",
            )
        })?;
    let (before_query, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = before_query.split_once('/').unwrap_or((before_query, ""));
    let (user_info, host_list) = match authority.rsplit_once('@') {
        Some((user_info, hosts)) => (Some(user_info), hosts),
        None => (None, authority),
    };
    // The only @ comes after the authority, so the text that looks like host and port is a user and
    // the beginning of a password.
    if user_info.is_none() && authority.contains(':') && rest.contains('@') {
        return Err(Fault::invalid(format!(
            "the URL has an @ behind its host: {ENCODE}"
        )));
    }
    let (user, password) = split_user(user_info.unwrap_or_default())?;
    let (hosts, ports) = split_hosts(host_list)?;
    Ok(RawUrl {
        user,
        password: password.map(Secret::from),
        hosts,
        ports,
        database: Some(decode(path, "the database name")?),
        query,
        default_port,
    })
}

fn split_user(user_info: &str) -> Result<(Option<String>, Option<String>), Fault> {
    let (user, password) = match user_info.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (user_info, None),
    };
    let user = Some(decode(user, "the user")?).filter(|user| !user.is_empty());
    let password = password.map(|p| decode(p, "the password")).transpose()?;
    Ok((user, password))
}

fn split_hosts(list: &str) -> Result<(Vec<String>, Vec<String>), Fault> {
    if list.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let mut hosts = Vec::new();
    let mut ports = Vec::new();
    for item in list.split(',') {
        let (host, port) = split_host(item)?;
        hosts.push(decode(host, "the host")?);
        ports.push(decode(port, "the port")?);
    }
    Ok((hosts, ports))
}

/// Splits `host`, `host:port`, `[v6]` or `[v6]:port`.
fn split_host(item: &str) -> Result<(&str, &str), Fault> {
    let Some(v6) = item.strip_prefix('[') else {
        return Ok(item.rsplit_once(':').unwrap_or((item, "")));
    };
    v6.split_once(']')
        .and_then(|(host, behind)| match behind.strip_prefix(':') {
            Some(port) => Some((host, port)),
            None => behind.is_empty().then_some((host, "")),
        })
        .ok_or_else(|| Fault::invalid("an IPv6 address in the URL is written [ADDRESS]:PORT"))
}

/// Pairs hosts with ports. A single port counts for all hosts, as in libpq.
pub(super) fn hosts(
    names: &[String],
    ports: &[String],
    default_port: u16,
    password: Option<&Secret>,
) -> Result<Vec<Host>, Fault> {
    if !matches!(ports.len(), 0 | 1) && ports.len() != names.len() {
        return Err(Fault::invalid(format!(
            "the URL names {} hosts and {} ports; give one port for all or one for each",
            names.len(),
            ports.len()
        )));
    }
    let mut hosts = Vec::new();
    let fallback = [String::new()];
    let names = if names.is_empty() { &fallback } else { names };
    for (index, name) in names.iter().enumerate() {
        let port = ports.get(index).or(ports.first()).map_or("", |p| p);
        let port = match port {
            "" => default_port,
            text => parse_port(text, index)?,
        };
        hosts.extend(addresses(name).into_iter().map(|address| Host {
            address,
            port,
            password: password.cloned(),
        }));
    }
    Ok(hosts)
}

fn addresses(name: &str) -> Vec<Address> {
    if name.starts_with('/') {
        vec![Address::Unix(name.into())]
    } else if name.is_empty() {
        let sockets = SOCKET_DIRECTORIES.map(|directory| Address::Unix(directory.into()));
        let mut all = Vec::from(sockets);
        all.push(Address::Tcp("localhost".to_owned()));
        all
    } else {
        vec![Address::Tcp(name.to_owned())]
    }
}

/// Parses a port. The message does not repeat the text, which may be part of an unencoded password.
fn parse_port(text: &str, index: usize) -> Result<u16, Fault> {
    text.parse().ok().filter(|port| *port != 0).ok_or_else(|| {
        Fault::invalid(format!(
            "the port of host number {} in the URL is no number from 1 to 65535; {ENCODE}",
            index + 1
        ))
    })
}
