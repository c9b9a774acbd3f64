//! Windrow before a database, as a process of its own.

use std::path::Path;

use windrow_testkit::pgclient::{Address, Client, Message, backend, frontend};
use windrow_testkit::postgres::{Postgres, PostgresBuilder};
pub use windrow_testkit::process::TEST_TIMEOUT;
use windrow_testkit::process::Windrow;

/// A server, and `windrow serve --pg` before one of its databases.
pub struct Gateway {
    /// The program.
    pub windrow: Windrow,
    /// The way through it.
    pub address: Address,
    /// The way past it.
    pub direct: Address,
    /// The server.
    pub server: Postgres,
}

impl Gateway {
    /// Before an empty database of a server of its own.
    pub fn start() -> Self {
        Self::with(Postgres::builder(), &[])
    }

    /// The same with settings of the server, and more options for `windrow serve`.
    pub fn with(server: PostgresBuilder, options: &[&str]) -> Self {
        let server = server.start().unwrap();
        let direct = Address::of(&server.create_database().unwrap()).unwrap();
        let (windrow, address) = serve(&direct, options);
        Self {
            windrow,
            address,
            direct,
            server,
        }
    }

    /// Runs SQL past Windrow; rows come back one a line, columns separated by `|`.
    pub fn exec(&self, sql: &str) -> String {
        windrow_testkit::postgres::psql(&self.direct.url(), sql).unwrap()
    }

    /// A client of Windrow.
    pub fn client(&self) -> Client {
        Client::connect(&self.address).unwrap()
    }

    /// A client of the server itself.
    pub fn direct(&self) -> Client {
        Client::connect(&self.direct).unwrap()
    }
}

/// Starts `windrow serve --pg` before a database; says where it listens.
pub fn serve(direct: &Address, options: &[&str]) -> (Windrow, Address) {
    let url = direct.url();
    let mut all = vec!["--to", &url, "--pg", "127.0.0.1:0"];
    all.extend_from_slice(options);
    let program = Path::new(env!("CARGO_BIN_EXE_windrow"));
    let windrow = Windrow::serve(program, &all).unwrap();
    let socket = windrow.pg_address().expect("it listens for PostgreSQL");
    let address = direct.at(socket);
    (windrow, address)
}

/// Client sessions that the server sees in a transaction.
pub const OPEN: &str =
    "select count(*) from pg_stat_activity where state like 'idle in transaction%'";

/// Sends Parse, Bind, Describe, Execute and Sync with values as text. Returns the answer.
pub fn extended(client: &mut Client, sql: &str, values: &[Option<&str>]) -> Vec<Message> {
    let mut out = Vec::new();
    frontend::parse(&mut out, "", sql, &[]);
    frontend::bind(&mut out, ("", ""), &[], values, &[]);
    frontend::describe(&mut out, b'P', "");
    frontend::execute(&mut out, "", 0);
    frontend::sync(&mut out);
    client.send(&out).unwrap();
    client.until_ready().unwrap()
}

/// Returns a client of Windrow whose transactions are late.
pub fn late(gateway: &Gateway) -> Client {
    let options = [("options", "-c windrow.transactions=late")];
    Client::connect_with(&gateway.address, &options).unwrap()
}

/// Returns the answer to a query that succeeds.
pub fn ok(client: &mut Client, sql: &str) -> Vec<Message> {
    let answer = client.query(sql).unwrap();
    assert_eq!(backend::sqlstate(&answer), None, "{sql}: {answer:?}");
    answer
}

/// Returns the first value of the answer to a query.
pub fn value(client: &mut Client, sql: &str) -> String {
    backend::first_value(&ok(client, sql)).unwrap()
}

/// Returns the tags of messages.
pub fn tags(answer: &[Message]) -> String {
    answer.iter().map(|m| char::from(m.tag)).collect()
}

/// Returns the status of the transaction that an answer ends with.
pub fn status(answer: &[Message]) -> char {
    char::from(answer.last().unwrap().body[0])
}
