//! A frontend that joins nothing, in front of a server of the test's own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windrow_core::{Budget, Fault, LanePorts};
use windrow_pg::{
    Console, DatabaseConfig, Identity, LaneKey, Lanes, Pg, PgConfig, PgMetrics, Services,
};
use windrow_pgwire::Target;
use windrow_pgwire::target::Credential;
use windrow_testkit::pgclient::{Address, Client, Message, backend, frontend};
use windrow_testkit::postgres::psql_program;

/// Long enough for any machine; only a failing test waits so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Statements are sent by themselves where no lane can be had.
struct NoLanes;

#[async_trait::async_trait]
impl Lanes for NoLanes {
    async fn open(&self, _: &LaneKey) -> Result<LanePorts, Fault> {
        Err(Fault::invalid("no lanes here"))
    }

    fn revoke(&self, _: &Identity, _: &Credential) {}
}

/// A frontend that listens. Dropped, it ends.
pub(crate) struct Stand {
    pub(crate) front: SocketAddr,
    pub(crate) stop: CancellationToken,
    pub(crate) running: Option<JoinHandle<()>>,
    pub(crate) runtime: Runtime,
    pub(crate) registry: prometheus_client::registry::Registry,
}

impl Drop for Stand {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A configuration with the database `app`.
pub(crate) fn config(url: &str) -> PgConfig {
    PgConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        databases: vec![DatabaseConfig {
            join: false,
            ..DatabaseConfig::new("app", Target::parse(url).unwrap())
        }],
        ..PgConfig::default()
    }
}

pub(crate) fn services(metrics: &PgMetrics, console: Console) -> Services {
    Services {
        spool: None,
        keys: None,
        tracer: None,
        lanes: Arc::new(NoLanes),
        budget: Budget::new(1 << 24),
        metrics: metrics.clone(),
        console,
    }
}

impl Stand {
    pub(crate) fn new(config: PgConfig) -> Self {
        Self::with(config, Console::default())
    }

    pub(crate) fn with(config: PgConfig, console: Console) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let mut registry = prometheus_client::registry::Registry::default();
        let metrics = PgMetrics::register(&mut registry);
        let services = services(&metrics, console);
        let pg = runtime.block_on(Pg::bind(config, services)).unwrap();
        let (front, stop) = (pg.local_addr(), CancellationToken::new());
        let running = runtime.spawn(pg.run(stop.clone()));
        Self {
            front,
            stop,
            running: Some(running),
            runtime,
            registry,
        }
    }

    /// What is counted under a name with its labels.
    pub(crate) fn count(&self, series: &str) -> u64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map_or(0, |value| value.parse().unwrap())
    }

    pub(crate) fn address(&self, role: &str, database: &str) -> Address {
        let url = format!("postgres://{role}@127.0.0.1:1/{database}");
        Address::of(&url).unwrap().at(self.front)
    }

    /// A client that is trusted.
    pub(crate) fn client(&self, role: &str, database: &str) -> Client {
        Client::connect(&self.address(role, database)).unwrap()
    }

    /// A URL for drivers and psql.
    pub(crate) fn url(&self, user_info: &str, database: &str) -> String {
        format!("postgres://{user_info}@{}/{database}", self.front)
    }

    /// What psql says to a statement: its output, or its error.
    pub(crate) fn psql(&self, url: &str, sql: &str) -> Result<String, String> {
        let output = Command::new(psql_program())
            .args([
                "-XAtq",
                "-v",
                "ON_ERROR_STOP=1",
                "-v",
                "VERBOSITY=verbose",
                "-d",
                url,
                "-c",
                sql,
            ])
            .env_remove("PGPASSWORD")
            .env("PGPASSFILE", "/dev/null")
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(text(&output.stderr)),
        }
    }

    /// A socket over which nothing was said.
    pub(crate) fn socket(&self) -> TcpStream {
        let socket = TcpStream::connect(self.front).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    /// Says bytes, and gives all that is said until the other side closes.
    pub(crate) fn say(&self, bytes: &[u8]) -> Vec<u8> {
        let mut socket = self.socket();
        socket.write_all(bytes).unwrap();
        rest(&mut socket)
    }

    /// The error with which a startup packet is answered.
    pub(crate) fn refusal(&self, parameters: &[(&str, &str)]) -> Message {
        let mut out = Vec::new();
        frontend::startup(&mut out, parameters);
        error(&self.say(&out))
    }
}

/// All that is said until the other side closes.
pub(crate) fn rest(socket: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    // A reset after the last words is an end too.
    socket.read_to_end(&mut all).ok();
    all
}

/// The messages of an answer.
pub(crate) fn messages(mut bytes: &[u8]) -> Vec<Message> {
    let mut all = Vec::new();
    while let Some((message, length)) = backend::split(bytes).unwrap() {
        all.push(message);
        bytes = &bytes[length..];
    }
    assert!(bytes.is_empty(), "{bytes:?}");
    all
}

/// The error that ends an answer.
pub(crate) fn error(bytes: &[u8]) -> Message {
    let last = messages(bytes).pop().unwrap();
    assert_eq!(last.tag, b'E', "{last:?}");
    assert_eq!(last.field(b'V').as_deref(), Some("FATAL"));
    last
}

/// SQLSTATE and message.
pub(crate) fn words(error: &Message) -> (String, String) {
    (error.sqlstate().unwrap(), error.field(b'M').unwrap())
}

/// Reads a message.
pub(crate) fn receive(socket: &mut TcpStream) -> Message {
    let mut head = [0; 5];
    socket.read_exact(&mut head).unwrap();
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    let mut body = vec![0; usize::try_from(length).unwrap() - 4];
    socket.read_exact(&mut body).unwrap();
    Message { tag: head[0], body }
}

/// A packet without a type: a length and a body.
pub(crate) fn packet(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&length.to_be_bytes(), body].concat()
}

pub(crate) const SSL_REQUEST: &[u8] = &[0, 0, 0, 8, 4, 210, 22, 47];
pub(crate) const GSSENC_REQUEST: &[u8] = &[0, 0, 0, 8, 4, 210, 22, 48];

/// Asks again until something is so.
pub(crate) fn until(what: &str, mut is: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !is() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}
