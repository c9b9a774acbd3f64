//! The threads that serve clients, each with a runtime of its own.
//!
//! A frontend calls [`Threads::serve`] for each connection that it accepts. A client stays on its
//! thread, so that no thread takes work from another one, and lanes run where their first client
//! is.

use std::io;
use std::net::{SocketAddr, TcpStream as StdTcpStream};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::ClientSocket;

/// The threads that serve clients. Cheap to clone. By default there are none: clients are served by
/// the runtime that accepts them.
#[derive(Clone, Debug, Default)]
pub struct Threads(Arc<[Thread]>);

#[derive(Debug)]
struct Thread {
    runtime: Handle,
    clients: AtomicUsize,
}

/// A client's place on a thread, counted as long as it lives.
struct Place {
    threads: Threads,
    index: usize,
}

impl Threads {
    /// Returns the threads of these runtimes. The first one accepts the connections.
    pub fn new(runtimes: impl IntoIterator<Item = Handle>) -> Self {
        let thread = |runtime| Thread {
            runtime,
            clients: AtomicUsize::new(0),
        };
        Self(runtimes.into_iter().map(thread).collect())
    }

    /// Serves a client on the thread with the fewest clients; of several, on the last. The first
    /// thread also runs tasks of no client, such as the lanes of HTTP requests.
    pub fn serve<S: Portable, F>(
        &self,
        tracker: &TaskTracker,
        socket: S,
        serve: impl FnOnce(S) -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let Some((place, thread)) = self.place() else {
            tracker.spawn(serve(socket));
            return;
        };
        if place.index == 0 {
            let served = serve(socket);
            tracker.spawn(async move {
                served.await;
                drop(place);
            });
            return;
        }
        let Ok(detached) = socket.detach() else {
            return;
        };
        let task = async move {
            if let Ok(socket) = S::attach(detached) {
                serve(socket).await;
            }
            drop(place);
        };
        tracker.spawn_on(task, &thread.runtime);
    }

    fn place(&self) -> Option<(Place, &Thread)> {
        let clients = |thread: &Thread| thread.clients.load(Ordering::Relaxed);
        let threads = self.0.iter().enumerate();
        let fewest = threads.rev().min_by_key(|(_, thread)| clients(thread));
        let (index, thread) = fewest?;
        thread.clients.fetch_add(1, Ordering::Relaxed);
        let threads = self.clone();
        Some((Place { threads, index }, thread))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(thread) = self.threads.0.get(self.index) {
            thread.clients.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A socket that can be moved to the runtime of another thread.
pub trait Portable: Sized + Send + 'static {
    /// The socket while it is in no runtime.
    type Detached: Send + 'static;

    /// Removes the socket from its runtime.
    ///
    /// # Errors
    /// The socket is dead.
    fn detach(self) -> io::Result<Self::Detached>;

    /// Adds the socket to the caller's runtime.
    ///
    /// # Errors
    /// The runtime cannot accept it.
    fn attach(detached: Self::Detached) -> io::Result<Self>;
}

impl Portable for TcpStream {
    type Detached = StdTcpStream;

    fn detach(self) -> io::Result<StdTcpStream> {
        self.into_std()
    }

    fn attach(detached: StdTcpStream) -> io::Result<Self> {
        Self::from_std(detached)
    }
}

/// A client's socket while it is in no runtime.
#[derive(Debug)]
pub enum DetachedSocket {
    /// A connection over TCP, from this address.
    Tcp(StdTcpStream, SocketAddr),
    /// A connection over the UNIX-domain socket.
    Unix(StdUnixStream),
}

impl Portable for ClientSocket {
    type Detached = DetachedSocket;

    fn detach(self) -> io::Result<DetachedSocket> {
        Ok(match self {
            Self::Tcp(stream, address) => DetachedSocket::Tcp(stream.into_std()?, address),
            Self::Unix(stream) => DetachedSocket::Unix(stream.into_std()?),
        })
    }

    fn attach(detached: DetachedSocket) -> io::Result<Self> {
        Ok(match detached {
            DetachedSocket::Tcp(stream, address) => {
                Self::Tcp(TcpStream::from_std(stream)?, address)
            }
            DetachedSocket::Unix(stream) => Self::Unix(UnixStream::from_std(stream)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::Ipv4Addr;

    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;
    use tokio::runtime::{Builder, Id, Runtime};
    use tokio::sync::mpsc;

    use super::*;

    fn runtime() -> Runtime {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().unwrap()
    }

    /// Connects clients to a server with two threads; returns the clients that each thread serves.
    async fn served(threads: &Threads, clients: usize) -> BTreeMap<usize, usize> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let tracker = TaskTracker::new();
        let (said, mut heard) = mpsc::unbounded_channel::<Id>();
        let mut connected = Vec::new();
        for _ in 0..clients {
            connected.push(TcpStream::connect(address).await.unwrap());
            let (socket, _) = listener.accept().await.unwrap();
            let said = said.clone();
            threads.serve(&tracker, socket, async move |mut socket: TcpStream| {
                said.send(Handle::current().id()).unwrap();
                // The socket works on its thread: it sees the client leave.
                assert_eq!(socket.read(&mut [0]).await.unwrap(), 0);
            });
        }
        let mut served = BTreeMap::new();
        for _ in 0..clients {
            let id = heard.recv().await.unwrap();
            let index = threads.0.iter().position(|of| of.runtime.id() == id);
            *served.entry(index.unwrap()).or_default() += 1;
        }
        drop(connected);
        tracker.close();
        tracker.wait().await;
        served
    }

    #[test]
    fn each_thread_serves_as_many_clients_and_keeps_them() {
        let runtimes = [runtime(), runtime()];
        let threads = Threads::new(runtimes.iter().map(|runtime| runtime.handle().clone()));
        let [first, _second] = &runtimes;
        for _ in 0..2 {
            let served = first.block_on(served(&threads, 6));
            assert_eq!(served, BTreeMap::from([(0, 3), (1, 3)]));
            let left = |thread: &Thread| thread.clients.load(Ordering::Relaxed);
            assert_eq!(threads.0.iter().map(left).sum::<usize>(), 0);
        }
    }
}
