//! The programs that play scenarios.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A driver, named by its program in `tests/drivers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    Psql,
    Pgbench,
    Psycopg3,
    Psycopg2,
    Asyncpg,
    SqlAlchemy,
    Django,
    NodePostgres,
    PostgresJs,
    Pgx,
    LibPq,
    Pgjdbc,
    DbdPg,
    Pdo,
    TokioPostgres,
}

impl Driver {
    /// What `tests/drivers/setup` makes ready for it; nothing where this test itself plays the
    /// scenarios.
    pub fn runtime(self) -> Option<&'static str> {
        Some(match self {
            Self::TokioPostgres => return None,
            Self::Psql => "psql",
            Self::Pgbench => "pgbench",
            Self::Psycopg3 | Self::Psycopg2 | Self::Asyncpg | Self::SqlAlchemy | Self::Django => {
                "python"
            }
            Self::NodePostgres | Self::PostgresJs => "node",
            Self::Pgx | Self::LibPq => "go",
            Self::Pgjdbc => "java",
            Self::DbdPg => "perl",
            Self::Pdo => "php",
        })
    }

    /// False where `tests/drivers/setup` has not made ready what it needs.
    pub fn is_ready(self) -> bool {
        self.runtime()
            .is_none_or(|name| target().join(format!("{name}.ready")).is_file())
    }

    /// Its program, still without its arguments: a URL and a mode.
    pub fn command(self) -> Option<Command> {
        let source = |path: &str| source().join(path);
        let target = target();
        let with = |program: &Path, script: PathBuf| {
            let mut command = Command::new(program);
            command.arg(script);
            command
        };
        let python = target.join("python/bin/python");
        let mut command = match self {
            Self::TokioPostgres => return None,
            Self::Psql => Command::new(source("psql/play.sh")),
            Self::Pgbench => Command::new(source("pgbench/play.sh")),
            Self::Psycopg3 => with(&python, source("python/psycopg3.py")),
            Self::Psycopg2 => with(&python, source("python/psycopg2_.py")),
            Self::Asyncpg => with(&python, source("python/asyncpg_.py")),
            Self::SqlAlchemy => with(&python, source("python/sqlalchemy_.py")),
            Self::Django => with(&python, source("python/django_.py")),
            Self::NodePostgres => with(Path::new("node"), source("node/pg.js")),
            Self::PostgresJs => with(Path::new("node"), source("node/postgresjs.js")),
            Self::Pgx => Command::new(target.join("go/pgx")),
            Self::LibPq => Command::new(target.join("go/pq")),
            Self::Pgjdbc => java(&target.join("java"), "windrow.Scenarios"),
            Self::DbdPg => with(Path::new("perl"), source("perl/dbd_pg.pl")),
            Self::Pdo => with(Path::new("php"), source("php/pdo.php")),
        };
        set_environment(&mut command, &target);
        command.env("WINDROW_DRIVERS", self::source());
        Some(command)
    }
}

/// Keeps settings of libpq away from a program, and names the folder with its modules for Node.
pub fn set_environment(command: &mut Command, target: &Path) {
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"PG") {
            command.env_remove(name);
        }
    }
    command
        .env("NODE_PATH", target.join("node/node_modules"))
        .env("NODE_NO_WARNINGS", "1")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("TZ", "UTC");
}

/// Returns the command that runs a class of Java; `folder` has `classes` and `lib`.
pub fn java(folder: &Path, class: &str) -> Command {
    let classes = format!(
        "{}:{}/*",
        folder.join("classes").display(),
        folder.join("lib").display()
    );
    let mut command = Command::new("java");
    // It runs for a second or two: a better compiler and a parallel collector would only take time.
    command
        .args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"])
        .arg(classes)
        .arg(class);
    command
}

/// The root of the repository.
pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap().to_owned()
}

/// `tests/drivers` at the root of the repository.
fn source() -> PathBuf {
    root().join("tests/drivers")
}

/// `target/drivers`, where `tests/drivers/setup` puts everything.
pub fn target() -> PathBuf {
    target_folder("drivers")
}

/// A folder in `target`.
pub fn target_folder(name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_windrow"));
    program.ancestors().nth(2).unwrap().join(name)
}
