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

use crate::http::closed::{self, Closed, Until};
use crate::http::{self, Live};
use crate::pg::answer::READY;
use crate::pg::closed::Clients;
use crate::pg::open::{self, Open};
use crate::pg::transaction::Transactions;
use crate::pg::{self, Job, Mode};

/// The time of each measurement.
const TIME: Duration = Duration::from_millis(500);

/// The answer to one row, as long as Windrow's.
const CREATED: &[u8] =
    b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\
    date: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n{\"rows\":1}";

const LET_IN: &[u8] = b"R\0\0\0\x08\0\0\0\0";
const PARSED: &[u8] = b"1\0\0\0\x04";
const BOUND: &[u8] = b"2\0\0\0\x04";
const INSERTED: &[u8] = b"C\0\0\0\x0fINSERT 0 1\0";

/// The same with one row that has one value, for statements with RETURNING.
const RETURNED: &[u8] = b"D\0\0\0\x0b\0\x01\0\0\0\x017C\0\0\0\x0fINSERT 0 1\0";

/// Rows a second that so many clients of the HTTP generator send.
///
/// # Errors
/// The server cannot be started.
pub fn of_http(connections: usize) -> Result<f64> {
    let server = Nothing::start(over_http)?;
    let load = Closed {
        connections,
        until: Until::Elapsed(TIME),
    };
    let job: Arc<dyn http::Job> = Arc::new(http::Inserts::new());
    let report = closed::run(server.address, &load, &job, &Arc::new(Live::default()))?;
    Ok(report.rate())
}

/// The same of the generator for PostgreSQL's protocol.
///
/// # Errors
/// As [`of_http`].
pub fn of_pg(clients: usize, mode: Mode) -> Result<f64> {
    let job: Arc<dyn Job> = Arc::new(pg::Inserts { first: 0, mode });
    of_calls(clients, &job, INSERTED)
}

/// The same in transactions a second.
///
/// # Errors
/// As [`of_http`].
pub fn of_transactions(clients: usize, job: Transactions) -> Result<f64> {
    let job: Arc<dyn Job> = Arc::new(job);
    of_calls(clients, &job, RETURNED)
}

fn of_calls(clients: usize, job: &Arc<dyn Job>, inserted: &'static [u8]) -> Result<f64> {
    let server = Nothing::start(move |socket| over_pg(socket, inserted))?;
    let mut open = Clients::open(&server.pg_address(), clients)?;
    open.prepare(clients, &**job)?;
    Ok(open.run(clients, TIME, job)?.answer_rate())
}

/// The same of its open loop: at a rate that nobody reaches, each client sends its next row at
/// once.
///
/// # Errors
/// As [`of_http`].
pub fn of_pg_open(connections: usize) -> Result<f64> {
    let server = Nothing::start(|socket| over_pg(socket, INSERTED))?;
    let load = Open {
        rate: 1e6,
        time: TIME / 10,
        seed: 1,
    };
    let job: Arc<dyn Job> = Arc::new(pg::Inserts::default());
    let mut open = open::Clients::open(&server.pg_address(), connections, &*job)?;
    Ok(open.run(&load, &job)?.answer_rate())
}

/// A server on a thread of its own, with one event loop, until it is dropped.
struct Nothing {
    address: SocketAddr,
    _end: oneshot::Sender<()>,
}

impl Nothing {
    fn start<F, A>(answer: F) -> Result<Self>
    where
        F: Fn(TcpStream) -> A + Send + 'static,
        A: Future<Output = Option<()>> + Send + 'static,
    {
        let (say, said) = std::sync::mpsc::channel();
        let (end, ended) = oneshot::channel();
        thread::spawn(move || -> Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async {
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
        Ok(Self { address, _end: end })
    }

    fn pg_address(&self) -> Address {
        Address {
            socket: self.address,
            role: "nobody".into(),
            database: "nothing".into(),
        }
    }
}

/// One answer for each request. A request's body ends in `}`, and a client has one request under
/// way. `None`: the client has gone.
async fn over_http(mut socket: TcpStream) -> Option<()> {
    let mut request = Vec::with_capacity(4096);
    loop {
        request.clear();
        while request.last() != Some(&b'}') {
            receive(&mut socket, &mut request).await?;
        }
        socket.write_all(CREATED).await.ok()?;
    }
}

/// Lets every client in, and answers each statement as an INSERT of one row.
async fn over_pg(mut socket: TcpStream, inserted: &[u8]) -> Option<()> {
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

    /// Nothing is said of the rates but that there are some.
    #[test]
    fn every_generator_has_a_limit() {
        assert!(of_http(2).unwrap() > 0.0);
        for mode in [Mode::Prepared, Mode::Extended, Mode::Simple] {
            assert!(of_pg(2, mode).unwrap() > 0.0);
        }
        assert!(of_pg_open(2).unwrap() > 0.0);
        assert!(of_transactions(2, Transactions { lines: 3 }).unwrap() > 0.0);
    }
}
