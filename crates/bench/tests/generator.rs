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

use windrow_bench::generator::{
    Call, Clients, Inserts, Job, Live, Outcome, Report, Schedule, Style, Target, Until, http,
    stream,
};

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

/// Sends its client and number, and records the outcomes.
struct Numbered {
    each: u64,
    seen: Mutex<Vec<Outcome>>,
}

impl Job for Numbered {
    fn write(&self, call: Call<'_>, out: &mut Vec<u8>) {
        http::request(out, "POST /x", "text/plain", "", |out| {
            write!(out, "{}/{}", call.client, call.n).unwrap();
        });
    }

    fn ends(&self, call: Call<'_>) -> bool {
        call.n >= self.each
    }

    fn seen(&self, _: Call<'_>, outcome: Outcome, _: &[u8]) {
        self.seen.lock().unwrap().push(outcome);
    }
}

fn run(server: &Server, schedule: Schedule, until: &Until, job: &Arc<dyn Job>) -> Report {
    let live = Arc::new(Live::default());
    let mut clients = Clients::open(&Target::Http(server.address), 4).unwrap();
    let report = clients.run(schedule, until, job, &live).unwrap();
    assert_eq!(live.successes(), report.successes());
    assert_eq!(live.successes() + live.others(), report.calls());
    report
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
    let dynamic: Arc<dyn Job> = Arc::clone(&job) as _;
    let until = Until::calls(u64::MAX);
    let report = run(&server, Schedule::Closed, &until, &dynamic);
    assert_eq!((report.successes(), report.calls()), (70, 100));
    let outcomes: Vec<_> = report.outcomes.into_iter().collect();
    let expected = [
        (Outcome::Success, 70),
        (Outcome::Refused(409), 10),
        (Outcome::Unknown, 10),
        (Outcome::Lost, 10),
    ];
    assert_eq!(outcomes, expected);
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
        let job: Arc<dyn Job> = Arc::new(Inserts::from(Style::Http, 0));
        let until = Until::after(Duration::from_millis(500));
        let schedule = Schedule::Poisson { rate: 400.0, seed };
        run(&server, schedule, &until, &job).calls()
    };
    // 200 are expected; 100 more or less would be seven standard deviations.
    let first = send(1);
    assert!((100..300).contains(&first), "{first}");
    assert_eq!(send(1), first);
}

#[test]
fn calls_at_even_distances_are_as_many_as_the_rate_says() {
    for schedule in [
        Schedule::Even { rate: 400.0 },
        Schedule::FirstFree { rate: 400.0 },
    ] {
        let server = Server::start(|_| Some(201));
        let job: Arc<dyn Job> = Arc::new(Inserts::from(Style::Http, 0));
        let until = Until::after(Duration::from_millis(250));
        let report = run(&server, schedule, &until, &job);
        assert_eq!(report.calls(), 100);
        let mut bodies = server.bodies();
        bodies.sort_unstable();
        bodies.dedup();
        assert_eq!(bodies.len(), 100);
    }
}

#[test]
fn calls_that_arrive_go_to_any_client_once() {
    let server = Server::start(|_| Some(201));
    let job: Arc<dyn Job> = Arc::new(Inserts::from(Style::Http, 0));
    let until = Until::after(Duration::from_millis(500));
    let schedule = Schedule::Arrivals {
        rate: 400.0,
        seed: 1,
    };
    let report = run(&server, schedule, &until, &job);
    assert!((1..300).contains(&report.calls()), "{}", report.calls());
    assert!(report.generator_cpu.is_some());
    let mut bodies = server.bodies();
    bodies.sort_unstable();
    bodies.dedup();
    assert_eq!(bodies.len() as u64, report.calls());
}

#[test]
fn a_body_arrives_whole_with_and_without_a_known_length() {
    let server = Server::start(|_| Some(200));
    let body = "0123456789".repeat(100_000);
    for length in [Some(1_000_000), None] {
        let address = server.address;
        let reply =
            stream::send(address, "POST /x", "text/plain", length, body.as_bytes()).unwrap();
        assert_eq!(
            (reply.status, reply.body.as_str()),
            (200, "{\"code\":\"x\"}")
        );
    }
    assert!(server.bodies().iter().all(|got| *got == body));
}
