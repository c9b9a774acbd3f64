//! The load generator against a small server that answers by rule.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests may"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use windrow_bench::http::closed::{self, Closed, Until};
use windrow_bench::http::open::{self, Open};
use windrow_bench::http::{Inserts, Job, Live, Outcome, stream};

/// Answers requests by their running number over all connections: a status, or `None` to close the
/// connection.
type Rule = fn(u64) -> Option<u16>;

#[derive(Clone)]
struct Server {
    address: SocketAddr,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(rule: Rule) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            bodies: Arc::default(),
        };
        let bodies = Arc::clone(&server.bodies);
        thread::spawn(move || {
            while let Ok((socket, _)) = listener.accept() {
                let bodies = Arc::clone(&bodies);
                thread::spawn(move || serve(socket, rule, &bodies));
            }
        });
        server
    }

    fn bodies(&self) -> Vec<String> {
        self.bodies.lock().unwrap().clone()
    }
}

fn serve(socket: TcpStream, rule: Rule, bodies: &Mutex<Vec<String>>) {
    let mut writing = socket.try_clone().unwrap();
    let mut reading = BufReader::new(socket);
    while let Some(Request { body, last }) = request(&mut reading) {
        let number = {
            let mut bodies = bodies.lock().unwrap();
            bodies.push(body);
            bodies.len() as u64
        };
        let Some(status) = rule(number) else { return };
        let code = if status == 503 { "08007" } else { "x" };
        let answer = format!("{{\"code\":\"{code}\"}}");
        // In one piece: the rest of a split answer would wait for an acknowledgement.
        let answer = format!(
            "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{answer}",
            answer.len()
        );
        writing.write_all(answer.as_bytes()).ok();
        if last {
            return;
        }
    }
}

struct Request {
    body: String,
    /// The client asked for the connection to be closed afterwards.
    last: bool,
}

fn request(reading: &mut BufReader<TcpStream>) -> Option<Request> {
    let (mut length, mut chunked, mut last) = (0, false, false);
    loop {
        let mut line = String::new();
        reading.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let line = line.trim_end();
        if let Some(n) = line.strip_prefix("Content-Length: ") {
            length = n.parse().unwrap();
        }
        last |= line == "Connection: close";
        chunked |= line == "Transfer-Encoding: chunked";
        if line.is_empty() {
            break;
        }
    }
    let mut body = Vec::new();
    if chunked {
        while let Some(chunk @ 1..) = chunk(reading, &mut body) {
            assert!(chunk > 0);
        }
    } else {
        body.resize(length, 0);
        reading.read_exact(&mut body).ok()?;
    }
    Some(Request {
        body: String::from_utf8(body).unwrap(),
        last,
    })
}

fn chunk(reading: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> Option<usize> {
    let mut line = String::new();
    reading.read_line(&mut line).ok()?;
    let length = usize::from_str_radix(line.trim_end(), 16).unwrap();
    let mut bytes = vec![0; length + 2];
    reading.read_exact(&mut bytes).ok()?;
    body.extend_from_slice(bytes.get(..length).unwrap());
    Some(length)
}

/// Sends its connection and number, and records what it is told.
struct Numbered {
    each: u64,
    seen: Mutex<Vec<Outcome>>,
}

impl Job for Numbered {
    fn target(&self) -> &str {
        "POST /x"
    }

    fn body(&self, connection: usize, n: u64, out: &mut Vec<u8>) {
        write!(out, "{connection}/{n}").unwrap();
    }

    fn ends(&self, _connection: usize, n: u64) -> bool {
        n >= self.each
    }

    fn seen(&self, _connection: usize, _n: u64, outcome: Outcome, _answer: &[u8]) {
        self.seen.lock().unwrap().push(outcome);
    }
}

#[test]
fn a_closed_loop_sends_everything_once_and_counts_by_outcome() {
    let server = Server::start(|n| match n % 10 {
        1 => Some(409),
        2 => Some(503),
        3 => None,
        _ => Some(201),
    });
    let job = Arc::new(Numbered {
        each: 25,
        seen: Mutex::default(),
    });
    let load = Closed {
        connections: 4,
        until: Until::Done,
    };
    let live = Arc::new(Live::default());
    let dynamic: Arc<dyn Job> = Arc::clone(&job) as _;
    let report = closed::run(server.address, &load, &dynamic, &live).unwrap();
    let outcomes: Vec<_> = report.outcomes.into_iter().collect();
    let expected = [
        (Outcome::Success, 70),
        (Outcome::Refused(409), 10),
        (Outcome::Unknown, 10),
        (Outcome::Lost, 10),
    ];
    assert_eq!(outcomes, expected);
    assert_eq!((live.successes(), live.others()), (70, 30));
    assert_eq!(job.seen.lock().unwrap().len(), 100);
    let mut bodies = server.bodies();
    bodies.sort_unstable();
    bodies.dedup();
    assert_eq!(bodies.len(), 100);
}

#[test]
fn an_open_loop_sends_at_its_rate_and_the_same_for_the_same_seed() {
    let send = |seed| {
        let server = Server::start(|_| Some(201));
        let load = Open {
            connections: 4,
            rate: 400.0,
            time: Duration::from_millis(500),
            seed,
        };
        let job: Arc<dyn Job> = Arc::new(Inserts::new());
        open::run(server.address, &load, &job).unwrap().requests()
    };
    // 200 are expected; 100 more or less would be seven standard deviations.
    let first = send(1);
    assert!((100..300).contains(&first), "{first}");
    assert_eq!(send(1), first);
}

#[test]
fn a_body_arrives_whole_with_and_without_a_known_length() {
    let server = Server::start(|_| Some(200));
    let body = "0123456789".repeat(100_000);
    for length in [Some(1_000_000), None] {
        let address = server.address;
        let reply = stream::post(address, "/x", "text/plain", length, body.as_bytes()).unwrap();
        assert_eq!(
            (reply.status, reply.body.as_str()),
            (200, "{\"code\":\"x\"}")
        );
    }
    assert!(server.bodies().iter().all(|got| *got == body));
}
