//! The load generators' own limits: the same load against a server that answers without doing
//! anything. What stands close to a limit was held up by the generator.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use windrow_testkit::pgclient::Address;

use super::answer::packet;
use super::clients::Clients;
use super::connection::Target;
use super::job::{Inserts, Job, Lookups, Style};
use super::mysql;
use super::report::Live;
use super::schedule::{Schedule, Until};
use super::transaction::Transactions;
use crate::runtime::runtime;

/// The time of each measurement.
const TIME: Duration = Duration::from_millis(500);

/// The answer to one row, as long as Windrow's.
const CREATED: &[u8] =
    b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\
    date: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n{\"rows\":1}";

const LET_IN: &[u8] = b"R\0\0\0\x08\0\0\0\0";
const PARSED: &[u8] = b"1\0\0\0\x04";
const BOUND: &[u8] = b"2\0\0\0\x04";
const READY: &[u8] = b"Z\0\0\0\x05I";
const INSERTED: &[u8] = b"C\0\0\0\x0fINSERT 0 1\0";

/// The same with one row that has one value, for statements with RETURNING.
const RETURNED: &[u8] = b"D\0\0\0\x0b\0\x01\0\0\0\x017C\0\0\0\x0fINSERT 0 1\0";

const MYSQL_GREETING: &[u8] = b"\x01\0\0\0\x0a";
const MYSQL_LET_IN: &[u8] = b"\x07\0\0\x02\0\0\0\x02\0\0\0";
const MYSQL_PREPARED: &[u8] = b"\x0c\0\0\x01\0\x01\0\0\0\0\0\0\0\0\0\0";
const MYSQL_INSERTED: &[u8] = b"\x07\0\0\x01\0\x01\0\x02\0\0\0";

/// One row that has one value.
const MYSQL_ROW: &[u8] = b"\x01\0\0\x01\x01\x03\0\0\x02def\x05\0\0\x03\xfe\0\0\x02\0\
    \x02\0\0\x04\x017\x05\0\0\x05\xfe\0\0\x02\0";

/// Returns the rows a second that so many clients send.
///
/// # Errors
/// The server cannot be started.
pub fn of_rows(clients: usize, style: Style) -> Result<f64> {
    taker(style)?.rate(clients, Schedule::Closed, TIME, Inserts::from(style, 0))
}

/// Returns the rows a second that so many clients read.
///
/// # Errors
/// As [`of_rows`].
pub fn of_reads(clients: usize, style: Style) -> Result<f64> {
    let server = match style {
        Style::MySql(_) => over_mysql(MYSQL_ROW)?,
        _ => over_pg(RETURNED)?,
    };
    server.rate(clients, Schedule::Closed, TIME, Lookups { style })
}

/// Returns the same as [`of_rows`] at fixed times: at a rate that nobody reaches, each client sends
/// its next row at once.
///
/// # Errors
/// As [`of_rows`].
pub fn of_rows_at_times(clients: usize, style: Style) -> Result<f64> {
    let schedule = Schedule::Poisson { rate: 1e6, seed: 1 };
    taker(style)?.rate(clients, schedule, TIME / 10, Inserts::from(style, 0))
}

/// Starts a server that takes rows.
fn taker(style: Style) -> Result<Nothing> {
    match style {
        Style::Http | Style::HttpWithKey => over_http(),
        Style::Pg(_) => over_pg(INSERTED),
        Style::MySql(_) => over_mysql(MYSQL_INSERTED),
    }
}

/// Returns the same in transactions a second.
///
/// # Errors
/// As [`of_rows`].
pub fn of_transactions(clients: usize, job: Transactions) -> Result<f64> {
    over_pg(RETURNED)?.rate(clients, Schedule::Closed, TIME, job)
}

/// A server on a thread of its own, with one event loop, until it is dropped.
struct Nothing {
    target: Target,
    _end: oneshot::Sender<()>,
}

impl Nothing {
    fn start<F, A>(target: fn(SocketAddr) -> Target, answer: F) -> Result<Self>
    where
        F: Fn(TcpStream) -> A + Send + 'static,
        A: Future<Output = Option<()>> + Send + 'static,
    {
        let (say, said) = std::sync::mpsc::channel();
        let (end, ended) = oneshot::channel();
        thread::spawn(move || -> Result<()> {
            runtime()?.block_on(async {
                let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
                say.send(listener.local_addr()?)?;
                let serve = async {
                    while let Ok((socket, _)) = listener.accept().await {
                        socket.set_nodelay(true).ok();
                        tokio::spawn(answer(socket));
                    }
                };
                tokio::select! {
                    () = serve => {}
                    _ = ended => {}
                }
                Ok(())
            })
        });
        let address = said.recv().context("the server does not listen")?;
        Ok(Self {
            target: target(address),
            _end: end,
        })
    }

    fn rate(
        &self,
        clients: usize,
        schedule: Schedule,
        time: Duration,
        job: impl Job + 'static,
    ) -> Result<f64> {
        let (until, job): (_, Arc<dyn Job>) = (Until::after(time), Arc::new(job));
        let mut clients = Clients::open(&self.target, clients)?.prepare(clients, &*job)?;
        let report = clients.run(schedule, &until, &job, &Arc::new(Live::default()))?;
        Ok(report.rate())
    }
}

/// Gives one answer for each request. A request's body ends in `}`, and a client has one request
/// under way.
fn over_http() -> Result<Nothing> {
    Nothing::start(Target::Http, |mut socket| async move {
        let mut request = Vec::with_capacity(4096);
        loop {
            request.clear();
            while request.last() != Some(&b'}') {
                receive(&mut socket, &mut request).await?;
            }
            socket.write_all(CREATED).await.ok()?;
        }
    })
}

/// Lets every client in, and answers each statement as an INSERT of one row.
fn over_pg(inserted: &'static [u8]) -> Result<Nothing> {
    Nothing::start(
        |socket| Target::Pg(nobody(socket)),
        move |socket| answer_all(socket, inserted),
    )
}

fn nobody(socket: SocketAddr) -> Address {
    Address {
        socket,
        role: "nobody".into(),
        database: "nothing".into(),
    }
}

/// Answers a client until it leaves, which is `None`.
async fn answer_all(mut socket: TcpStream, inserted: &[u8]) -> Option<()> {
    let (mut request, mut answer) = (Vec::with_capacity(4096), Vec::new());
    // A startup message has no tag.
    while whole(&request, 0).is_none() {
        receive(&mut socket, &mut request).await?;
    }
    request.clear();
    answer.extend([LET_IN, READY].concat());
    loop {
        socket.write_all(&answer).await.ok()?;
        answer.clear();
        while answer.is_empty() {
            receive(&mut socket, &mut request).await?;
            let mut rest = request.as_slice();
            while let Some((message, behind)) =
                whole(rest, 1).and_then(|n| rest.split_at_checked(n))
            {
                answer.extend_from_slice(match message.first()? {
                    b'P' => PARSED,
                    b'B' => BOUND,
                    b'E' => inserted,
                    b'S' => READY,
                    b'Q' => b"C\0\0\0\x0fINSERT 0 1\0Z\0\0\0\x05I",
                    _ => b"",
                });
                rest = behind;
            }
            let taken = request.len() - rest.len();
            request.drain(..taken);
        }
    }
}

/// Lets every client in over MySQL's protocol, and answers each command with the same packets.
fn over_mysql(answer: &'static [u8]) -> Result<Nothing> {
    Nothing::start(
        |socket| Target::MySql(nobody(socket)),
        move |mut socket| async move {
            let mut request = Vec::with_capacity(4096);
            socket.write_all(MYSQL_GREETING).await.ok()?;
            let mut next = MYSQL_LET_IN;
            loop {
                request.clear();
                while packet(&request, 0).is_none() {
                    receive(&mut socket, &mut request).await?;
                }
                let is_prepare = request.get(3..5) == Some(&[0, mysql::PREPARE]);
                let said = if is_prepare { MYSQL_PREPARED } else { next };
                socket.write_all(said).await.ok()?;
                next = answer;
            }
        },
    )
}

/// The length of the first message, its tag of so many bytes included, if all of it is there.
fn whole(input: &[u8], tag: usize) -> Option<usize> {
    let length = input.get(tag..)?.first_chunk()?;
    let all = tag + usize::try_from(u32::from_be_bytes(*length)).ok()?;
    (input.len() >= all).then_some(all)
}

async fn receive(socket: &mut TcpStream, into: &mut Vec<u8>) -> Option<()> {
    match socket.read_buf(into).await {
        Ok(1..) => Some(()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::pg::Mode;

    /// Nothing is said of the rates but that there are some.
    #[test]
    fn every_load_has_a_limit() {
        assert!(of_rows(2, Style::Http).unwrap() > 0.0);
        for mode in [Mode::Prepared, Mode::Extended, Mode::Simple] {
            for style in [Style::Pg(mode), Style::MySql(mode)] {
                assert!(of_rows(2, style).unwrap() > 0.0);
                assert!(of_reads(2, style).unwrap() > 0.0);
            }
        }
        assert!(of_rows_at_times(2, Style::Pg(Mode::Prepared)).unwrap() > 0.0);
        assert!(of_transactions(2, Transactions { lines: 3 }).unwrap() > 0.0);
    }
}
