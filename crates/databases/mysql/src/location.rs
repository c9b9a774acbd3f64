//! Parses a URL.

use std::path::PathBuf;

use mysql_async::{Opts, OptsBuilder, SslOpts};
use url::Url;
use windrow_core::{Fault, shown_parameter};

/// Reads `mysql://USER:PASSWORD@HOST:PORT/DATABASE` (or `mariadb://`), with the parameters
/// `sslmode` (`disable`, the default; `require`, `verify-ca`, `verify-full`), `sslrootcert` (a PEM
/// file, if no public authority signed the server's certificate) and `socket` (the
/// path of a UNIX socket, instead of host and port).
///
/// # Errors
/// [`windrow_core::FaultClass::Invalid`]; the message never repeats a part that may hold a secret.
pub(super) fn read(url: &str) -> Result<Opts, Fault> {
    let rest = url.split_once(':').map_or("", |(_, rest)| rest);
    let parsed = Url::parse(&format!("mysql:{rest}"))
        .map_err(|e| Fault::invalid(format!("the MySQL URL makes no sense: {e}")))?;
    if parsed.path().trim_start_matches('/').is_empty() {
        return Err(Fault::invalid(
            "the MySQL URL names no database; write mysql://USER@HOST:PORT/DATABASE",
        ));
    }
    let mut bare = parsed.clone();
    bare.set_query(None);
    let opts = Opts::from_url(bare.as_str()).map_err(|_| {
        Fault::invalid("the MySQL URL makes no sense; write mysql://USER@HOST:PORT/DATABASE")
    })?;
    let mut builder = OptsBuilder::from_opts(opts)
        // An UPDATE counts the rows that it finds, and not only those that it changes, as in other
        // databases.
        .client_found_rows(true)
        .prefer_socket(false)
        .stmt_cache_size(0);
    let mut tls = Tls::default();
    for (name, value) in parsed.query_pairs() {
        match &*name {
            "sslmode" => tls.mode(&value)?,
            "sslrootcert" => tls.roots = Some(PathBuf::from(value.into_owned())),
            "socket" => builder = builder.socket(Some(value.into_owned())),
            _ => {
                return Err(Fault::invalid(format!(
                    "the URL has a parameter {} that is not known; known are sslmode, sslrootcert and socket",
                    shown_parameter(&name)
                )));
            }
        }
    }
    Ok(builder.ssl_opts(tls.options()).into())
}

#[derive(Debug, Default)]
struct Tls {
    on: bool,
    any_certificate: bool,
    any_name: bool,
    roots: Option<PathBuf>,
}

impl Tls {
    fn mode(&mut self, mode: &str) -> Result<(), Fault> {
        (self.on, self.any_certificate, self.any_name) = match mode {
            "disable" => (false, false, false),
            "require" => (true, true, true),
            "verify-ca" => (true, false, true),
            "verify-full" => (true, false, false),
            _ => {
                return Err(Fault::invalid(
                    "sslmode of a MySQL URL is disable, require, verify-ca or verify-full",
                ));
            }
        };
        Ok(())
    }

    fn options(self) -> Option<SslOpts> {
        if !self.on {
            return None;
        }
        let options = SslOpts::default()
            .with_danger_accept_invalid_certs(self.any_certificate)
            .with_danger_skip_domain_validation(self.any_name);
        Some(match self.roots {
            Some(path) => options
                .with_root_certs(vec![path.into()])
                .with_disable_built_in_roots(true),
            None => options,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_knows() {
        let opts = read("mariadb://u:p%40@h:3307/d?sslmode=verify-full").unwrap();
        assert_eq!((opts.user(), opts.pass()), (Some("u"), Some("p@")));
        assert_eq!((opts.ip_or_hostname(), opts.tcp_port()), ("h", 3307));
        assert_eq!(opts.db_name(), Some("d"));
        assert!(opts.ssl_opts().is_some() && opts.client_found_rows());
        let opts = read("mysql://h/d?socket=/run/s").unwrap();
        assert_eq!((opts.socket(), opts.tcp_port()), (Some("/run/s"), 3306));
        assert!(opts.ssl_opts().is_none());
    }

    #[test]
    fn refuses_the_rest_without_its_secrets() {
        for url in [
            "mysql://u:secret@h",
            "mysql://u:secret@h/",
            "mysql:",
            "mysql://u:secret@h/d?sslmode=maybe",
            "mysql://u:secret@h/d?compress=true",
            "mysql://u:secret@h:x/d",
        ] {
            let fault = read(url).unwrap_err();
            assert_eq!(fault.class, windrow_core::FaultClass::Invalid, "{url}");
            assert!(!fault.message.contains("secret"), "{fault}");
        }
    }
}
