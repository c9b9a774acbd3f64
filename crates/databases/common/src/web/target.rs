//! The parts of a URL: `scheme://USER:PASSWORD@HOST:PORT/PATH?parameter=value`, with reserved
//! characters percent-encoded.

use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use url::Url;
use windrow_core::{Fault, Secret, shown_parameter};

/// The timeout of an answer, unless the URL sets another one.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The address of a database, and the login. Neither `Debug` nor any error shows a password.
#[derive(Clone, Debug)]
pub struct Target {
    /// True if the connection is encrypted.
    pub tls: bool,
    /// A name or an IP address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The login; `None` if the URL names none.
    pub login: Option<Login>,
    /// The parts of the path, decoded, without empty ones.
    pub path: Vec<String>,
    /// A PEM file with the trusted authorities.
    pub roots: Option<PathBuf>,
    /// The timeout of an answer.
    pub timeout: Duration,
    /// The parameters that were not used yet.
    parameters: Vec<(String, Secret)>,
}

/// A user and a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub password: Secret,
}

impl Target {
    /// Parses a URL. `tls`: true if the scheme asks for it; `port`: the default; `form`: the form
    /// of such URLs, for the message.
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Invalid`]; the message never repeats the URL, which may contain
    /// a password.
    pub fn parse(url: &str, tls: bool, port: u16, form: &str) -> Result<Self, Fault> {
        let wrong = |what: &str| Fault::invalid(format!("{what}; the URL's form is {form}"));
        let parsed =
            Url::parse(url).map_err(|error| wrong(&format!("the URL cannot be read: {error}")))?;
        let host = parsed
            .host_str()
            .filter(|host| !host.is_empty())
            .ok_or_else(|| wrong("the URL names no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let user = decode(parsed.username(), "the user")?;
        let password = decode(parsed.password().unwrap_or_default(), "the password")?.into();
        let path = parsed.path().split('/').filter(|part| !part.is_empty());
        let mut target = Self {
            tls,
            host: decode(host, "the host")?,
            port: parsed.port().unwrap_or(port),
            login: (!user.is_empty()).then_some(Login { user, password }),
            path: path
                .map(|part| decode(part, "the path"))
                .collect::<Result<_, _>>()?,
            roots: None,
            timeout: TIMEOUT,
            parameters: parsed
                .query_pairs()
                .map(|(name, value)| (name.into_owned(), value.into_owned().into()))
                .collect(),
        };
        target.roots = target
            .take("sslrootcert")
            .map(|path| PathBuf::from(path.reveal()));
        if target.roots.is_some() && !tls {
            return Err(wrong("the URL's sslrootcert needs a scheme with TLS"));
        }
        if let Some(seconds) = target.take("timeout") {
            let seconds = seconds
                .reveal()
                .parse()
                .ok()
                .filter(|seconds| (1..=86_400).contains(seconds));
            target.timeout =
                Duration::from_secs(seconds.ok_or_else(|| {
                    wrong("the URL's timeout is a number of seconds, 1 to 86400")
                })?);
        }
        Ok(target)
    }

    /// Removes and returns a parameter.
    pub fn take(&mut self, name: &str) -> Option<Secret> {
        let place = self.parameters.iter().position(|(n, _)| n == name)?;
        Some(self.parameters.swap_remove(place).1)
    }

    /// Checks that all parameters were taken.
    ///
    /// # Errors
    /// The first unknown parameter, with the known ones.
    pub fn finish(&self, known: &str) -> Result<(), Fault> {
        match self.parameters.first() {
            None => Ok(()),
            Some((name, _)) => Err(Fault::invalid(format!(
                "the URL has a parameter {} that is not known; known are sslrootcert, timeout{known}",
                shown_parameter(name)
            ))),
        }
    }
}

/// Decodes a part of a URL. `what` is its name in the message; the part itself may be secret.
fn decode(part: &str, what: &str) -> Result<String, Fault> {
    percent_decode_str(part)
        .decode_utf8()
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| Fault::invalid(format!("{what} of the URL is not UTF-8 once decoded")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Target, Fault> {
        let target = Target::parse(url, url.starts_with("xs:"), 4200, "x://HOST")?;
        target.finish("")?;
        Ok(target)
    }

    #[test]
    fn reads_all_parts() {
        let t =
            parse("xs://us%40er:p%2Fw@example.com:1/a%20b?timeout=7&sslrootcert=/x.pem").unwrap();
        assert_eq!((&*t.host, t.port, t.tls), ("example.com", 1, true));
        let login = t.login.unwrap();
        assert_eq!((&*login.user, login.password.reveal()), ("us@er", "p/w"));
        assert!(!format!("{login:?}").contains("p/w"));
        assert_eq!(t.path, ["a b"]);
        assert_eq!(t.timeout, Duration::from_secs(7));
        assert_eq!(t.roots, Some(PathBuf::from("/x.pem")));
        let bare = parse("x://[::1]").unwrap();
        assert_eq!((&*bare.host, bare.port, bare.path.len()), ("::1", 4200, 0));
        assert!(bare.login.is_none());
    }

    #[test]
    fn what_makes_no_sense_is_named_and_the_password_is_not() {
        for (url, part) in [
            ("x:secret", "names no host"),
            ("x://u:secret@h?nope=1", "\"nope\""),
            ("x://u:secret@h?timeout=0", "1 to 86400"),
            ("x://u:secret@h?sslrootcert=x", "needs a scheme with TLS"),
            ("x://u:secret%ff@h", "the password of the URL is not UTF-8"),
            ("x://u:secret@h:99999", "cannot be read"),
        ] {
            let fault = parse(url).unwrap_err();
            assert!(fault.message.contains(part), "{fault}");
            assert!(!fault.message.contains("secret"), "{fault}");
        }
    }
}
