//! Parameters of libpq's URLs that Windrow ignores. Parameters whose absence would make a
//! connection less safe are refused by name.

use windrow_core::Fault;

/// Parameters that have no meaning for Windrow.
const WITHOUT_MEANING: [&str; 9] = [
    "gssdelegation",
    "gsslib",
    "krbsrvname",
    "sslcompression",
    "sslkeylogfile",
    "sslpassword",
    "sslsni",
    "client_encoding",
    "max_protocol_version",
];

/// Parameters with the values that ask for what Windrow does anyway, and a description of that.
const MET: [(&str, &[&str], &str); 8] = [
    (
        "gssencmode",
        &["disable", "prefer"],
        "encryption by GSSAPI is not supported",
    ),
    (
        "sslcertmode",
        &["allow"],
        "a client certificate is sent if the server asks for one",
    ),
    (
        "ssl_min_protocol_version",
        &["TLSv1", "TLSv1.1", "TLSv1.2"],
        "TLS 1.2 and 1.3 are spoken",
    ),
    (
        "ssl_max_protocol_version",
        &["TLSv1.3", ""],
        "TLS 1.2 and 1.3 are spoken",
    ),
    (
        "min_protocol_version",
        &["3.0"],
        "servers are spoken to in version 3.0 of the protocol",
    ),
    (
        "replication",
        &["false", "off", "no", "0"],
        "replication connections are not supported",
    ),
    (
        "requirepeer",
        &[""],
        "the owner of a server's socket is not checked",
    ),
    (
        "require_auth",
        &[""],
        "the way of authentication is left to the server",
    ),
];

/// Returns true for a parameter that may be ignored.
///
/// # Errors
/// A parameter of libpq whose value asks for something that Windrow does not do.
pub(super) fn is_known(name: &str, value: &str) -> Result<bool, Fault> {
    if WITHOUT_MEANING.contains(&name) {
        return Ok(true);
    }
    if matches!(name, "sslcrl" | "sslcrldir") {
        if value.is_empty() {
            return Ok(true);
        }
        return Err(Fault::invalid(format!(
            "the URL's parameter {name} is not supported: revoked certificates are not looked up; leave it out to connect without that"
        )));
    }
    let mut met = MET.iter();
    let Some((_, values, why)) = met.find(|(known, ..)| *known == name) else {
        return Ok(false);
    };
    if values.contains(&value) {
        return Ok(true);
    }
    let values = values.iter().filter(|value| !value.is_empty());
    let values: Vec<_> = values.copied().collect();
    let possible = match values.is_empty() {
        true => "leave it out".to_owned(),
        false => format!("possible are {}", values.join(", ")),
    };
    Err(Fault::invalid(format!(
        "this value of the URL's parameter {name} is not supported: {why}; {possible}"
    )))
}
