//! A small HTTP/1.1 server on a free loopback port, for stand-ins of databases that speak it. Its
//! owner decides what it answers, and can have a connection break at the worst moments.

mod message;
mod wire;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use anyhow::Result;
use tokio::net::TcpStream;

pub use message::{Reply, Request};

use crate::listener::{Listener, locked};

/// A fault that a request meets.
#[derive(Clone, Debug)]
pub enum Mishap {
    /// The connection is cut once the request has been read; nothing is done.
    CutBefore,
    /// The request is executed, and the connection is cut instead of an answer.
    CutAfter,
    /// The request is executed, and the connection is cut in the middle of the answer.
    CutWithin,
    /// The request is executed, and nothing is answered for as long as the client waits.
    Silent,
    /// Nothing is done, and this is answered.
    Instead(Reply),
    /// The request is executed, and this is answered.
    Done(Reply),
}

/// Decides about a request.
type Filter = Box<dyn Fn(&Request) -> bool + Send>;

/// A listening server with the state of a database. It and all its connections end when it is
/// dropped.
pub struct WebServer<S> {
    listener: Listener,
    shared: Arc<Shared<S>>,
}

struct Shared<S> {
    state: Mutex<S>,
    answer: fn(&mut S, &Request) -> Reply,
    mishaps: Mutex<Vec<(Filter, Mishap)>>,
    requests: Mutex<Vec<Request>>,
}

impl<S: Send + 'static> WebServer<S> {
    /// Listens on a port of its own; requests are answered one after another. Needs a tokio
    /// runtime, which must live as long as the server.
    ///
    /// # Errors
    /// No port can be opened on 127.0.0.1.
    pub async fn start(state: S, answer: fn(&mut S, &Request) -> Reply) -> Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            answer,
            mishaps: Mutex::default(),
            requests: Mutex::default(),
        });
        let serving = Arc::clone(&shared);
        let listener = Listener::start(move |socket| {
            let shared = Arc::clone(&serving);
            async move {
                // A connection that ends early is the client's matter.
                serve(socket, &shared).await.ok();
            }
        });
        Ok(Self {
            listener: listener.await?,
            shared,
        })
    }

    /// Returns the address where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Returns the state, which no request changes meanwhile.
    pub fn state(&self) -> MutexGuard<'_, S> {
        locked(&self.shared.state)
    }

    /// Has the next request for which the filter holds meet a fault, once. Several are met in the
    /// order in which they were given.
    pub fn next(&self, filter: impl Fn(&Request) -> bool + Send + 'static, mishap: Mishap) {
        locked(&self.shared.mishaps).push((Box::new(filter), mishap));
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<Request> {
        locked(&self.shared.requests).clone()
    }

    /// Forgets the requests so far.
    pub fn clear(&self) {
        locked(&self.shared.requests).clear();
    }
}

impl<S> Shared<S> {
    fn mishap(&self, request: &Request) -> Option<Mishap> {
        let mut mishaps = locked(&self.mishaps);
        let place = mishaps.iter().position(|(filter, _)| filter(request))?;
        Some(mishaps.remove(place).1)
    }

    fn execute(&self, request: &Request) -> Reply {
        (self.answer)(&mut locked(&self.state), request)
    }
}

async fn serve<S>(mut socket: TcpStream, shared: &Shared<S>) -> Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = Vec::new();
    while let Some(request) = wire::read(&mut socket, &mut buffer).await? {
        locked(&shared.requests).push(request.clone());
        let reply = match shared.mishap(&request) {
            None => shared.execute(&request),
            Some(Mishap::Instead(reply)) => reply,
            Some(Mishap::CutBefore) => return Ok(()),
            Some(mishap) => {
                let reply = shared.execute(&request);
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
