//! The parameters of a startup packet: the role, the database, and the settings.

use std::sync::Arc;

use windrow_core::{Fault, FaultClass, Name};

use super::not_admitted::NotAdmitted;
use crate::client::{Identity, Settings};

/// The parameters that a client asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) identity: Identity,
    pub(super) settings: Settings,
    pub(super) application_name: Name,
    /// Windrow's own settings, by their names after `windrow.`, in the client's order.
    pub(super) own: Vec<(Name, Name)>,
}

/// Reads the parameters.
pub(super) fn read(parameters: Vec<(String, String)>) -> Result<Request, NotAdmitted> {
    let mut role = None;
    let mut database = None;
    let mut application_name = Name::from("");
    let mut own = Vec::new();
    let mut startup: Vec<(Name, Name)> = Vec::new();
    for (name, value) in parameters {
        // Names of settings are not case-sensitive; if a name is repeated, the last value counts.
        match name.to_ascii_lowercase().as_str() {
            "user" => role = Some(value).filter(|role| !role.is_empty()),
            "database" => database = Some(value).filter(|name| !name.is_empty()),
            "replication" => replication(&value)?,
            "application_name" => application_name = value.into(),
            "options" => {
                let theirs = options(&value, &mut own);
                set(&mut startup, "options", &theirs);
            }
            name => match name.strip_prefix("windrow.") {
                Some(name) => own.push((name.into(), value.into())),
                None => set(&mut startup, name, &value),
            },
        }
    }
    let role = role.ok_or_else(|| {
        let text = "no PostgreSQL user name specified in startup packet";
        Fault::new(FaultClass::Denied, "28000", text)
    })?;
    startup.retain(|(name, value)| &**name != "options" || !value.is_empty());
    startup.sort();
    Ok(Request {
        identity: Identity {
            database: database.unwrap_or_else(|| role.clone()).into(),
            role: role.into(),
        },
        settings: Settings {
            startup: startup.into(),
            set: Arc::default(),
            version: 0,
        },
        application_name,
        own,
    })
}

fn set(startup: &mut Vec<(Name, Name)>, name: &str, value: &str) {
    startup.retain(|(known, _)| &**known != name);
    startup.push((name.into(), value.into()));
}

/// Refuses replication: physical and logical replication are protocols of their own.
fn replication(value: &str) -> Result<(), Fault> {
    if boolean(value) == Some(false) {
        return Ok(());
    }
    let text = "replication connections are not relayed: connect to the PostgreSQL server itself";
    Err(Fault::new(FaultClass::Unsupported, "0A000", text))
}

/// Removes Windrow's own settings from command-line options; returns the other options.
fn options(text: &str, own: &mut Vec<(Name, Name)>) -> String {
    let mut others = String::new();
    let mut arguments = split(text).into_iter();
    while let Some(argument) = arguments.next() {
        let mut whole = vec![argument];
        // `-c name=value`, `-cname=value` and `--name=value` mean the same.
        if whole.first().is_some_and(|first| first == "-c") {
            whole.extend(arguments.next());
        }
        let last = whole.last().map_or("", |last| last.as_str());
        let setting = last
            .strip_prefix("--")
            .or_else(|| last.strip_prefix("-c"))
            .unwrap_or(last);
        let pair = setting.split_once('=');
        let pair = pair.map(|(name, value)| (name.to_ascii_lowercase(), value));
        let ours = |(name, value): &(String, &str)| {
            let name = name.strip_prefix("windrow.")?;
            Some((Name::from(name), Name::from(*value)))
        };
        match pair.as_ref().and_then(ours) {
            Some(pair) => own.push(pair),
            None => whole
                .iter()
                .for_each(|argument| join_argument(&mut others, argument)),
        }
    }
    others
}

/// Splits at white space; a backslash escapes the next character (`pg_split_opts`).
fn split(text: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut argument: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => argument.get_or_insert_default().extend(characters.next()),
            white if white.is_ascii_whitespace() => arguments.extend(argument.take()),
            other => argument.get_or_insert_default().push(other),
        }
    }
    arguments.extend(argument);
    arguments
}

fn join_argument(all: &mut String, argument: &str) {
    if !all.is_empty() {
        all.push(' ');
    }
    // Only a backslash at the end of the text leaves an empty argument.
    if argument.is_empty() {
        all.push('\\');
    }
    for character in argument.chars() {
        if character == '\\' || character.is_ascii_whitespace() {
            all.push('\\');
        }
        all.push(character);
    }
}

/// Reads PostgreSQL's words for true and false, or any unambiguous prefix of them.
fn boolean(value: &str) -> Option<bool> {
    let value = value.trim().to_ascii_lowercase();
    let is = |word: &str, least: usize| value.len() >= least && word.starts_with(&value);
    if is("true", 1) || is("yes", 1) || is("on", 2) || value == "1" {
        Some(true)
    } else if is("false", 1) || is("no", 1) || is("off", 2) || value == "0" {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(pairs: &[(&str, &str)]) -> Result<Request, String> {
        let own = |text: &&str| (*text).to_owned();
        let pairs = pairs.iter().map(|(name, value)| (own(name), own(value)));
        read(pairs.collect()).map_err(|ended| match ended {
            NotAdmitted::Fatal(fault) => fault.code.into_owned(),
            other => format!("{other:?}"),
        })
    }

    fn startup(request: &Request) -> Vec<(&str, &str)> {
        let startup = request.settings.startup.iter();
        startup.map(|(name, value)| (&**name, &**value)).collect()
    }

    #[test]
    fn settings_that_are_equal_look_equal() {
        let one = request(&[
            ("user", "me"),
            ("TimeZone", "UTC"),
            ("client_encoding", "UTF8"),
            ("application_name", "one"),
            ("options", "-c geqo=off -c windrow.join=off"),
        ])
        .unwrap();
        let other = request(&[
            ("options", " --windrow.join=on  -c geqo=off"),
            ("client_encoding", "UTF8"),
            ("timezone", "GMT"),
            ("timezone", "UTC"),
            ("database", "me"),
            ("user", "me"),
        ])
        .unwrap();
        assert_eq!(one.settings, other.settings);
        assert_eq!(one.identity, other.identity);
        let own = |request: &Request| (*request.own[0].0).to_owned() + "=" + &request.own[0].1;
        assert_eq!(
            (own(&one), own(&other)),
            ("join=off".into(), "join=on".into())
        );
        assert_eq!(
            (&*one.application_name, &*other.application_name),
            ("one", "")
        );
        assert_eq!(
            startup(&one),
            [
                ("client_encoding", "UTF8"),
                ("options", "-c geqo=off"),
                ("timezone", "UTC")
            ]
        );
    }

    #[test]
    fn options_are_split_as_the_server_does() {
        let others = |text: &str| options(text, &mut Vec::new());
        assert_eq!(
            others(r"-c search_path=a\ b,\\c  -cx=1"),
            r"-c search_path=a\ b,\\c -cx=1"
        );
        assert_eq!(others("-cwindrow.join=no"), "");
        assert_eq!(others("-c"), "-c");
        // The server refuses an argument without text: it has to see it.
        assert_eq!(others(r"\"), r"\");
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for (pairs, code) in [
            (&[("database", "d")][..], "28000"),
            (&[("user", "")][..], "28000"),
            (&[("user", "u"), ("replication", "database")][..], "0A000"),
            (&[("user", "u"), ("replication", "1")][..], "0A000"),
        ] {
            assert_eq!(request(pairs).err().as_deref(), Some(code), "{pairs:?}");
        }
        assert!(
            request(&[
                ("user", "u"),
                ("replication", "off"),
                ("windrow.defer", "f")
            ])
            .is_ok()
        );
    }

    proptest! {
        #[test]
        fn what_is_not_ours_means_the_same_afterwards(text in r"[-c=a \\\t]{0,20}") {
            let others = options(&text, &mut Vec::new());
            // An empty argument, which only a lone backslash makes, means nothing.
            let said = |text: &str| split(text).into_iter().filter(|a| !a.is_empty()).collect::<Vec<_>>();
            prop_assert_eq!(said(&others), said(&text));
        }
    }
}
