//! A server with a lane that does what a test says.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use prometheus_client::registry::Registry;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windrow_core::{
    Arrivals, Budget, Dones, Fault, Intake, Submission, UnitFault, UnitOutcome, Write, WriteDone,
};
use windrow_http::extension::{Extension, ExtraEndpoint};
use windrow_http::{Ack, Http, HttpConfig, HttpMetrics, Readiness, Services};

pub(crate) const MIB: usize = 1 << 20;

/// A running frontend. Dropped, it is stopped.
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    pub(crate) budget: Budget,
    pub(crate) stop: CancellationToken,
    pub(crate) running: JoinHandle<()>,
    pub(crate) ready: Arc<Mutex<Result<(), Fault>>>,
    pub(crate) registry: Arc<Registry>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Server {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    pub(crate) fn rows(&self) -> String {
        self.url("/v1/tables/t/rows")
    }

    pub(crate) fn metrics(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        text
    }

    pub(crate) async fn connect(&self) -> Raw {
        Raw(TcpStream::connect(self.addr).await.unwrap())
    }
}

struct Ready(Arc<Mutex<Result<(), Fault>>>);

#[async_trait]
impl Readiness for Ready {
    async fn ready(&self) -> Result<(), Fault> {
        self.0.lock().unwrap().clone()
    }
}

pub(crate) fn config() -> HttpConfig {
    HttpConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        ..HttpConfig::default()
    }
}

pub(crate) fn services(
    intake: Intake,
    ready: Arc<Mutex<Result<(), Fault>>>,
    extra: &[ExtraEndpoint],
) -> (Services, Arc<Registry>) {
    let mut registry = Registry::default();
    let metrics = HttpMetrics::register(&mut registry, extra);
    let registry = Arc::new(registry);
    let text = Arc::clone(&registry);
    let services = Services {
        intake,
        reads: None,
        spool: None,
        keys: None,
        tracer: None,
        ack: Ack::Commit,
        inventory: None,
        owns: Arc::new(|table| table.table.starts_with('_')),
        ready: Arc::new(Ready(ready)),
        metrics_text: Arc::new(move || {
            let mut out = String::new();
            prometheus_client::encoding::text::encode(&mut out, &text).unwrap();
            out
        }),
        lanes: Arc::new(|| serde_json::json!({"lanes": []})),
        metrics,
    };
    (services, registry)
}

/// A server whose lane is the given end.
pub(crate) async fn start(config: HttpConfig, budget: usize) -> (Server, Arrivals) {
    start_with(config, budget, crate::extension()).await
}

/// As [`start`], with an extension.
pub(crate) async fn start_with(
    config: HttpConfig,
    budget: usize,
    extension: Option<Arc<dyn Extension>>,
) -> (Server, Arrivals) {
    start_changed(config, Budget::new(budget), extension, |_| {}).await
}

/// As [`start_with`], with services that were changed before.
pub(crate) async fn start_changed(
    config: HttpConfig,
    budget: Budget,
    extension: Option<Arc<dyn Extension>>,
    change: impl FnOnce(&mut Services),
) -> (Server, Arrivals) {
    let (intake, arrivals) = Intake::channel(budget.clone(), 64);
    let ready = Arc::new(Mutex::new(Ok(())));
    let extra = extension.as_ref().map_or(&[][..], |e| e.endpoints());
    let (mut services, registry) = services(intake, Arc::clone(&ready), extra);
    change(&mut services);
    let http = Http::bind(config, services, extension.into_iter().collect())
        .await
        .unwrap();
    let stop = CancellationToken::new();
    let server = Server {
        addr: http.local_addr(),
        budget,
        running: tokio::spawn(http.run(stop.clone())),
        stop,
        ready,
        registry,
    };
    (server, arrivals)
}

/// A server whose lane answers each write by a function and remembers all of them.
pub(crate) async fn serve(
    rule: impl FnMut(&Write) -> Result<WriteDone, Fault> + Send + 'static,
) -> (Server, Seen) {
    serve_with(config(), rule).await
}

pub(crate) async fn serve_with(
    config: HttpConfig,
    mut rule: impl FnMut(&Write) -> Result<WriteDone, Fault> + Send + 'static,
) -> (Server, Seen) {
    let (server, mut arrivals) = start(config, 64 * MIB).await;
    let seen = Seen::default();
    let log = seen.clone();
    tokio::spawn(async move {
        while let Some(submission) = arrivals.recv().await {
            log.add(&submission);
            answer(submission, &mut rule);
        }
    });
    (server, seen)
}

pub(crate) fn good(_: &Write) -> Result<WriteDone, Fault> {
    Ok(WriteDone::rows(1))
}

/// Answers a submission as a lane would: each unit succeeds or fails as a whole.
pub(crate) fn answer(
    submission: Submission,
    rule: &mut impl FnMut(&Write) -> Result<WriteDone, Fault>,
) {
    let held: usize = submission.units.iter().map(windrow_core::Unit::bytes).sum();
    assert!(
        submission.permit.bytes() >= held,
        "the permit of {} bytes does not cover {held}",
        submission.permit.bytes()
    );
    let outcomes: Vec<UnitOutcome> = submission
        .units
        .iter()
        .map(|unit| {
            let mut dones = Dones::new();
            for (at, write) in unit.writes().iter().enumerate() {
                dones.push(rule(write).map_err(|fault| UnitFault {
                    at,
                    fault,
                    before: Vec::new(),
                })?);
            }
            Ok(dones)
        })
        .collect();
    drop(submission.permit);
    submission.reply.send(outcomes);
}

/// What the lane was asked: submissions of units of writes.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<Vec<Vec<Write>>>>>);

impl Seen {
    pub(crate) fn add(&self, submission: &Submission) {
        let units = submission.units.iter().map(|u| u.writes().to_vec());
        self.0.lock().unwrap().push(units.collect());
    }

    pub(crate) fn submissions(&self) -> Vec<Vec<Vec<Write>>> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn units(&self) -> Vec<Vec<Write>> {
        self.submissions().into_iter().flatten().collect()
    }

    pub(crate) fn writes(&self) -> Vec<Write> {
        self.units().into_iter().flatten().collect()
    }

    /// The only write.
    pub(crate) fn one(&self) -> Write {
        let writes = self.writes();
        assert_eq!(writes.len(), 1, "{writes:?}");
        writes[0].clone()
    }
}

pub(crate) fn columns(write: &Write) -> Vec<&str> {
    write.shape.columns.iter().map(|c| &**c).collect()
}

/// A client that speaks bytes.
pub(crate) struct Raw(pub(crate) TcpStream);

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

impl Raw {
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
    }

    /// One answer with a Content-Length.
    pub(crate) async fn reply(&mut self) -> Reply {
        let mut bytes = Vec::new();
        loop {
            if let Some(reply) = parse(&bytes) {
                return reply;
            }
            let byte = self.0.read_u8().await;
            bytes.push(
                byte.unwrap_or_else(|e| panic!("{e} after {:?}", String::from_utf8_lossy(&bytes))),
            );
        }
    }

    /// Everything up to the end of the connection.
    pub(crate) async fn rest(&mut self) -> String {
        String::from_utf8(self.rest_bytes().await).unwrap()
    }

    pub(crate) async fn rest_bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // A reset ends it too; what came before it counts.
        drop(self.0.read_to_end(&mut bytes).await);
        bytes
    }
}

fn parse(bytes: &[u8]) -> Option<Reply> {
    let text = std::str::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |n| n.parse().unwrap());
    (body.len() == length).then(|| Reply {
        status: head[9..12].parse().unwrap(),
        head: head.to_owned(),
        body: body.to_owned(),
    })
}

pub(crate) fn request(method: &str, path: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub(crate) fn post(path: &str, kind: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Polls until a condition holds.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Sends with reqwest; gives the status and the JSON.
pub(crate) async fn send(request: reqwest::RequestBuilder) -> (u16, serde_json::Value) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let json = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    (status, json)
}

/// A client whose bodies are JSON unless they say otherwise.
pub(crate) fn client() -> reqwest::Client {
    let json = HeaderValue::from_static("application/json");
    reqwest::Client::builder()
        .no_proxy()
        .default_headers(HeaderMap::from_iter([(CONTENT_TYPE, json)]))
        .build()
        .unwrap()
}

/// Posts text of a kind.
pub(crate) async fn post_text(
    url: String,
    kind: &str,
    body: impl Into<reqwest::Body>,
) -> (u16, serde_json::Value) {
    send(client().post(url).header("content-type", kind).body(body)).await
}

pub(crate) fn unique() -> Fault {
    Fault::new(
        windrow_core::FaultClass::Unique,
        "23505",
        "the key is there already",
    )
    .with_constraint(Some("t_pkey"))
    .with_detail(Some("Key (id)=(1) already exists."))
}
