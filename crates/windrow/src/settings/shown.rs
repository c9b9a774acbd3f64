//! Parts of the configuration that may be shown. Everything that is not known to be harmless may be
//! secret.

use std::fmt;

use super::keys::{is_secret, section_of};
use super::secret::OF_PLACE;

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

/// Returns a database URL as it may be shown: without its password, and without the values of
/// parameters that are not known to be harmless. For an invalid URL, only the scheme is shown.
pub(crate) fn url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return without_authority(url);
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    if tail.contains('@') {
        // The password contains an unencoded slash, so its end is unknown.
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

/// Returns a URL such as `sqlite:PATH`, which has no host.
fn without_authority(url: &str) -> String {
    match url.split_once(':') {
        Some(("sqlite", _)) => tail_of(url),
        Some((scheme, _)) => format!("{scheme}:***"),
        None => "***".to_owned(),
    }
}

/// Returns a path with the parameters after it.
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

/// Returns true for values without special characters: the value of a badly written URL may contain
/// the rest of it.
fn is_plain(value: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    value.bytes().all(plain)
}

/// An error in a configuration file, with the number of its line but never its text. If a value may
/// be secret, only the key's name is shown.
#[derive(Debug)]
pub(crate) struct Trouble {
    /// The line, from 1.
    pub(crate) line: usize,
    pub(crate) said: String,
}

impl Trouble {
    /// Makes an error of a text and the parser's message.
    pub(crate) fn new(text: &str, error: &toml::de::Error) -> Self {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let before = text.get(..at).unwrap_or_default();
        let line = line_of(text, at);
        let begun = before.rfind('\n').map_or(0, |newline| newline + 1);
        let written = text.get(begun..).unwrap_or_default();
        let written = written.lines().next().unwrap_or_default();
        let key = written.split('=').next().unwrap_or_default().trim();
        let secret = key
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .any(is_secret);
        if error.message().starts_with(OF_PLACE) {
            let said = error.message().to_owned();
            return Self { line, said };
        }
        // A line without a key continues a value of an earlier line. A text that is not a key may
        // be anything.
        let is_key = |c: char| c.is_ascii_alphanumeric() || "_-.[] ".contains(c);
        let names_key = key.chars().all(is_key);
        if names_key && error.message() == "duplicate key" {
            let said = match key.starts_with('[') {
                true => format!("{key} is written twice; put its keys together in one section"),
                false => format!("{key} is written twice in this section; keep one"),
            };
            return Self { line, said };
        }
        if secret || !names_key || !written.contains('=') && !written.trim_start().starts_with('[')
        {
            let said = "the value is not of the right kind, or not well written (it is not shown, it may be a secret)".to_owned();
            return Self { line, said };
        }
        let said = unknown(error.message());
        let said = said.unwrap_or_else(|| without_value(key, error.message()));
        Self { line, said }
    }
}

/// Returns the line that a byte is in, from 1.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Returns the message for an unknown name, with the most similar known one; `None` for any other
/// error.
fn unknown(message: &str) -> Option<String> {
    let is_key = message.starts_with("unknown field `");
    if !is_key && !message.starts_with("unknown variant `") {
        return None;
    }
    let mut names = message.split('`').skip(1).step_by(2);
    let (written, known) = (names.next()?, names.collect::<Vec<_>>());
    let what = if is_key { "key" } else { "value" };
    // A value whose quotes are missing or doubled continues on the next lines.
    let shown = match is_plain(written) {
        true => format!(" {written}"),
        false => String::new(),
    };
    let mut said = format!("the {what}{shown} is not known here");
    if let Some(meant) = nearest(written, &known) {
        said.push_str(&format!("; did you mean {meant}?"));
    } else if let Some(section) = is_key.then(|| section_of(written)).flatten() {
        said.push_str(&format!("; it belongs into {section}"));
    } else if !known.is_empty() {
        said.push_str(&format!("; known are {}", known.join(", ")));
    }
    Some(said)
}

/// Returns the known name that is most similar.
fn nearest<'n>(written: &str, known: &[&'n str]) -> Option<&'n str> {
    let written = written.to_ascii_lowercase().replace('-', "_");
    let distances = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&written, name), *name));
    let near = distances.filter(|(distance, name)| *distance <= 1 + name.len() / 4);
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Returns the parser's message about a value, without the value.
fn without_value(key: &str, message: &str) -> String {
    match message.rsplit_once(", expected ") {
        Some((found, "a string")) if number_of(found).is_some() => {
            let number = number_of(found).unwrap_or_default();
            format!("{key}: a number is written where a text belongs; write {key} = \"{number}\"")
        }
        Some((found, expected)) if found.starts_with("invalid ") => {
            format!("{key}: expected {}", in_words(expected))
        }
        _ => message.to_owned(),
    }
}

/// Returns the integer that a parser has found instead of another type.
fn number_of(found: &str) -> Option<&str> {
    let number = found.strip_prefix("invalid type: integer `")?;
    number.strip_suffix('`')
}

/// Returns the expected type in the terms of a configuration file.
fn in_words(expected: &str) -> &str {
    match expected {
        // The message of the parser of sizes.
        "parsable string" | "an integer or string" => {
            "a size such as \"64MiB\" or \"500kB\", or a number of bytes"
        }
        "a duration" => "a duration such as \"500ms\", \"5s\" or \"1m\"",
        "a boolean" => "true or false",
        "usize" => "a number, not below 0",
        "a string" => "a text in quotes",
        "path string" => "a path in quotes",
        "a sequence" => "a list in brackets, such as [\"a\", \"b\"]",
        "nothing" => "a value of TOML; a text stands in quotes",
        _ => expected,
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, said } = self;
        write!(f, "line {line}: {said}")
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
            "[database]\nack = \"\"\"spool\"\ntoken = \"12345678\"\"\"\"",
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

    #[test]
    fn what_was_meant_is_said() {
        for (text, told) in [
            (
                "[database]\nurll = 'x'",
                "line 2: the key urll is not known here; did you mean url?",
            ),
            (
                "[database]\nack = 'spol'",
                "line 2: the value spol is not known here; did you mean spool?",
            ),
            (
                "[pg]\nmax-clients = 1",
                "line 2: the key max-clients is not known here; did you mean max_clients?",
            ),
            (
                "[http]\nmemory = '1MiB'",
                "line 2: the key memory is not known here; it belongs into [limits]",
            ),
            (
                "[log]\ncolour = 1",
                "line 2: the key colour is not known here; known are filter, json",
            ),
            (
                "[limits]\nmemory = '5 apples'",
                "line 2: memory: expected a size such as \"64MiB\" or \"500kB\", or a number of bytes",
            ),
            (
                "[limits]\naway_wait = 5",
                "line 2: away_wait: expected a duration such as \"500ms\", \"5s\" or \"1m\"",
            ),
            (
                "[http]\nlisten = 6461",
                "line 2: listen: a number is written where a text belongs; write listen = \"6461\"",
            ),
            (
                "[http]\nlisten = true",
                "line 2: listen: expected a text in quotes",
            ),
            (
                "[http]\nlisten = '1'\nlisten = '2'",
                "line 3: listen is written twice in this section; keep one",
            ),
            (
                "[http]\n[log]\n[http]",
                "line 3: [http] is written twice; put its keys together in one section",
            ),
            (
                "[http]\nlisten = 127.0.0.1:5",
                "line 2: listen: expected a value of TOML; a text stands in quotes",
            ),
        ] {
            assert_eq!(File::parse(text).unwrap_err().to_string(), told);
        }
    }
}
