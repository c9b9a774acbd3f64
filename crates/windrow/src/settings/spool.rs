//! Checks the spool's part of the configuration.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use windrow_core::Secret;
use windrow_http::Ack;
use windrow_spool::Options;

use super::file::{self, File};
use super::shown;

/// The smallest size that a spool may have, in bytes.
const LEAST_BYTES: u64 = 4 << 20;

/// The largest unit that is acknowledged early. Its dead letter must fit into a statement of every
/// database, whose limit is 16 MiB for MariaDB, and may take twice as many bytes there.
const MOST_UNIT: usize = 4 << 20;

/// The smallest age that entries must be allowed: applied entries stay in the spool for a while,
/// and count.
const LEAST_AGE: Duration = Duration::from_secs(30);

/// The folder in the spool's directory for refused entries that the database's table of dead
/// letters does not take.
const REJECTED: &str = "rejected";

/// The checked section `[spool]`.
#[derive(Clone, Debug)]
pub struct SpoolSettings {
    /// The place of the spool.
    pub place: Place,
    /// The spool's limits.
    pub options: Options,
}

/// The place of a spool. Shown without a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the files of a directory.
    Directory(PathBuf),
    /// In a topic of Kafka.
    Topic {
        /// The topic's URL.
        url: Secret,
        /// The names of the topic's weaknesses that are accepted.
        allowed: Vec<String>,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(directory) => directory.display().fmt(f),
            Self::Topic { url, .. } => shown::url(url.reveal()).fmt(f),
        }
    }
}

impl SpoolSettings {
    /// Returns the options for applying the spool to the database.
    pub fn drain(&self) -> windrow_drain::Options {
        let aside = match &self.place {
            Place::Directory(directory) => Some(directory.join(REJECTED)),
            // Other gateways could not read the disk of this one.
            Place::Topic { .. } => None,
        };
        windrow_drain::Options {
            aside,
            ..windrow_drain::Options::default()
        }
    }

    /// Returns the memory that is taken from the budget for the spool: for the entries that are
    /// read ahead, and one of the largest size.
    pub fn memory(&self) -> usize {
        let of_topic = match &self.place {
            Place::Directory(_) => 0,
            Place::Topic { .. } => OF_TOPIC,
        };
        self.drain().memory + self.options.max_append + of_topic
    }
}

/// The most bytes of a topic's answers that a partition holds; see the crate's cursor.
const OF_TOPIC: usize = 4 << 20;

/// Returns the place of the spool; `None` if none is named.
fn place(spool: &file::Spool) -> anyhow::Result<Option<Place>> {
    let Some(url) = &spool.at else {
        ensure!(
            spool.allow.is_empty(),
            "spool.allow is about a topic of Kafka, and spool.at names none"
        );
        let Some(directory) = &spool.directory else {
            return Ok(None);
        };
        ensure!(
            !directory.as_os_str().is_empty(),
            "spool.directory is empty; leave it out where no spool is wanted"
        );
        return Ok(Some(Place::Directory(directory.clone())));
    };
    ensure!(
        spool.directory.is_none(),
        "spool.at and spool.directory both say where the spool is: leave one of them out"
    );
    ensure!(
        spool.max_bytes.is_none() && spool.max_age.is_none(),
        "spool.max_bytes and spool.max_age are limits of a spool in files; watch the disks of the brokers instead"
    );
    if !file::is_topic(url.reveal()) {
        return Ok(Some(Place::Directory(url.reveal().into())));
    }
    Ok(Some(Place::Topic {
        url: url.clone(),
        allowed: spool.allow.clone(),
    }))
}

/// Returns the section; `None` if no place is named.
pub(super) fn settings(file: &File) -> anyhow::Result<Option<SpoolSettings>> {
    let spool = &file.spool;
    let Some(place) = place(spool)? else {
        ensure!(
            spool.max_bytes.is_none() && spool.max_age.is_none(),
            "[spool] has limits, but spool.directory is not set: name the directory that the spool is kept in"
        );
        return Ok(None);
    };
    let defaults = Options::default();
    let max_bytes = spool
        .max_bytes
        .map_or(defaults.max_bytes, |size| size.as_u64());
    ensure!(
        max_bytes >= LEAST_BYTES,
        "spool.max_bytes must be at least 4 MiB"
    );
    ensure!(
        spool.max_age.is_none_or(|age| age >= LEAST_AGE),
        "spool.max_age must be at least {} s, because what was applied stays for a while and counts; leave it out where entries may become as old as they get",
        LEAST_AGE.as_secs()
    );
    // A segment has at most a quarter of the spool, and no entry may be larger.
    let quarter = usize::try_from(max_bytes / 4).unwrap_or(usize::MAX);
    Ok(Some(SpoolSettings {
        place,
        options: Options {
            max_bytes,
            max_age: spool.max_age,
            max_append: MOST_UNIT.min(quarter),
            ..defaults
        },
    }))
}

/// Checks the memory: entries on their way from the spool to the database take half of the budget
/// at most.
pub(super) fn check_memory(spool: Option<&SpoolSettings>, memory: usize) -> anyhow::Result<()> {
    let Some(spool) = spool else { return Ok(()) };
    let least = 2 * spool.memory();
    ensure!(
        memory >= least,
        "limits.memory must be at least {} MiB with a spool: what is read from it on its way to the database is counted too",
        least.div_ceil(1 << 20)
    );
    Ok(())
}

/// Returns the moment of success for clients, unless a request says otherwise.
pub(super) fn ack(file: &File, spool: Option<&SpoolSettings>) -> anyhow::Result<Ack> {
    match file.database.ack {
        None | Some(file::WrittenAck::Commit) => Ok(Ack::Commit),
        Some(file::WrittenAck::Spool) => {
            ensure!(
                spool.is_some(),
                "database.ack is \"spool\", but there is no spool: name a directory for it in spool.directory, or with --spool DIR"
            );
            Ok(Ack::Spool)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn read(text: &str) -> anyhow::Result<Settings> {
        Settings::new(&toml::from_str(text).unwrap())
    }

    #[test]
    fn a_spool_is_there_where_a_directory_is_named() {
        let bare = read("").unwrap();
        assert!(bare.spool.is_none() && bare.ack == Ack::Commit);
        let text = "[spool]\ndirectory = 'd'\nmax_bytes = '100MiB'\nmax_age = '1h'\n[database]\nack = 'spool'";
        let settings = read(text).unwrap();
        let spool = settings.spool.unwrap();
        assert_eq!(spool.place, Place::Directory("d".into()));
        let (bytes, age) = (spool.options.max_bytes, spool.options.max_age.unwrap());
        assert_eq!((bytes, age.as_secs()), (100 << 20, 3600));
        assert_eq!(settings.ack, Ack::Spool);
    }

    #[test]
    fn a_topic_is_shown_without_its_password() {
        let text = "[spool]\nat = 'kafka://me:hidden@k:1/t'\nallow = ['unclean']";
        let place = read(text).unwrap().spool.unwrap().place;
        assert!(matches!(&place, Place::Topic { allowed, .. } if allowed == &["unclean"]));
        let shown = format!("{place} {place:?}");
        assert!(shown.starts_with("kafka://me:***@k:1/t"), "{shown}");
        assert!(!shown.contains("hidden"), "{shown}");
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_to_do() {
        for (text, word) in [
            ("[database]\nack = 'spool'", "--spool DIR"),
            ("[spool]\nmax_age = '1h'", "spool.directory is not set"),
            ("[spool]\ndirectory = ''", "spool.directory is empty"),
            ("[spool]\nallow = ['unclean']", "spool.at names none"),
            (
                "[spool]\ndirectory = 'd'\nat = 'kafka://k:1/t'",
                "leave one of them out",
            ),
            (
                "[spool]\nat = 'kafka://k:1/t'\nmax_bytes = '1GiB'",
                "limits of a spool in files",
            ),
            ("[spool]\ndirectory = 'd'\nmax_bytes = '1MiB'", "4 MiB"),
            ("[spool]\ndirectory = 'd'\nmax_age = '20s'", "spool.max_age"),
            (
                "[spool]\ndirectory = 'd'\n[limits]\nmemory = '8MiB'",
                "limits.memory",
            ),
        ] {
            let refused = read(text).map(|_| ()).unwrap_err();
            assert!(refused.to_string().contains(word), "{text}: {refused}");
        }
    }
}
