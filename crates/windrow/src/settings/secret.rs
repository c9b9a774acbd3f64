//! Reads secrets: the text itself, or the place of the text.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use windrow_core::Secret;

/// The beginning of every message about the place of a secret. Such a message contains no secret.
pub(super) const OF_PLACE: &str = "the secret's ";

/// The most bytes of a file that holds a secret.
const MOST: u64 = 64 << 10;

/// Reads a secret: `"TEXT"`, `{ file = "PATH" }` or `{ env = "NAME" }`.
pub(super) fn read<'de, D: Deserializer<'de>>(written: D) -> Result<Option<Secret>, D::Error> {
    written.deserialize_any(Written).map(Some)
}

struct Written;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    #[serde(default)]
    file: Option<PathBuf>,
    #[serde(default)]
    env: Option<String>,
}

impl<'de> Visitor<'de> for Written {
    type Value = Secret;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, { file = \"PATH\" } or { env = \"NAME\" }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Secret, E> {
        Ok(text.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Secret, A::Error> {
        match Place::deserialize(MapAccessDeserializer::new(map))? {
            Place {
                file: Some(path),
                env: None,
            } => of_file(&path).map_err(|error| {
                A::Error::custom(format!(
                    "{OF_PLACE}file {} cannot be read: {error}",
                    path.display()
                ))
            }),
            Place {
                file: None,
                env: Some(name),
            } => std::env::var(&name).map(Secret::from).map_err(|_| {
                A::Error::custom(format!("{OF_PLACE}environment variable {name} is not set"))
            }),
            _ => Err(A::Error::custom(format!(
                "{OF_PLACE}place is to be named once: {{ file = \"PATH\" }} or {{ env = \"NAME\" }}"
            ))),
        }
    }
}

/// Returns the text of a file, without the line end at its end.
pub(super) fn of_file(path: &Path) -> io::Result<Secret> {
    let mut text = String::new();
    let mut file = File::open(path)?.take(MOST + 1);
    file.read_to_string(&mut text)?;
    if text.len() as u64 > MOST {
        let message = format!("it is longer than {MOST} bytes, and no secret is");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(text.trim_end_matches(['\r', '\n']).into())
}

#[cfg(test)]
mod tests {
    use crate::settings::File;

    #[test]
    fn a_secret_may_be_found_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "s3cret\n").unwrap();
        let at = path.display();
        let file = File::parse(&format!("[http]\ntoken = {{ file = '{at}' }}")).unwrap();
        assert_eq!(file.http.token.unwrap().reveal(), "s3cret");
        // Whatever the environment is, a test has this one.
        let name = "CARGO_PKG_NAME";
        let text = format!("[database]\nurl = {{ env = '{name}' }}");
        let expected = std::env::var(name).unwrap();
        assert_eq!(
            File::parse(&text).unwrap().database.url.unwrap().reveal(),
            expected
        );
    }

    #[test]
    fn a_place_that_makes_no_sense_is_told_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("long");
        std::fs::write(&long, "x".repeat(70_000)).unwrap();
        let long = format!("{{ file = '{}' }}", long.display());
        for (place, word) in [
            (
                "{ file = '/nowhere/at/all' }",
                "/nowhere/at/all cannot be read",
            ),
            (long.as_str(), "longer than 65536 bytes"),
            (
                "{ env = 'WINDROW_NOBODY_SETS_THIS' }",
                "WINDROW_NOBODY_SETS_THIS is not set",
            ),
            ("{ file = 'a', env = 'b' }", "named once"),
            ("{}", "named once"),
        ] {
            let text = format!("[http]\n\ntoken = {place}");
            let told = File::parse(&text).unwrap_err().to_string();
            assert!(
                told.starts_with("line 3: ") && told.contains(word),
                "{told}"
            );
        }
    }
}
