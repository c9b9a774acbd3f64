//! A collector that keeps what it gets.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The caller's span of most tests.
pub const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
pub const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
pub const SPAN: &str = "00f067aa0ba902b7";

/// What a collector answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Takes,
    /// With this status.
    Refuses(u16),
    /// Once; then it takes them.
    BusyOnce,
    /// Once, with this status, and says after how many seconds to come back; then it takes them.
    Later(u16, u32),
    /// The same, by a date.
    LaterByDate(u16, u32),
    /// It reads, and says nothing.
    Silent,
}

pub struct Collector {
    pub endpoint: String,
    kept: Arc<Kept>,
    /// So many requests have come.
    pub requests: watch::Receiver<usize>,
}

struct Kept {
    manner: Manner,
    bodies: Mutex<Vec<Vec<u8>>>,
    heads: Mutex<Vec<String>>,
    /// When it has asked to be asked again.
    due: Mutex<Option<SystemTime>>,
    /// How many requests came earlier than that.
    early: AtomicUsize,
    requests: watch::Sender<usize>,
}

impl Collector {
    pub async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = watch::channel(0);
        let kept = Arc::new(Kept {
            manner,
            bodies: Mutex::default(),
            heads: Mutex::default(),
            due: Mutex::default(),
            early: AtomicUsize::default(),
            requests: sender,
        });
        let keeper = Arc::clone(&kept);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&keeper)));
            }
        });
        Self {
            endpoint,
            kept,
            requests,
        }
    }

    /// Waits until so many requests have come.
    pub async fn was_asked(&mut self, times: usize) {
        let asked = self.requests.wait_for(|requests| *requests >= times);
        asked.await.unwrap();
    }

    /// All spans so far.
    pub fn spans(&self) -> Vec<Span> {
        let requests = self.requests_read().into_iter();
        let of_resource = requests.flat_map(|request| request.resource_spans);
        let of_scope = of_resource.flat_map(|resource| resource.scope_spans);
        of_scope.flat_map(|scope| scope.spans).collect()
    }

    pub fn requests_read(&self) -> Vec<ExportTraceServiceRequest> {
        let bodies = self.kept.bodies.lock().unwrap();
        let read = |body: &Vec<u8>| ExportTraceServiceRequest::decode(&body[..]).unwrap();
        bodies.iter().map(read).collect()
    }

    /// The heads of all requests.
    pub fn heads(&self) -> Vec<String> {
        self.kept.heads.lock().unwrap().clone()
    }

    /// How many requests came before they were asked for.
    pub fn early(&self) -> usize {
        self.kept.early.load(Ordering::Relaxed)
    }

    /// Whether some bytes are in any request.
    pub fn has_seen(&self, what: &str) -> bool {
        let bodies = self.kept.bodies.lock().unwrap();
        let contains = |body: &Vec<u8>| body.windows(what.len()).any(|w| w == what.as_bytes());
        bodies.iter().any(contains)
    }
}

impl Kept {
    /// A status, and the header that asks to come back later.
    fn answer(&self) -> (u16, String) {
        let now = SystemTime::now();
        if self.due.lock().unwrap().is_some_and(|due| now < due) {
            self.early.fetch_add(1, Ordering::Relaxed);
        }
        let is_first = *self.requests.borrow() == 0;
        let (status, seconds, by_date) = match self.manner {
            Manner::BusyOnce if is_first => return (503, String::new()),
            Manner::Later(status, seconds) if is_first => (status, seconds, false),
            Manner::LaterByDate(status, seconds) if is_first => (status, seconds, true),
            Manner::Refuses(status) => return (status, String::new()),
            _ => return (200, String::new()),
        };
        let mut due = now + Duration::from_secs(seconds.into());
        let mut text = seconds.to_string();
        if by_date {
            text = httpdate::fmt_http_date(due);
            // A date has whole seconds.
            due = httpdate::parse_http_date(&text).unwrap();
        }
        *self.due.lock().unwrap() = Some(due);
        (status, format!("retry-after: {text}\r\n"))
    }
}

async fn serve(stream: TcpStream, kept: Arc<Kept>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).await? == 0 {
                return Ok(());
            }
        }
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_it = name.eq_ignore_ascii_case("content-length");
            is_it.then(|| value.trim().parse().unwrap())
        });
        let mut body = vec![0; length.expect("a length")];
        stream.read_exact(&mut body).await?;
        let (status, retry_after) = kept.answer();
        if status == 200 {
            kept.bodies.lock().unwrap().push(body);
        }
        kept.heads.lock().unwrap().push(head);
        kept.requests.send_modify(|requests| *requests += 1);
        if kept.manner == Manner::Silent {
            return std::future::pending().await;
        }
        let answer = format!("HTTP/1.1 {status} X\r\n{retry_after}content-length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).await?;
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The spans of requests, and those of batches.
pub fn sorted(spans: Vec<Span>) -> (Vec<Span>, Vec<Span>) {
    spans.into_iter().partition(|span| span.name != "batch")
}

/// An attribute, as text.
pub fn attribute(span: &Span, name: &str) -> Option<String> {
    value(&span.attributes, name)
}

pub fn value(attributes: &[KeyValue], name: &str) -> Option<String> {
    let found = attributes.iter().find(|one| one.key == name)?;
    let AnyValue { value } = found.value.clone()?;
    Some(match value? {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        Value::DoubleValue(number) => number.to_string(),
        Value::BoolValue(flag) => flag.to_string(),
        other => panic!("{other:?}"),
    })
}

/// Whether a span links to another.
pub fn links_to(span: &Span, other: &Span) -> bool {
    let is = |link: &opentelemetry_proto::tonic::trace::v1::span::Link| {
        (&link.trace_id, &link.span_id) == (&other.trace_id, &other.span_id)
    };
    span.links.iter().any(is)
}
