//! Parses commands and queries of the console.

use windrow_core::{Fault, FaultClass};

/// A command or a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// An empty text.
    Empty,
    /// Shows a table.
    Show(Show),
    /// Explains a table's columns.
    Help(Show),
    /// Holds work back, in one database or all.
    Pause(Option<String>),
    /// Resumes work.
    Resume(Option<String>),
    /// Reads the configuration again.
    Reload,
    /// Ends the process.
    Shutdown,
    /// A statement that drivers and pools send by themselves, with the tag that they expect, and
    /// the transaction status that they then believe in.
    Courtesy(&'static str, Option<u8>),
    /// The query by which pools check that a connection is alive.
    One,
}

/// The tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    Lanes,
    Clients,
    Servers,
    Pools,
    Databases,
    Stats,
    Bypass,
    Config,
    Version,
    Help,
}

impl Show {
    pub(super) const ALL: [Self; 10] = [
        Self::Lanes,
        Self::Clients,
        Self::Servers,
        Self::Pools,
        Self::Databases,
        Self::Stats,
        Self::Bypass,
        Self::Config,
        Self::Version,
        Self::Help,
    ];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Lanes => "LANES",
            Self::Clients => "CLIENTS",
            Self::Servers => "SERVERS",
            Self::Pools => "POOLS",
            Self::Databases => "DATABASES",
            Self::Stats => "STATS",
            Self::Bypass => "BYPASS",
            Self::Config => "CONFIG",
            Self::Version => "VERSION",
            Self::Help => "HELP",
        }
    }

    fn of(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|show| show.word().eq_ignore_ascii_case(word))
    }
}

impl Command {
    /// Reads one command.
    pub(super) fn parse(text: &str) -> Result<Self, Fault> {
        let words: Vec<&str> = text
            .trim()
            .trim_end_matches(';')
            .split_whitespace()
            .collect();
        let folded: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
        let folded: Vec<&str> = folded.iter().map(String::as_str).collect();
        let name = || words.get(1).map(|name| unquoted(name));
        let command = match folded.as_slice() {
            [] => Self::Empty,
            ["show", table] => Self::Show(Show::of(table).ok_or_else(|| unknown(text))?),
            ["help"] => Self::Show(Show::Help),
            ["help", table] => Self::Help(Show::of(table).ok_or_else(|| unknown(text))?),
            ["pause"] | ["pause", _] => Self::Pause(name()),
            ["resume"] | ["resume", _] => Self::Resume(name()),
            ["reload"] => Self::Reload,
            ["shutdown"] => Self::Shutdown,
            ["select", "1"] => Self::One,
            ["set", ..] => Self::Courtesy("SET", None),
            ["reset", ..] => Self::Courtesy("RESET", None),
            ["discard", ..] => Self::Courtesy("DISCARD ALL", None),
            ["deallocate", ..] => Self::Courtesy("DEALLOCATE", None),
            ["begin", ..] | ["start", "transaction", ..] => Self::Courtesy("BEGIN", Some(b'T')),
            ["commit", ..] | ["end", ..] => Self::Courtesy("COMMIT", Some(b'I')),
            ["rollback", ..] | ["abort", ..] => Self::Courtesy("ROLLBACK", Some(b'I')),
            _ => return Err(unknown(text)),
        };
        Ok(command)
    }
}

/// Splits a text into commands, at semicolons outside of quotes.
pub(super) fn split(text: &str) -> Vec<&str> {
    let mut quote = None;
    let parts = text.split(|character| {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
        quote.is_none() && character == ';'
    });
    parts.filter(|part| !part.trim().is_empty()).collect()
}

fn unquoted(name: &str) -> String {
    let inside = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'));
    inside.map_or_else(|| name.to_owned(), |name| name.replace("\"\"", "\""))
}

fn unknown(text: &str) -> Fault {
    let start: String = text.trim().chars().take(100).collect();
    let tables: Vec<_> = Show::ALL.iter().map(|show| show.word()).collect();
    let hint = format!(
        "Known are SHOW {}, HELP [TABLE], PAUSE [DATABASE], RESUME [DATABASE], RELOAD, SHUTDOWN.",
        tables.join(", SHOW ")
    );
    Fault::new(
        FaultClass::Invalid,
        "42601",
        format!("the console does not know the command \"{start}\""),
    )
    .with_hint(Some(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_no_case_and_names_have() {
        for (text, command) in [
            ("", Command::Empty),
            (" show  LANES ; ", Command::Show(Show::Lanes)),
            ("help clients", Command::Help(Show::Clients)),
            ("PAUSE", Command::Pause(None)),
            ("pause App", Command::Pause(Some("App".to_owned()))),
            (
                "RESUME \"a\"\"b\"",
                Command::Resume(Some("a\"b".to_owned())),
            ),
            ("SET extra_float_digits = 3", Command::Courtesy("SET", None)),
            (
                "start transaction read only",
                Command::Courtesy("BEGIN", Some(b'T')),
            ),
        ] {
            assert_eq!(Command::parse(text), Ok(command), "{text}");
        }
        for text in [
            "show",
            "show x",
            "drop table t",
            "pause a b",
            "help x",
            "start",
        ] {
            let fault = Command::parse(text).unwrap_err();
            assert!(
                fault.hint().is_some_and(|hint| hint.contains("SHOW LANES")),
                "{text}"
            );
        }
    }

    #[test]
    fn a_text_is_split_outside_of_quotes() {
        assert_eq!(
            split("show lanes; set a = 'x;y';;"),
            ["show lanes", " set a = 'x;y'"]
        );
        assert_eq!(split(" ; "), [""; 0]);
    }
}
