//! A small HTTP/1.1 server on a free loopback port, for stand-ins of databases that speak it: what
//! it answers is up to its owner, and it can be told to break off at the worst moments.

mod message;
mod wire;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use message::{Reply, Request};

/// What goes wrong with a request.
#[derive(Clone, Debug)]
pub enum Mishap {
    /// The connection is cut once the request has been read; nothing is done.
    CutBefore,
    /// What was asked for is done, and the connection is cut instead of an answer.
    CutAfter,
    /// What was asked for is done, and the connection is cut in the middle of the answer.
    CutWithin,
    /// What was asked for is done, and nothing is answered for as long as the client waits.
    Silent,
    /// Nothing is done, and this is answered.
    Instead(Reply),
    /// What was asked for is done, and this is answered.
    Done(Reply),
}

/// Decides about a request.
type Filter = Box<dyn Fn(&Request) -> bool + Send>;

/// What answers requests, one after another.
type Handler = Box<dyn FnMut(&Request) -> Reply + Send>;

/// A listening server. It and all its connections end when it is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    _end: DropGuard,
}

struct Shared {
    handler: Mutex<Handler>,
    mishaps: Mutex<Vec<(Filter, Mishap)>>,
    requests: Mutex<Vec<Request>>,
}

impl Server {
    /// Listens on a port of its own. Needs a tokio runtime, which must live as long as the server.
    ///
    /// # Errors
    /// No port can be opened on 127.0.0.1.
    pub async fn start(handler: impl FnMut(&Request) -> Reply + Send + 'static) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            handler: Mutex::new(Box::new(handler)),
            mishaps: Mutex::default(),
            requests: Mutex::default(),
        });
        let end = CancellationToken::new();
        let (ended, serving) = (end.clone(), accept(listener, shared.clone()));
        tokio::spawn(async move {
            ended.run_until_cancelled(serving).await;
        });
        Ok(Self {
            address,
            shared,
            _end: end.drop_guard(),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next request for which the filter holds meets this, once. Several are met in the order
    /// in which they were given.
    pub fn next(&self, filter: impl Fn(&Request) -> bool + Send + 'static, mishap: Mishap) {
        lock(&self.shared.mishaps).push((Box::new(filter), mishap));
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared.requests).clone()
    }

    /// Forgets the requests so far.
    pub fn clear(&self) {
        lock(&self.shared.requests).clear();
    }
}

impl Shared {
    fn mishap(&self, request: &Request) -> Option<Mishap> {
        let mut mishaps = lock(&self.mishaps);
        let place = mishaps.iter().position(|(filter, _)| filter(request))?;
        Some(mishaps.remove(place).1)
    }

    fn handle(&self, request: &Request) -> Reply {
        let mut handler = lock(&self.handler);
        handler(request)
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut lines = tokio::task::JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let shared = shared.clone();
        lines.spawn(async move {
            // A connection that ends early is the client's matter.
            serve(socket, &shared).await.ok();
        });
        while lines.try_join_next().is_some() {}
    }
}

async fn serve(mut socket: TcpStream, shared: &Shared) -> Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = Vec::new();
    while let Some(request) = wire::read(&mut socket, &mut buffer).await? {
        lock(&shared.requests).push(request.clone());
        let reply = match shared.mishap(&request) {
            None => shared.handle(&request),
            Some(Mishap::Instead(reply)) => reply,
            Some(Mishap::CutBefore) => return Ok(()),
            Some(mishap) => {
                let reply = shared.handle(&request);
                match mishap {
                    Mishap::Done(reply) => reply,
                    Mishap::CutWithin => return wire::write_half(&mut socket, &reply).await,
                    Mishap::Silent => std::future::pending().await,
                    _ => return Ok(()),
                }
            }
        };
        wire::write(&mut socket, &reply).await?;
    }
    Ok(())
}
