//! Parses a SQLite URL.

use std::fmt;
use std::path::{Path, PathBuf, absolute};

use windrow_core::{Fault, FaultClass, shown_parameter};

/// The place of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// In memory. The database ends with its sink.
    Memory,
    /// In a file, which is created if it is missing and `create` is set.
    File {
        /// Absolute, so that SQLite never reads it as a `file:` URI.
        path: PathBuf,
        /// False for `?mode=rw`.
        create: bool,
    },
}

impl Location {
    /// Reads `sqlite:PATH`, `sqlite://PATH` and `sqlite::memory:`. The path ends
    /// at a `?`, and nothing in it is decoded. The only parameter is `mode`: `rwc` (create the
    /// file, the default) or `rw`.
    pub(super) fn parse(url: &str) -> Result<Self, Fault> {
        let rest = url
            .strip_prefix("sqlite:")
            .ok_or_else(|| Fault::invalid("a SQLite URL begins with sqlite:"))?;
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let create = create(query)?;
        match path {
            "" => Err(Fault::invalid(
                "the SQLite URL names no file; write sqlite:PATH or sqlite::memory:",
            )),
            ":memory:" => Ok(Self::Memory),
            path => {
                let path = absolute(Path::new(path)).map_err(|e| {
                    Fault::invalid(format!("the path of the SQLite file makes no sense: {e}"))
                })?;
                Ok(Self::File { path, create })
            }
        }
    }

    /// Checks the path, because SQLite only reports "unable to open database file".
    pub(super) fn check(&self) -> Result<(), Fault> {
        let Self::File { path, create } = self else {
            return Ok(());
        };
        let missing = |what: String| Err(Fault::new(FaultClass::Invalid, "58P01", what));
        if path.is_dir() {
            return missing(format!(
                "{} is a directory; name a file in it",
                path.display()
            ));
        }
        if !create && !path.exists() {
            return missing(format!(
                "the SQLite file {} does not exist, and mode=rw forbids to create it",
                path.display()
            ));
        }
        match path.parent() {
            Some(parent) if !parent.is_dir() => missing(format!(
                "the directory {} for the SQLite file {} does not exist; create it first",
                parent.display(),
                path.display()
            )),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("the SQLite database in memory"),
            Self::File { path, .. } => write!(f, "the SQLite file {}", path.display()),
        }
    }
}

fn create(query: &str) -> Result<bool, Fault> {
    let mut create = true;
    for pair in query.split('&').filter(|p| !p.is_empty()) {
        match pair {
            "mode=rwc" => create = true,
            "mode=rw" => create = false,
            other => {
                let name = other.split('=').next().unwrap_or(other);
                return Err(Fault::invalid(format!(
                    "the URL has a parameter {}, or a value of it, that is not known; known are mode=rwc (default) and mode=rw",
                    shown_parameter(name)
                )));
            }
        }
    }
    Ok(create)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(url: &str) -> (String, bool) {
        match Location::parse(url).unwrap() {
            Location::File { path, create } => (path.to_str().unwrap().to_owned(), create),
            Location::Memory => panic!("in memory: {url}"),
        }
    }

    #[test]
    fn reads_paths_and_memory() {
        assert_eq!(file("sqlite:/a b/c%20.db").0, "/a b/c%20.db");
        assert_eq!(file("sqlite:///a/b.db?mode=rw"), ("/a/b.db".into(), false));
        let here = std::env::current_dir().unwrap().join("x.db");
        for url in ["sqlite:x.db", "sqlite://x.db?mode=rwc"] {
            assert_eq!(file(url), (here.to_str().unwrap().into(), true));
        }
        // Never a `file:` URI, which could bring parameters in.
        assert!(file("sqlite:file:x").0.starts_with('/'));
        for url in ["sqlite::memory:", "sqlite://:memory:"] {
            assert_eq!(Location::parse(url).unwrap(), Location::Memory);
        }
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for url in [
            "sqlite:",
            "sqlite://",
            "sqlite:?mode=rw",
            "sqlite:x?mode=ro",
            "sqlite:x?cache=shared",
            "postgres:x",
        ] {
            assert_eq!(
                Location::parse(url).unwrap_err().class,
                FaultClass::Invalid,
                "{url}"
            );
        }
        let fault = Location::parse("sqlite:x?cache=shared").unwrap_err();
        assert!(fault.message.contains("\"cache\""));
    }
}
