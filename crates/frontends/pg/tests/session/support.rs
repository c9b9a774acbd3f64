//! A frontend between a test's clients and a database of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use windrow_core::Budget;
use windrow_pg::{Console, DatabaseConfig, Pg, PgConfig, PgMetrics, Services};
use windrow_pgwire::Target;
use windrow_testkit::pgclient::{Address, Client, Message, frontend};
use windrow_testkit::postgres::{PostgresDatabase, shared};

use crate::lane::{Control, Played};

/// A frontend. Dropped, it ends.
pub(crate) struct Stand {
    pub(crate) control: Arc<Control>,
    pub(crate) budget: Budget,
    pub(crate) database: PostgresDatabase,
    pub(crate) stop: CancellationToken,
    pub(crate) runtime: Runtime,
    direct: Address,
    front: SocketAddr,
}

impl Drop for Stand {
    fn drop(&mut self) {
        self.control.release();
        self.stop.cancel();
    }
}

impl Stand {
    /// With a table `t (id int primary key, v text)`.
    pub(crate) fn new() -> Self {
        Self::with(|_| {}, 64 << 20)
    }

    pub(crate) fn with(change: impl FnOnce(&mut PgConfig), budget: usize) -> Self {
        Self::at(|config, _| change(config), budget)
    }

    /// As [`Stand::with`]; the change also gets the server's address.
    pub(crate) fn at(change: impl FnOnce(&mut PgConfig, &Address), budget: usize) -> Self {
        let database = shared().unwrap();
        // Plans are compared, and the server must not learn of rows in between.
        database
            .exec(
                "create table t (id int primary key, v text not null default 'x') \
                 with (autovacuum_enabled = off)",
            )
            .unwrap();
        let direct = Address::of(database.url()).unwrap();
        let mut config = PgConfig {
            listen: "127.0.0.1:0".parse().unwrap(),
            databases: vec![DatabaseConfig::new(
                direct.database.clone(),
                Target::parse(database.url()).unwrap(),
            )],
            ..PgConfig::default()
        };
        change(&mut config, &direct);
        let budget = Budget::new(budget);
        let control = Arc::new(Control::default());
        let services = Services {
            spool: None,
            keys: None,
            tracer: None,
            lanes: Arc::new(Played {
                address: direct.clone(),
                budget: budget.clone(),
                control: Arc::clone(&control),
            }),
            budget: budget.clone(),
            metrics: PgMetrics::register(&mut prometheus_client::registry::Registry::default()),
            console: Console::default(),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(4)
            .enable_all()
            .build()
            .unwrap();
        let pg = runtime.block_on(Pg::bind(config, services)).unwrap();
        let (front, stop) = (pg.local_addr(), CancellationToken::new());
        runtime.spawn(pg.run(stop.clone()));
        Self {
            control,
            budget,
            database,
            stop,
            runtime,
            direct,
            front,
        }
    }

    pub(crate) fn address(&self) -> Address {
        self.direct.at(self.front)
    }

    /// A client of the frontend.
    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.address()).unwrap()
    }

    /// A client of the server.
    pub(crate) fn direct(&self) -> Client {
        Client::connect(&self.direct).unwrap()
    }

    /// Sessions of the server that are there, other than the one that asks, and those of the lanes.
    pub(crate) fn executes(&self, sql: &str) -> String {
        self.database.exec(sql).unwrap().trim().to_owned()
    }

    /// Runs a program over the frontend and over the server: the answers must be the same. The
    /// tables are put back between the two.
    pub(crate) fn same(&self, program: impl Fn(&mut Client) -> Vec<Message>) -> Vec<Message> {
        let through = plain(program(&mut self.client()));
        self.database.exec("truncate t").unwrap();
        let alone = plain(program(&mut self.direct()));
        self.database.exec("truncate t").unwrap();
        assert_eq!(through, alone);
        through
    }

    /// The same for a program of two clients.
    pub(crate) fn same_beside(&self, program: impl Fn(&mut Client, &mut Client) -> Vec<Message>) {
        let through = plain(program(&mut self.client(), &mut self.client()));
        self.database.exec("truncate t").unwrap();
        let alone = plain(program(&mut self.direct(), &mut self.direct()));
        self.database.exec("truncate t").unwrap();
        assert_eq!(through, alone);
    }
}

/// Without the places in the server's source that errors and notices name: some are made here.
fn plain(mut messages: Vec<Message>) -> Vec<Message> {
    for message in messages.iter_mut().filter(|m| matches!(m.tag, b'E' | b'N')) {
        let fields = message.fields().into_iter();
        let kept = fields.filter(|(code, _)| !b"FLR".contains(code));
        message.body = kept
            .flat_map(|(code, text)| [&[code], text.as_bytes(), &[0]].concat())
            .collect();
    }
    messages
}

/// Sends messages, ends with a Sync and gives the answers.
pub(crate) fn segment(client: &mut Client, messages: impl FnOnce(&mut Vec<u8>)) -> Vec<Message> {
    let mut out = Vec::new();
    messages(&mut out);
    frontend::sync(&mut out);
    client.send(&out).unwrap();
    client.until_ready().unwrap()
}

/// The tags of messages, as text.
pub(crate) fn tags(messages: &[Message]) -> String {
    messages.iter().map(|m| char::from(m.tag)).collect()
}

/// The commands that completed.
pub(crate) fn commands(messages: &[Message]) -> Vec<String> {
    messages.iter().filter_map(Message::command).collect()
}
