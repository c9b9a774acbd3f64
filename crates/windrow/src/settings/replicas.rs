//! Checks the replicas' part of the configuration.

use anyhow::{Context, ensure};
use windrow_core::{Secret, TableName};
use windrow_replicas::{Names, WaitFor};

use super::file::{self, File};
use super::shown;
use super::spool::Place;

/// The most bytes of a log, unless configured.
const MAX_BYTES: u64 = 1 << 30;

/// The smallest size that a log may have.
const LEAST_BYTES: u64 = 64 << 20;

/// The checked sections `[replicas]` and `[[replica]]`.
pub struct ReplicaSettings {
    /// The replicas that clients wait for.
    pub wait_for: WaitFor,
    /// The place of the logs: a directory with a folder for each, or a topic for each, whose name
    /// begins with that of the URL.
    pub place: Place,
    /// The most bytes that each log in files may hold.
    pub max_bytes: u64,
    /// The replicas; at least one.
    pub replicas: Vec<OneReplica>,
}

/// A replica.
pub struct OneReplica {
    /// The replica's name.
    pub name: String,
    /// The replica's URL.
    pub url: Secret,
    /// The URL as it may be shown.
    pub database: String,
    /// The names of tables at the replica.
    pub names: Names,
}

/// Returns the sections; `None` if there is no replica.
pub(super) fn settings(file: &File) -> anyhow::Result<Option<ReplicaSettings>> {
    let all = &file.replicas;
    if file.replica.is_empty() {
        ensure!(
            all.wait_for == file::WrittenWaitFor::Primary,
            "replicas.wait_for is set, but there is no [[replica]]"
        );
        return Ok(None);
    }
    let place = place(all)?;
    let max_bytes = all.max_bytes.map_or(MAX_BYTES, |size| size.as_u64());
    ensure!(
        max_bytes >= LEAST_BYTES,
        "replicas.max_bytes must be at least 64 MiB"
    );
    let mut replicas: Vec<OneReplica> = Vec::new();
    for replica in &file.replica {
        let one = one(replica)?;
        ensure!(
            replicas.iter().all(|other| other.name != one.name),
            "two replicas have the name {:?}",
            one.name
        );
        replicas.push(one);
    }
    Ok(Some(ReplicaSettings {
        wait_for: match all.wait_for {
            file::WrittenWaitFor::Primary => WaitFor::Primary,
            file::WrittenWaitFor::Quorum => WaitFor::Quorum,
            file::WrittenWaitFor::All => WaitFor::All,
        },
        place,
        max_bytes,
        replicas,
    }))
}

/// Returns the place of the logs.
fn place(all: &file::Replicas) -> anyhow::Result<Place> {
    let directory = all.directory.as_ref();
    let directory = directory.filter(|path| !path.as_os_str().is_empty());
    let Some(url) = &all.at else {
        ensure!(
            all.allow.is_empty(),
            "replicas.allow is about topics of Kafka, and replicas.at names none"
        );
        let directory = directory.context(
            "there is a [[replica]], but replicas.directory is not set: name the directory that the logs of replicas are kept in",
        )?;
        return Ok(Place::Directory(directory.clone()));
    };
    ensure!(
        directory.is_none(),
        "replicas.at and replicas.directory both say where the logs are: leave one of them out"
    );
    ensure!(
        file::is_topic(url.reveal()),
        "replicas.at is no URL of topics of Kafka: for files, set replicas.directory"
    );
    ensure!(
        all.max_bytes.is_none(),
        "replicas.max_bytes is a limit of logs in files; watch the disks of the brokers instead"
    );
    Ok(Place::Topic {
        url: url.clone(),
        allowed: all.allow.clone(),
    })
}

fn one(replica: &file::WrittenReplica) -> anyhow::Result<OneReplica> {
    let name = &replica.name;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    ensure!(
        !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain),
        "replica.name: {name:?} is to have 1 to 64 letters, digits, - and _: it names a folder"
    );
    let url = replica.url.clone();
    let url = url.with_context(|| format!("the replica {name} has no url"))?;
    let mut names = Names::default();
    for (table, there) in &replica.tables {
        let parsed = TableName::parse(table).and_then(|own| Ok((own, TableName::parse(there)?)));
        let (own, there) = parsed.with_context(|| format!("the tables of the replica {name}"))?;
        names.tables.insert(own.to_string(), there);
    }
    for column in &replica.leave_out {
        ensure!(
            column.contains('.'),
            "leave_out of the replica {name}: {column:?} is no table.column"
        );
        names.leave_out.insert(column.clone());
    }
    Ok(OneReplica {
        name: name.clone(),
        database: shown::url(url.reveal()),
        url,
        names,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn read(text: &str) -> anyhow::Result<Settings> {
        Settings::new(&toml::from_str(text).unwrap())
    }

    #[test]
    fn replicas_are_read_with_their_names() {
        assert!(read("").unwrap().replicas.is_none());
        let text = "[replicas]\ndirectory = 'd'\nwait_for = 'all'\n[[replica]]\nname = 'a'\n\
            url = 'sqlite:a.db'\ntables = { 'shop.orders' = 'orders' }\nleave_out = ['orders.secret']";
        let read = read(text).unwrap().replicas.unwrap();
        assert_eq!((read.wait_for, read.replicas.len()), (WaitFor::All, 1));
        assert_eq!(read.place, Place::Directory("d".into()));
        let names = &read.replicas[0].names;
        assert_eq!(names.tables["shop.orders"], TableName::bare("orders"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_to_do() {
        let one = "[[replica]]\nname = 'a'\nurl = 'sqlite:a.db'\n";
        let with = |keys: &str| format!("[replicas]\n{keys}\n{one}");
        let twice = format!("{}{one}", with("directory = 'd'"));
        let allowed = with("directory = 'd'\nallow = ['unclean']");
        let both = with("directory = 'd'\nat = 'kafka://k:1/t'");
        let no_topic = with("at = '/var/lib/windrow'");
        let limited = with("at = 'kafka://k:1/t'\nmax_bytes = '1GiB'");
        for (text, word) in [
            ("[replicas]\nwait_for = 'all'", "no [[replica]]"),
            (one, "replicas.directory is not set"),
            (&twice, "two replicas"),
            (&allowed, "replicas.at names none"),
            (&both, "leave one of them out"),
            (&no_topic, "set replicas.directory"),
            (&limited, "limit of logs in files"),
            (
                "[replicas]\ndirectory = 'd'\n[[replica]]\nname = '../x'\nurl = 'x'",
                "names a folder",
            ),
            (
                "[replicas]\ndirectory = 'd'\n[[replica]]\nname = 'x'\nurl = 'x'\nleave_out = ['y']",
                "table.column",
            ),
        ] {
            let refused = read(text).map(|_| ()).unwrap_err();
            assert!(format!("{refused:#}").contains(word), "{text}: {refused:#}");
        }
    }
}
