//! Databases, files, and the program.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rusqlite::fallible_iterator::FallibleIterator;
use windrow_testkit::process::without_settings;
use windrow_testkit::{mariadb, postgres};

/// A database for one test, and a folder for its files.
pub struct Db {
    kind: Kind,
    pub folder: tempfile::TempDir,
}

enum Kind {
    Sqlite,
    Postgres(Box<postgres::PostgresDatabase>),
    MariaDb(Box<mariadb::MariaDbDatabase>),
}

/// What the program said.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub text: String,
}

impl Db {
    pub fn sqlite() -> Self {
        Self::of(Kind::Sqlite)
    }

    pub fn postgres() -> Self {
        Self::of(Kind::Postgres(Box::new(postgres::shared().unwrap())))
    }

    pub fn mariadb() -> Self {
        Self::of(Kind::MariaDb(Box::new(mariadb::shared().unwrap())))
    }

    fn of(kind: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { kind, folder }
    }

    pub fn url(&self) -> String {
        match &self.kind {
            Kind::Sqlite => format!("sqlite:{}", self.path("test.db").display()),
            Kind::Postgres(database) => database.url().to_owned(),
            Kind::MariaDb(database) => database.url().to_owned(),
        }
    }

    /// Runs SQL; rows come back one a line, columns separated by `|`.
    pub fn exec(&self, sql: &str) -> String {
        self.try_exec(sql).unwrap()
    }

    pub fn try_exec(&self, sql: &str) -> Result<String, String> {
        match &self.kind {
            Kind::Sqlite => sqlite(&self.path("test.db"), sql).map_err(|e| e.to_string()),
            Kind::Postgres(database) => database.exec(sql).map_err(|e| format!("{e:#}")),
            Kind::MariaDb(database) => database.exec(sql).map_err(|e| format!("{e:#}")),
        }
    }

    pub fn number(&self, sql: &str) -> i64 {
        self.exec(sql).trim().parse().unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub fn text(&self, name: &str) -> String {
        let bytes = std::fs::read(self.path(name)).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// `windrow load ARGUMENTS --to ..`
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_to(&self.url(), arguments)
    }

    /// The same by another URL.
    pub fn command_to(&self, url: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windrow"));
        without_settings(&mut command);
        command
            .current_dir(self.folder.path())
            .arg("load")
            .args(arguments)
            .args(["--to", url])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub fn load(&self, arguments: &[&str]) -> Said {
        Said::of(self.command(arguments).spawn().unwrap())
    }

    /// The same with something on standard input.
    pub fn load_stdin(&self, arguments: &[&str], bytes: &[u8]) -> Said {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let bytes = bytes.to_owned();
        let writer = std::thread::spawn(move || stdin.write_all(&bytes));
        let said = Said::of(child);
        writer.join().unwrap().unwrap();
        said
    }
}

impl Said {
    pub fn of(child: Child) -> Self {
        let output = child.wait_with_output().unwrap();
        Self {
            code: output.status.code(),
            text: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Checks status and words.
    #[track_caller]
    pub fn is(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.text);
        for word in words {
            assert!(
                self.text.contains(word),
                "{word:?} is not in: {}",
                self.text
            );
        }
    }
}

fn sqlite(path: &Path, sql: &str) -> rusqlite::Result<String> {
    let connection = rusqlite::Connection::open(path)?;
    connection.busy_timeout(std::time::Duration::from_secs(60))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    let mut batch = rusqlite::Batch::new(&connection, sql);
    let mut text = String::new();
    while let Some(mut statement) = batch.next()? {
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                let bar = if column == 0 { "" } else { "|" };
                text.push_str(bar);
                text.push_str(&cell(row.get_ref(column)?));
            }
            text.push('\n');
        }
    }
    Ok(text)
}

fn cell(value: rusqlite::types::ValueRef<'_>) -> String {
    use rusqlite::types::ValueRef;
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(n) => n.to_string(),
        ValueRef::Real(x) => x.to_string(),
        ValueRef::Text(t) => String::from_utf8_lossy(t).into_owned(),
        ValueRef::Blob(b) => format!("{b:02x?}"),
    }
}

/// The table of [`readings`].
pub const READINGS: &str = "create table readings (id bigint primary key, station varchar(20) not null, \
    level int check (level < 1000), note varchar(200), at varchar(30))";

/// A CSV file of readings, numbered from 1: texts with quotes, commas and line ends, empty ones and
/// missing ones.
pub fn readings(rows: u64) -> String {
    let mut text = String::from("id,station,level,note,at\n");
    for id in 1..=rows {
        text.push_str(&reading(id));
    }
    text
}

pub fn reading(id: u64) -> String {
    let note = match id % 7 {
        0 => String::new(),
        1 => "\"\"".into(),
        2 => format!("\"said \"\"{id}\"\", then\"\"\""),
        3 => "\"two\nlines\"".into(),
        _ => format!("plain ä{id}"),
    };
    let level = (id * 37) % 1000;
    format!(
        "{id},S{},{level},{note},2013-01-01T{:02}:00:00Z\n",
        id % 5,
        id % 24
    )
}

/// What a database says of a whole table of readings, and what it should say.
pub const SUMS: &str = "select count(*), sum(id), sum(level), count(note), sum(length(note)), min(at), count(distinct station) from readings";

pub fn sums(ids: impl IntoIterator<Item = u64>, length: impl Fn(&str) -> usize) -> String {
    let (mut count, mut sum, mut levels, mut notes, mut lengths) = (0, 0, 0, 0, 0);
    let mut reader = String::from("id,station,level,note,at\n");
    for id in ids {
        reader.push_str(&reading(id));
        count += 1;
        sum += id;
        levels += (id * 37) % 1000;
        if id % 7 != 0 {
            notes += 1;
        }
    }
    let mut csv = csv::Reader::from_reader(reader.as_bytes());
    let mut least: Option<String> = None;
    let mut stations = std::collections::BTreeSet::new();
    for record in csv.records() {
        let record = record.unwrap();
        lengths += length(&record[3]);
        stations.insert(record[1].to_owned());
        let at = record[4].to_owned();
        least = Some(least.map_or(at.clone(), |least| least.min(at)));
    }
    format!(
        "{count}|{sum}|{levels}|{notes}|{lengths}|{}|{}",
        least.unwrap_or_default(),
        stations.len()
    )
}

impl Db {
    /// The table of readings, where SQLite minds its types too.
    pub fn strict(&self) -> String {
        match &self.kind {
            Kind::Sqlite => READINGS.replace("bigint", "integer"),
            _ => READINGS.to_owned(),
        }
    }

    /// The same without a key: rows that come twice are there twice.
    pub fn keyless(&self) -> String {
        let typed = match &self.kind {
            Kind::Sqlite => "not null check (typeof(id) = 'integer')",
            _ => "not null",
        };
        READINGS.replace("primary key", typed)
    }

    /// All of these readings are there, each column as it should be, and no others.
    #[track_caller]
    pub fn holds(&self, ids: impl IntoIterator<Item = u64>) {
        // MariaDB counts bytes.
        let length = match &self.kind {
            Kind::MariaDb(_) => |text: &str| text.len(),
            _ => |text: &str| text.chars().count(),
        };
        assert_eq!(self.exec(SUMS).trim(), sums(ids, length));
    }
}
