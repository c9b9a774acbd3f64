//! The address of the log: a URL with brokers, topic and credentials.

use std::fmt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use windrow_core::Secret;

/// A topic of a cluster: `kafka://[user:password@]host:port,host:port/topic`, or `kafkas://` with
/// TLS. Shown without its password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Hosts and ports of some of the brokers; those name the others.
    pub brokers: Vec<(String, u16)>,
    /// The topic.
    pub topic: String,
    /// True if connections are encrypted.
    pub tls: bool,
    /// A PEM file with the trusted certificates; `None` for those of the system.
    pub ca: Option<PathBuf>,
    /// User, password, and the mechanism by which they are sent to the broker.
    pub login: Option<Login>,
}

/// The credentials for a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The user.
    pub user: String,
    /// The password.
    pub password: Secret,
    /// The SASL mechanism.
    pub mechanism: Mechanism,
}

/// The SASL mechanism by which a broker verifies user and password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// Unencrypted: only over TLS.
    Plain,
    /// SCRAM-SHA-256.
    Sha256,
    /// SCRAM-SHA-512.
    Sha512,
}

impl Mechanism {
    /// Returns the mechanism with a name in a URL.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "plain" => Self::Plain,
            "scram-sha-256" => Self::Sha256,
            "scram-sha-512" => Self::Sha512,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::Sha256 => "SCRAM-SHA-256",
            Self::Sha512 => "SCRAM-SHA-512",
        }
    }
}

/// The longest name of a topic that Kafka allows, in bytes.
const TOPIC_BYTES: usize = 249;

const NAME: &str = "a topic's name has 1 to 249 letters, digits, dots, underscores and hyphens";

impl Address {
    /// The form of a URL, for messages.
    pub const FORM: &str = "kafka://[USER:PASSWORD@]HOST:PORT[,HOST:PORT..]/TOPIC, or kafkas:// \
        with TLS; ?sasl=plain|scram-sha-256|scram-sha-512 and &ca=FILE may follow";

    /// Returns true if a text looks like the URL of a log.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with("kafka:") || text.starts_with("kafkas:")
    }

    /// Parses a URL.
    ///
    /// # Errors
    /// The error in it, without its password.
    pub fn parse(url: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("{what}; its form is {}", Self::FORM);
        let (tls, rest) = match url.split_once("://") {
            Some(("kafka", rest)) => (false, rest),
            Some(("kafkas", rest)) => (true, rest),
            _ => return Err(wrong("it is no URL of a Kafka topic")),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (hosts, topic) = rest
            .split_once('/')
            .ok_or_else(|| wrong("it names no topic"))?;
        let (login, hosts) = match hosts.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, hosts),
        };
        if !is_name(topic) {
            return Err(wrong(NAME));
        }
        let mut address = Self {
            brokers: hosts
                .split(',')
                .map(broker)
                .collect::<Option<_>>()
                .ok_or_else(|| wrong("a broker is named by its host and port"))?,
            topic: topic.to_owned(),
            tls,
            ca: None,
            login: login.map(user).transpose().map_err(wrong)?,
        };
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            address.set(parameter).map_err(|what| wrong(&what))?;
        }
        let shows_password = |login: &Login| login.mechanism == Mechanism::Plain;
        if !address.tls && address.login.as_ref().is_some_and(shows_password) {
            return Err(wrong(
                "sasl=plain shows the password to the network: it needs kafkas://",
            ));
        }
        Ok(address)
    }

    /// Returns another topic of the same cluster, whose name begins with this one's.
    ///
    /// # Errors
    /// The name is invalid.
    pub fn with_suffix(mut self, suffix: &str) -> Result<Self, String> {
        self.topic.push_str(suffix);
        match is_name(&self.topic) {
            true => Ok(self),
            false => Err(format!("{}: {NAME}", self.topic)),
        }
    }

    fn set(&mut self, parameter: &str) -> Result<(), String> {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match (name, &mut self.login) {
            ("ca", _) => self.ca = Some(decoded(value)?.into()),
            ("sasl", Some(login)) => {
                login.mechanism = Mechanism::parse(value)
                    .ok_or("sasl is plain, scram-sha-256 or scram-sha-512")?;
            }
            ("sasl", None) => return Err("sasl is given, but no user".to_owned()),
            _ => return Err(format!("there is no parameter {name}")),
        }
        Ok(())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.tls { "kafkas://" } else { "kafka://" })?;
        if let Some(login) = &self.login {
            write!(f, "{}:***@", login.user)?;
        }
        for (at, (host, port)) in self.brokers.iter().enumerate() {
            f.write_str(if at > 0 { "," } else { "" })?;
            match host.contains(':') {
                true => write!(f, "[{host}]:{port}")?,
                false => write!(f, "{host}:{port}")?,
            }
        }
        write!(f, "/{}", self.topic)
    }
}

fn is_name(topic: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !topic.is_empty() && topic.len() <= TOPIC_BYTES && topic.chars().all(is_plain)
}

fn broker(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    let port = port.parse().ok()?;
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

fn user(text: &str) -> Result<Login, &'static str> {
    let (user, password) = text.split_once(':').ok_or("a user has a password")?;
    let decoded = |part| decoded(part).map_err(|_| "user or password is not UTF-8");
    Ok(Login {
        user: decoded(user)?,
        password: decoded(password)?.into(),
        mechanism: Mechanism::Sha512,
    })
}

fn decoded(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    let decoded = decoded.map_err(|_| "a part of it is not UTF-8".to_owned())?;
    Ok(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_brokers_topic_and_login() {
        let url = "kafkas://me:s%40cret@a:9092,[::1]:9093/writes?sasl=plain&ca=/etc/ca.pem";
        let address = Address::parse(url).unwrap();
        let brokers = [("a".to_owned(), 9092), ("::1".to_owned(), 9093)];
        assert_eq!(address.brokers, brokers);
        assert_eq!((&*address.topic, address.tls), ("writes", true));
        assert_eq!(address.ca, Some("/etc/ca.pem".into()));
        let login = address.login.as_ref().unwrap();
        assert_eq!((&*login.user, login.password.reveal()), ("me", "s@cret"));
        assert_eq!(login.mechanism, Mechanism::Plain);
        let shown = format!("{address} {address:?}");
        assert!(shown.starts_with("kafkas://me:***@a:9092,[::1]:9093/writes"));
        assert!(!shown.contains("s@cret"), "{shown}");
        let other = address.with_suffix("-one").unwrap();
        assert_eq!(other.topic, "writes-one");
        assert!(other.with_suffix(&"x".repeat(240)).is_err());
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for url in [
            "http://a:1/t",
            "kafka://a:1",
            "kafka://me:hidden@a/t",
            "kafka://me:hidden@a:99999/t",
            "kafka://me:hidden@a:1/",
            "kafka://me:hidden@a:1/t?sasl=md5",
            "kafka://me:hidden@a:1/t?color=red",
            "kafka://a:1/t?sasl=plain",
            "kafka://me:hidden@a:1/t?sasl=plain",
        ] {
            let wrong = Address::parse(url).unwrap_err();
            assert!(wrong.contains("HOST:PORT"), "{wrong}");
            assert!(!wrong.contains("hidden"), "{wrong}");
        }
    }
}
