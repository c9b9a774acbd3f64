//! Server and user of a connection: connection URLs.

use std::fmt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use url::Url;
use windrow_core::{Fault, Secret, shown_parameter};

/// The port of MySQL and MariaDB.
const PORT: u16 = 3306;

/// The server of a connection, and the user of its login.
#[derive(Clone, Debug)]
pub struct Target {
    /// The server's name or address.
    pub host: String,
    /// The server's port.
    pub port: u16,
    /// The path of a UNIX-domain socket, which is used instead of host and port.
    pub socket: Option<PathBuf>,
    /// The user's name.
    pub user: String,
    /// The user's password. It may be empty.
    pub password: Secret,
    /// The database.
    pub database: String,
    /// The use of TLS.
    pub tls: TlsMode,
    /// A PEM file of authorities that sign servers' certificates.
    pub roots: Option<PathBuf>,
}

/// The use of TLS to a server, by the names of PostgreSQL's `sslmode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsMode {
    /// No TLS.
    #[default]
    Disable,
    /// TLS that verifies nothing.
    Require,
    /// TLS with a certificate that an authority has signed.
    VerifyCa,
    /// TLS with such a certificate for the host's name.
    VerifyFull,
}

impl Target {
    /// Reads `mysql://USER:PASSWORD@HOST:PORT/DATABASE` (or `mariadb://`), with the parameters
    /// `sslmode` (`disable`, the default; `require`, `verify-ca`, `verify-full`), `sslrootcert` (a
    /// PEM file, if no public authority signed the server's certificate) and `socket` (the path of
    /// a UNIX-domain socket, instead of host and port).
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Invalid`]; the message never repeats a part that may hold a
    /// secret.
    pub fn parse(url: &str) -> Result<Self, Fault> {
        let rest = url.split_once(':').map_or("", |(_, rest)| rest);
        let url = Url::parse(&format!("mysql:{rest}"))
            .map_err(|error| Fault::invalid(format!("the MySQL URL makes no sense: {error}")))?;
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let mut target = Self {
            host: url
                .host_str()
                .unwrap_or("localhost")
                .trim_matches(['[', ']'])
                .to_owned(),
            port: url.port().unwrap_or(PORT),
            socket: None,
            user: decoded(url.username()),
            password: decoded(url.password().unwrap_or_default()).into(),
            database: decoded(url.path().trim_start_matches('/')),
            tls: TlsMode::default(),
            roots: None,
        };
        if target.database.is_empty() {
            return Err(Fault::invalid(
                "the MySQL URL names no database; write mysql://USER@HOST:PORT/DATABASE",
            ));
        }
        for (name, value) in url.query_pairs() {
            target.set(&name, &value)?;
        }
        Ok(target)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Fault> {
        match name {
            "sslmode" => self.tls = mode(value)?,
            "sslrootcert" => self.roots = Some(PathBuf::from(value)),
            "socket" => self.socket = Some(PathBuf::from(value)),
            _ => {
                return Err(Fault::invalid(format!(
                    "the URL has a parameter {} that is not known; known are sslmode, sslrootcert and socket",
                    shown_parameter(name)
                )));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.socket {
            Some(path) => path.display().fmt(f),
            None => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

fn mode(written: &str) -> Result<TlsMode, Fault> {
    match written {
        "disable" => Ok(TlsMode::Disable),
        "require" => Ok(TlsMode::Require),
        "verify-ca" => Ok(TlsMode::VerifyCa),
        "verify-full" => Ok(TlsMode::VerifyFull),
        _ => Err(Fault::invalid(
            "sslmode of a MySQL URL is disable, require, verify-ca or verify-full",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_knows() {
        let url = "mariadb://u:p%40@h:3307/d?sslmode=verify-full&sslrootcert=/ca.pem";
        let target = Target::parse(url).unwrap();
        assert_eq!((&*target.user, target.password.reveal()), ("u", "p@"));
        assert_eq!(
            (&*target.host, target.port, &*target.database),
            ("h", 3307, "d")
        );
        assert_eq!(target.tls, TlsMode::VerifyFull);
        assert_eq!(target.to_string(), "h:3307");
        let target = Target::parse("mysql://h/d?socket=/run/s").unwrap();
        assert_eq!(
            (target.port, target.to_string()),
            (3306, "/run/s".to_owned())
        );
    }

    #[test]
    fn refuses_the_rest_without_its_secrets() {
        for url in [
            "mysql://u:secret@h",
            "mysql:",
            "mysql://u:secret@h/d?sslmode=maybe",
            "mysql://u:secret@h/d?compress=true",
            "mysql://u:secret@h:x/d",
        ] {
            let fault = Target::parse(url).unwrap_err();
            assert!(!fault.message.contains("secret"), "{fault}");
        }
    }
}
