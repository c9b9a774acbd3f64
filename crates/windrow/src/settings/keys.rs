//! The table of all keys of the configuration file, by section. Errors use it for names and
//! secrets, a reload to find what takes effect, and docs/configuration.md for its list.

use super::file::{
    Database, Http, Limit, Log, MqttSection, MqttTopic, MysqlSection, MysqlUser, NamedToken, Pg,
    PgDatabase, PgUser, Replicas, Spool, Sqlite, Traces, WrittenReplica, WrittenTls,
};
use super::section::ConfigKey;

/// A part of a section's name that the operator chooses.
const NAME: &str = "NAME";

/// The sections by their names, in the order of the page.
const SECTIONS: [(&str, &[ConfigKey]); 21] = [
    ("database", Database::KEYS),
    ("database.sqlite", Sqlite::KEYS),
    ("http", Http::KEYS),
    ("http.tls", WrittenTls::KEYS),
    ("http.tokens.NAME", NamedToken::KEYS),
    ("pg", Pg::KEYS),
    ("pg.tls", WrittenTls::KEYS),
    ("pg.databases.NAME", PgDatabase::KEYS),
    ("pg.users.NAME", PgUser::KEYS),
    ("mysql", MysqlSection::KEYS),
    ("mysql.tls", WrittenTls::KEYS),
    ("mysql.users.NAME", MysqlUser::KEYS),
    ("mqtt", MqttSection::KEYS),
    ("mqtt.topics.NAME", MqttTopic::KEYS),
    ("spool", Spool::KEYS),
    ("replicas", Replicas::KEYS),
    ("replica", WrittenReplica::KEYS),
    ("limits", Limit::KEYS),
    ("log", Log::KEYS),
    ("traces", Traces::KEYS),
    // Keys with passwords in other tools' files, which may have been copied here.
    ("", &[ConfigKey::new("password", "").secret().section()]),
];

/// Returns all keys that hold values, each with its section.
fn all() -> impl Iterator<Item = (&'static str, &'static ConfigKey)> {
    let each = |(section, keys): &(&'static str, &'static [ConfigKey])| {
        let section = *section;
        keys.iter().map(move |key| (section, key))
    };
    SECTIONS
        .iter()
        .flat_map(each)
        .filter(|(_, key)| !key.is_section)
}

/// Returns true for the name of a key whose value may hold a secret.
pub(super) fn is_secret(name: &str) -> bool {
    let keys = SECTIONS.iter().flat_map(|(_, keys)| *keys);
    keys.filter(|key| key.is_secret).any(|key| key.name == name)
}

/// Returns the section that has such a key, as the file writes it.
pub(super) fn section_of(name: &str) -> Option<String> {
    let (section, _) = all().find(|(_, key)| key.name == name)?;
    Some(match section {
        "replica" => "[[replica]]".to_owned(),
        section => format!("[{section}]"),
    })
}

/// Returns true if a setting takes effect when the configuration is read again. `path`: its name
/// with those of its sections, and with that of a place (`file`, `env`) if a secret names one.
pub(super) fn is_reloaded(path: &str) -> bool {
    let mut reloaded = all().filter(|(_, key)| key.is_reloaded);
    reloaded.any(|(section, key)| {
        let known = format!("{section}.{}", key.name);
        match known.split_once(NAME) {
            Some((before, after)) => {
                let chosen = path.strip_prefix(before).unwrap_or_default();
                let mut ends = chosen.match_indices(after).map(|(at, _)| at);
                ends.any(|at| {
                    at > 0 && is_whole(chosen.get(at + after.len()..).unwrap_or_default())
                })
            }
            None => path.strip_prefix(&known).is_some_and(is_whole),
        }
    })
}

/// Returns true if `rest` begins after a whole name.
fn is_whole(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('.')
}

/// Returns the list of settings of the page docs/configuration.md.
pub fn markdown() -> String {
    let line = |(section, key): (&str, &ConfigKey)| {
        let mark = if key.is_reloaded { " *(reload)*" } else { "" };
        let ConfigKey { name, about, .. } = key;
        format!("- `{section}.{name}`: {about}{mark}\n")
    };
    all().map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::settings::EXAMPLE;

    #[test]
    fn the_page_has_the_list() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let page = std::fs::read_to_string(path).unwrap();
        let list = markdown();
        assert!(page.contains(&list), "docs/configuration.md lacks:\n{list}");
    }

    #[test]
    fn the_example_has_every_key_and_no_other() {
        let mut section = String::new();
        let mut found = BTreeSet::new();
        for line in EXAMPLE.lines() {
            let line = line.strip_prefix("# ").unwrap_or(line);
            if let Some(name) = line.strip_prefix('[') {
                let name = name.trim_matches(['[', ']']);
                section = name.replace("pg.users.app", "pg.users.NAME");
                section = section.replace("mysql.users.app", "mysql.users.NAME");
                section = section.replace("mqtt.topics.readings", "mqtt.topics.NAME");
                section = section.replace("http.tokens.sensors", "http.tokens.NAME");
                section = section.replace("pg.databases.orders", "pg.databases.NAME");
            } else if let Some((key, _)) = line.split_once(" = ")
                && key.chars().all(|c| c.is_ascii_lowercase() || c == '_')
            {
                found.insert(format!("{section}.{key}"));
            }
        }
        let known = all().map(|(section, key)| format!("{section}.{}", key.name));
        assert_eq!(found, known.collect());
    }

    #[test]
    fn a_name_that_the_operator_chose_stands_for_any() {
        for path in [
            "pg.users.app.verifier",
            "pg.users.a.b.verifier.env",
            "http.tls.key",
        ] {
            assert!(is_reloaded(path), "{path}");
        }
        assert!(!is_reloaded("pg.users.app.verifiers") && !is_reloaded("http.token_files"));
        assert!(!is_reloaded("pg.databases.orders.url") && !is_reloaded("http.max_row"));
        assert!(is_secret("password") && is_secret("headers") && !is_secret("listen"));
        assert_eq!(section_of("memory").as_deref(), Some("[limits]"));
    }
}
