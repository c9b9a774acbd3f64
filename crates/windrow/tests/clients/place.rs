//! A server with the table of the pages, and Windrow before it.

use std::net::{SocketAddr, TcpListener};

use windrow_testkit::postgres::{Postgres, psql};
use windrow_testkit::process::Windrow;

use crate::page::blocks;

/// A gateway of its own.
pub(crate) struct Place {
    server: Postgres,
    windrow: Windrow,
}

impl Place {
    /// Starts it, with the table that the pages begin with.
    pub(crate) fn open() -> Self {
        let server = Postgres::start().unwrap();
        server.exec("CREATE ROLE app LOGIN").unwrap();
        server.exec("CREATE DATABASE shop OWNER app").unwrap();
        let url = format!("postgres://app@127.0.0.1:{}/shop", server.port());
        psql(&url, &blocks("index", "sql")[0]).unwrap();
        let program = env!("CARGO_BIN_EXE_windrow").as_ref();
        let windrow = Windrow::serve(program, &["--to", &url, "--pg", "127.0.0.1:0"]).unwrap();
        Self { server, windrow }
    }

    /// A program with the ports of this gateway.
    pub(crate) fn placed(&self, program: &str) -> String {
        let pg = self
            .windrow
            .pg_address()
            .expect("it listens for PostgreSQL");
        let http = self.windrow.address().port().to_string();
        program
            .replace("6432", &pg.port().to_string())
            .replace("8420", &http)
    }

    /// Statements so far that were joined, or met no others.
    pub(crate) fn joined(&self) -> u64 {
        let pg = self
            .windrow
            .pg_address()
            .expect("it listens for PostgreSQL");
        let stats = psql(&format!("postgres://app@{pg}/windrow"), "SHOW STATS").unwrap();
        let count = |name: &str| -> u64 {
            let line = stats.lines().find_map(|line| line.strip_prefix(name));
            let count = line.and_then(|rest| rest.split('|').nth(1));
            count.expect("it is counted").parse().unwrap()
        };
        count("statements_joined") + count("statements_joinable")
    }

    /// Rows of the table.
    pub(crate) fn count(&self) -> u64 {
        self.number("SELECT count(*) FROM orders")
    }

    /// Rows with an item.
    pub(crate) fn items(&self, item: &str) -> u64 {
        self.number(&format!(
            "SELECT count(*) FROM orders WHERE item = '{item}'"
        ))
    }

    /// The one number that the database answers.
    pub(crate) fn number(&self, question: &str) -> u64 {
        self.sql(question).trim().parse().unwrap()
    }

    /// What the database answers, without Windrow.
    pub(crate) fn sql(&self, text: &str) -> String {
        let url = format!("postgres://app@127.0.0.1:{}/shop", self.server.port());
        psql(&url, text).unwrap()
    }

    /// Where Windrow takes requests.
    pub(crate) fn http(&self) -> SocketAddr {
        self.windrow.address()
    }

    /// What Windrow said, for a failure.
    pub(crate) fn log(&self) -> String {
        self.windrow.log()
    }
}

/// A port that nobody listens on at this moment.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
