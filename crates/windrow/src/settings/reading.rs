//! Parses a configuration file's text: everything that is valid, and all errors of form.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer};

use super::file::File;
use super::shown::Trouble;

/// The most errors that are reported.
const MOST: usize = 100;

/// The errors in a text; at least one.
#[derive(Debug)]
pub(super) struct Troubles(pub(super) Vec<Trouble>);

impl fmt::Display for Troubles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(all) = self;
        if let [one] = all.as_slice() {
            return one.fmt(f);
        }
        write!(f, "{} things are wrong", all.len())?;
        all.iter().try_for_each(|one| write!(f, "\n  {one}"))
    }
}

impl std::error::Error for Troubles {}

/// Parses a text. Leaves invalid parts out, so that the rest can be checked.
pub(super) fn read(text: &str) -> (File, Vec<Trouble>) {
    let (mut table, errors) = DeTable::parse_recoverable(text);
    let mut troubles: Vec<Trouble> = Vec::new();
    let mut add = |error: &toml::de::Error| {
        let trouble = Trouble::new(text, error);
        // An error often causes further ones later on the same line.
        if troubles.iter().all(|known| known.line != trouble.line) {
            troubles.push(trouble);
        }
    };
    errors.iter().for_each(&mut add);
    let mut file = File::default();
    for _ in 0..MOST {
        match File::deserialize(Deserializer::from(table.clone())) {
            Ok(read) => {
                file = read;
                break;
            }
            Err(error) => {
                add(&error);
                let at = error.span().unwrap_or_default();
                if !leave_out(table.get_mut(), &at) {
                    break;
                }
            }
        }
    }
    troubles.sort_by_key(|trouble| trouble.line);
    (file, troubles)
}

/// Removes the entry with an error. Returns false if there is none.
fn leave_out(table: &mut DeTable<'_>, at: &Range<usize>) -> bool {
    let is_at =
        |key: &Spanned<_>, value: &Spanned<DeValue<'_>>| key.span() == *at || value.span() == *at;
    let exact = table.iter().find(|(key, value)| is_at(key, value));
    if let Some(key) = exact.map(|(key, _)| key.clone()) {
        return table.remove(&key).is_some();
    }
    for (_, value) in table.iter_mut() {
        let left_out = match value.get_mut() {
            DeValue::Table(inner) => leave_out(inner, at),
            DeValue::Array(array) => leave_out_of(array, at),
            _ => false,
        };
        if left_out {
            return true;
        }
    }
    // The error is within a value that is not a table.
    let around = table.iter().find(|(_, value)| {
        let span = value.span();
        span.start <= at.start && at.end <= span.end
    });
    match around.map(|(key, _)| key.clone()) {
        Some(key) => table.remove(&key).is_some(),
        None => false,
    }
}

fn leave_out_of(array: &mut DeArray<'_>, at: &Range<usize>) -> bool {
    let exact = array.iter().any(|value| value.span() == *at);
    if exact {
        let rest: Vec<_> = array
            .iter()
            .filter(|value| value.span() != *at)
            .cloned()
            .collect();
        *array = rest.into_iter().collect();
        return true;
    }
    array.iter_mut().any(|value| match value.get_mut() {
        DeValue::Table(inner) => leave_out(inner, at),
        DeValue::Array(inner) => leave_out_of(inner, at),
        _ => false,
    })
}

/// A key of a text.
pub(super) struct Key {
    /// The key's name with those of the tables around it, with dots between them.
    pub(super) path: String,
    /// The range of the key and its value; for a table, that of its name.
    pub(super) span: Range<usize>,
    pub(super) is_table: bool,
}

/// Returns the keys of a text. Arrays of tables count as one.
pub(super) fn keys(text: &str) -> Vec<Key> {
    let (table, _) = DeTable::parse_recoverable(text);
    let mut keys = Vec::new();
    collect(table.get_ref(), "", &mut keys);
    keys
}

fn collect(table: &DeTable<'_>, path: &str, keys: &mut Vec<Key>) {
    for (name, value) in table.iter() {
        let path = match path {
            "" => name.get_ref().to_string(),
            path => format!("{path}.{}", name.get_ref()),
        };
        let inner = value.get_ref().as_table();
        if let Some(inner) = inner {
            collect(inner, &path, keys);
        }
        keys.push(Key {
            path,
            span: match inner {
                Some(_) => name.span(),
                None => name.span().start..value.span().end,
            },
            is_table: inner.is_some(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::shown::line_of;

    fn lines(text: &str) -> Vec<usize> {
        read(text).1.iter().map(|trouble| trouble.line).collect()
    }

    #[test]
    fn everything_that_is_wrong_is_found_at_once() {
        let text = "[database]\nurll = 'x'\nack = 'spol'\n\n[limits]\nmemory = '5 apples'\nflights = 3\n\
            away_wait = 'soon'\n[pg.users]\napp = 1\n[[replica]]\nurl = 'x'\n[nobody]\na = 1\n";
        assert_eq!(lines(text), [2, 3, 6, 8, 10, 11, 13]);
        let (file, _) = read(text);
        assert_eq!(file.limits.flights, Some(3), "what makes sense is kept");
        assert!(file.replica.is_empty());
    }

    #[test]
    fn a_text_that_is_no_toml_is_told_by_its_lines() {
        assert_eq!(lines("[limits]\nmemory = \n[http]\nlisten = 'x\n"), [2, 4]);
        assert_eq!(lines(""), [0; 0]);
    }

    #[test]
    fn several_are_told_in_a_list() {
        let (_, all) = read("[http]\na = 1\nb = 2\n");
        let told = Troubles(all).to_string();
        assert!(told.starts_with("2 things are wrong\n  line 2: "), "{told}");
    }

    #[test]
    fn keys_have_their_places() {
        let text = "[a]\nb = 1\n[a.c]\n'd e' = '''\nx'''\n";
        let found = keys(text);
        let names: Vec<_> = found.iter().map(|key| key.path.as_str()).collect();
        assert_eq!(names, ["a.b", "a.c.d e", "a.c", "a"]);
        let lines = found.iter().map(|key| line_of(text, key.span.start));
        assert_eq!(lines.collect::<Vec<_>>(), [2, 4, 3, 1]);
    }
}
