//! Parses a URL.

use mysql_async::{Opts, OptsBuilder, SslOpts};
use windrow_core::Fault;
use windrow_mysqlwire::Target;
use windrow_mysqlwire::target::TlsMode;

/// Reads a URL of the form that [`Target::parse`] says.
///
/// # Errors
/// [`windrow_core::FaultClass::Invalid`]; the message never repeats a part that may hold a secret.
pub(super) fn read(url: &str) -> Result<Opts, Fault> {
    let target = Target::parse(url)?;
    let ssl_opts = ssl_opts(&target);
    let socket = target
        .socket
        .map(|path| path.to_string_lossy().into_owned());
    let password = target.password.reveal();
    let builder = OptsBuilder::default()
        .ip_or_hostname(target.host)
        .tcp_port(target.port)
        .user(Some(target.user).filter(|user| !user.is_empty()))
        .pass(Some(password).filter(|password| !password.is_empty()))
        .db_name(Some(target.database))
        .socket(socket)
        .ssl_opts(ssl_opts)
        // An UPDATE counts the rows that it finds, and not only those that it changes, as in other
        // databases.
        .client_found_rows(true)
        .prefer_socket(false)
        .stmt_cache_size(0);
    Ok(builder.into())
}

fn ssl_opts(target: &Target) -> Option<SslOpts> {
    let (any_certificate, any_name) = match target.tls {
        TlsMode::Disable => return None,
        TlsMode::Require => (true, true),
        TlsMode::VerifyCa => (false, true),
        TlsMode::VerifyFull => (false, false),
    };
    let options = SslOpts::default()
        .with_danger_accept_invalid_certs(any_certificate)
        .with_danger_skip_domain_validation(any_name);
    Some(match &target.roots {
        Some(path) => options
            .with_root_certs(vec![path.clone().into()])
            .with_disable_built_in_roots(true),
        None => options,
    })
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
