//! A listening socket on a free loopback port, with a task for each of its connections.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A socket that accepts connections. It and all its connections end when it is dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    address: SocketAddr,
    _end: DropGuard,
}

impl Listener {
    /// Listens, and runs what `serve` returns for each connection. Needs a tokio runtime, which
    /// must live as long as the listener.
    ///
    /// # Errors
    /// No port can be opened on 127.0.0.1.
    pub(crate) async fn start<F: Future<Output = ()> + Send + 'static>(
        mut serve: impl FnMut(TcpStream) -> F + Send + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let accepting = async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(serve(socket));
                while connections.try_join_next().is_some() {}
            }
        };
        let end = CancellationToken::new();
        let ended = end.clone();
        tokio::spawn(async move {
            ended.run_until_cancelled(accepting).await;
        });
        Ok(Self {
            address,
            _end: end.drop_guard(),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Locks a mutex, also one whose holder panicked.
pub(crate) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
