//! The program, and databases for it.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use tempfile::TempDir;
use windrow_testkit::{mariadb, postgres};

/// How long anything may take before a test counts as failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// An empty database.
pub enum Db {
    Postgres(postgres::Database),
    Mariadb(mariadb::Database),
    Sqlite(TempDir),
}

impl Db {
    pub fn postgres() -> Self {
        Self::Postgres(postgres::shared().unwrap())
    }

    pub fn mariadb() -> Self {
        Self::Mariadb(mariadb::shared().unwrap())
    }

    pub fn sqlite() -> Self {
        let db = Self::Sqlite(tempfile::tempdir().unwrap());
        db.sql("pragma journal_mode = wal");
        db
    }

    pub fn url(&self) -> String {
        match self {
            Self::Postgres(database) => database.url().to_owned(),
            Self::Mariadb(database) => database.url().to_owned(),
            Self::Sqlite(folder) => format!("sqlite:{}", folder.path().join("test.db").display()),
        }
    }

    /// Runs SQL; rows come back one a line, columns separated by `|`.
    #[track_caller]
    pub fn sql(&self, text: &str) -> String {
        match self {
            Self::Postgres(database) => database.exec(text).unwrap().trim_end().to_owned(),
            Self::Mariadb(database) => database.exec(text).unwrap(),
            Self::Sqlite(_) => self.ask(text),
        }
    }

    /// A connection to the file.
    pub fn connection(&self) -> Connection {
        let Self::Sqlite(folder) = self else {
            panic!("no SQLite")
        };
        let connection = Connection::open(folder.path().join("test.db")).unwrap();
        connection.busy_timeout(PATIENCE).unwrap();
        connection
    }

    fn ask(&self, text: &str) -> String {
        let connection = self.connection();
        if !(text.starts_with("select") || text.starts_with("pragma")) {
            connection.execute_batch(text).unwrap();
            return String::new();
        }
        let mut ask = connection.prepare(text).unwrap();
        let width = ask.column_count();
        let mut rows = ask.query([]).unwrap();
        let mut lines = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            let cell = |place| match row.get_ref(place).unwrap() {
                ValueRef::Null => "NULL".to_owned(),
                ValueRef::Integer(n) => n.to_string(),
                ValueRef::Real(x) => format!("{x:?}"),
                ValueRef::Text(text) | ValueRef::Blob(text) => {
                    String::from_utf8_lossy(text).into_owned()
                }
            };
            lines.push((0..width).map(cell).collect::<Vec<_>>().join("|"));
        }
        lines.join("\n")
    }

    #[track_caller]
    pub fn count(&self, table: &str) -> usize {
        let counted = self.sql(&format!("select count(*) from {table}"));
        counted.parse().unwrap()
    }
}

/// What a run of the program said.
pub struct Told {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Told {
    fn of(output: &Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Checks the exit status.
    #[track_caller]
    pub fn ends(self, status: i32) -> Self {
        assert_eq!(self.status, status, "{}{}", self.out, self.err);
        self
    }
}

fn command(from: &Db, destination: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windrow"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("WINDROW_")) {
        command.env_remove(name);
    }
    command
        .args(["move", "--from", &from.url(), "--source", "pending"])
        .args(["--destination", destination, "--progress", "none"])
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs `windrow move` of the table `pending` to its end.
pub fn move_rows(from: &Db, destination: &str, more: &[&str]) -> Told {
    Told::of(&command(from, destination, more).output().unwrap())
}

/// A `windrow move` that runs. Killed when it is dropped.
pub struct Mover(Option<Child>);

impl Mover {
    pub fn start(from: &Db, destination: &str, more: &[&str]) -> Self {
        Self(Some(command(from, destination, more).spawn().unwrap()))
    }

    /// SIGKILL, and its end.
    pub fn kill9(mut self) {
        let mut child = self.0.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// SIGTERM, and what it said to its end.
    pub fn terminate(mut self) -> Told {
        let child = self.0.take().unwrap();
        let pid = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        Told::of(&child.wait_with_output().unwrap())
    }

    /// What it said to its end.
    pub fn end(mut self) -> Told {
        Told::of(&self.0.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// Asks until the answer is there.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::yield_now();
    }
}

/// A number from the environment, for longer runs by hand.
pub fn number(name: &str, default: usize) -> usize {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}
