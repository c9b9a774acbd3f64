//! What may be shown of what was configured: everything that is not known to be harmless may be a
//! secret.

use std::fmt;

/// Parameters of a database URL whose values are shown.
const SHOWN: [&str; 8] = [
    "application_name",
    "charset",
    "connect_timeout",
    "ssl-mode",
    "sslmode",
    "target_session_attrs",
    "timeout",
    "tls",
];

/// Keys of the configuration whose values may hold a secret.
const SECRET: [&str; 6] = [
    "auth_query",
    "password",
    "server_password",
    "token",
    "url",
    "verifier",
];

/// A database URL as it may be shown: without its password, and without the values of parameters
/// that are not known to be harmless. What cannot be read shows its scheme alone.
pub(crate) fn url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return without_authority(url);
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    if tail.contains('@') {
        // A password with an unencoded slash: where it ends cannot be told.
        return format!("{scheme}://***");
    }
    let (user, hosts) = match authority.rsplit_once('@') {
        Some((user, hosts)) => (Some(user), hosts),
        None => (None, authority),
    };
    let user = user.map_or_else(String::new, |user| match user.split_once(':') {
        Some((name, _)) => format!("{name}:***@"),
        None => format!("{user}@"),
    });
    format!("{scheme}://{user}{hosts}{}", tail_of(tail))
}

/// `sqlite:PATH` and the like.
fn without_authority(url: &str) -> String {
    match url.split_once(':') {
        Some(("sqlite", _)) => tail_of(url),
        Some((scheme, _)) => format!("{scheme}:***"),
        None => "***".to_owned(),
    }
}

/// A path with the parameters behind it.
fn tail_of(tail: &str) -> String {
    let tail = tail.split('#').next().unwrap_or_default();
    let Some((path, query)) = tail.split_once('?') else {
        return tail.to_owned();
    };
    let shown = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, value)) if SHOWN.contains(&name) && is_plain(value) => pair.to_owned(),
        Some((name, _)) => format!("{name}=***"),
        None => "***".to_owned(),
    });
    format!("{path}?{}", shown.collect::<Vec<_>>().join("&"))
}

/// True for values that hold nothing but themselves: a URL that was put together badly may go on in
/// one.
fn is_plain(value: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    value.bytes().all(plain)
}

/// What is wrong with a configuration file, and where: never the line itself, and of a key whose
/// value may be a secret no more than its name.
#[derive(Debug)]
pub(crate) struct Trouble(String);

impl Trouble {
    /// Of a text and what its reader says of it.
    pub(crate) fn new(text: &str, error: &toml::de::Error) -> Self {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let before = text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let begun = before.rfind('\n').map_or(0, |newline| newline + 1);
        let written = text.get(begun..).unwrap_or_default();
        let written = written.lines().next().unwrap_or_default();
        let key = written.split('=').next().unwrap_or_default().trim();
        let is_secret = |word: &str| SECRET.contains(&word);
        let secret = key
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .any(is_secret);
        // A line without a key goes on with a value of a line before it, and what is no key may be
        // anything.
        let is_key = |c: char| c.is_ascii_alphanumeric() || "_-.[] ".contains(c);
        if secret
            || !key.chars().all(is_key)
            || !written.contains('=') && !written.trim_start().starts_with('[')
        {
            return Self(format!(
                "line {line}: the value is not of the right kind, or not well written (it is not shown, it may be a secret)"
            ));
        }
        Self(format!(
            "line {line}: {}",
            without_value(key, error.message())
        ))
    }
}

/// What a reader says of a value, without the value.
fn without_value(key: &str, message: &str) -> String {
    match message.rsplit_once(", expected ") {
        Some((found, expected)) if found.starts_with("invalid ") => {
            format!("{key}: expected {expected}")
        }
        _ => message.to_owned(),
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Trouble {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::File;

    #[test]
    fn only_what_is_known_to_be_harmless_of_a_url_is_shown() {
        for (given, shown) in [
            ("postgres://u:secret@h/d", "postgres://u:***@h/d"),
            (
                "postgres://u:se:cr@et@h:1,i:2/d?sslmode=require",
                "postgres://u:***@h:1,i:2/d?sslmode=require",
            ),
            (
                "postgres://h/d?password=secret&user=u",
                "postgres://h/d?password=***&user=***",
            ),
            ("mysql://u@h/d?secret", "mysql://u@h/d?***"),
            (
                "crate://h:4200/doc?token=secret#secret",
                "crate://h:4200/doc?token=***",
            ),
            (
                "sqlite:a.db?timeout=5?token=secret",
                "sqlite:a.db?timeout=***",
            ),
            ("postgres://u:sec/ret@h/d", "postgres://***"),
            ("postgres://u:sec?ret@h/d", "postgres://***"),
            ("sqlite:windrow.db", "sqlite:windrow.db"),
            ("sqlite:a.db?key=secret", "sqlite:a.db?key=***"),
            ("other:secret", "other:***"),
            ("secret", "***"),
        ] {
            assert_eq!(url(given), shown, "{given}");
        }
    }

    #[test]
    fn a_fault_in_the_configuration_shows_no_secret() {
        for text in [
            "[http]\ntoken = 12345678",
            "[http]\ntoken = \"12345678",
            "[http]\ntoken = [\n  \"12345678\"\n]",
            "[http]\ntokn = \"12345678\"",
            "[database]\nurl = { a = \"12345678\" }",
            "[pg.users.app]\nserver_password = 12345678\n",
            "[pg.users]\napp = \"12345678\"",
            "[pg\"12345678\"",
            "[\u{2}12345678]",
            "[pg.users.app]\nserver_password = \"\"\"\n12345678\"\"\"\nverifier = 1",
        ] {
            let error = toml::from_str::<File>(text).unwrap_err();
            let said = Trouble::new(text, &error).to_string();
            assert!(!said.contains("12345678"), "{said}");
            assert!(said.starts_with("line "), "{said}");
        }
        let text = "[limits]\n\nbatch_rows = 'many'";
        let said = Trouble::new(text, &toml::from_str::<File>(text).unwrap_err()).to_string();
        assert!(said.starts_with("line 3: batch_rows: expected "), "{said}");
    }
}
