//! The program, and databases for it.

use std::process::Command;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use tempfile::TempDir;
use windrow_testkit::command::{self, CommandOutput, Running};
pub use windrow_testkit::command::{number, until};
use windrow_testkit::process::TEST_TIMEOUT;
use windrow_testkit::{mariadb, postgres};

/// An empty database.
pub enum Db {
    Postgres(postgres::PostgresDatabase),
    Mariadb(mariadb::MariaDbDatabase),
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

    /// True for a database of MySQL.
    pub fn is_mysql(&self) -> bool {
        matches!(self, Self::Mariadb(_)) && mariadb::is_mysql(&self.url()).unwrap()
    }

    /// A collation of MariaDB or MySQL in which what is equal is the same.
    pub fn exact(&self) -> &'static str {
        match self.is_mysql() {
            true => "utf8mb4_0900_bin",
            false => "utf8mb4_nopad_bin",
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
        connection.busy_timeout(TEST_TIMEOUT).unwrap();
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

/// Lets rows move although a trigger fires at their deletes, as that of [`hold`] does.
pub const HELD: &str = "--delete-effects";

/// Has the source keep its rows, as if every mover died before it could delete one.
pub fn hold(from: &Db) {
    from.sql(match from {
        Db::Postgres(_) => {
            "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'held'; end $$;
             create trigger held before delete on pending for each row execute function refuse()"
        }
        Db::Mariadb(_) => {
            "create trigger held before delete on pending for each row signal sqlstate '45000' set message_text = 'held'"
        }
        Db::Sqlite(_) => {
            "create trigger held before delete on pending begin select raise(abort, 'held'); end"
        }
    });
}

/// Ends what [`hold`] began.
pub fn let_go(from: &Db) {
    from.sql(match from {
        Db::Postgres(_) => "drop function refuse cascade",
        Db::Mariadb(_) | Db::Sqlite(_) => "drop trigger held",
    });
}

fn command(from: &Db, source: &str, destination: &str, more: &[&str]) -> Command {
    let mut command = command::command(env!("CARGO_BIN_EXE_windrow"));
    command
        .args(["move", "--from", &from.url(), "--source", source])
        .args(["--destination", destination, "--progress", "none"])
        .args(more);
    command
}

/// Runs `windrow move` of a table to its end.
pub fn move_table(from: &Db, source: &str, destination: &str, more: &[&str]) -> CommandOutput {
    command::run(&mut command(from, source, destination, more))
}

/// Runs `windrow move` of the table `pending` to its end.
pub fn move_rows(from: &Db, destination: &str, more: &[&str]) -> CommandOutput {
    move_table(from, "pending", destination, more)
}

/// A `windrow move` that runs. Killed when it is dropped.
pub fn start(from: &Db, destination: &str, more: &[&str]) -> Running {
    Running::start(&mut command(from, "pending", destination, more))
}
