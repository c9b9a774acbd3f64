//! Listens, and starts a task for each connection.

mod connection;
mod watch;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windrow_sockets::{listen, wait_after};

use crate::ack::Ack;
use crate::auth::Admission;
use crate::config::HttpConfig;
use crate::extension::Extension;
use crate::routes::Router;
use crate::services::Services;

/// A listening frontend.
#[derive(Debug)]
pub struct Http {
    listener: TcpListener,
    local_addr: SocketAddr,
    router: Arc<Router>,
}

impl Http {
    /// Opens the listening socket. Clients may connect from then on, and [`Http::run`] serves them.
    /// The metrics in `services` must know the endpoints of `extensions`, in their order
    /// ([`crate::HttpMetrics::register`]).
    ///
    /// # Errors
    /// The address cannot be used, or is not loopback although neither a token nor
    /// [`HttpConfig::allow_open`] is set; or writes are to be acknowledged by a spool and there is
    /// none.
    pub async fn bind(
        config: HttpConfig,
        services: Services,
        extensions: Vec<Arc<dyn Extension>>,
    ) -> io::Result<Self> {
        let invalid = |text| io::Error::new(io::ErrorKind::InvalidInput, text);
        config.check().map_err(invalid)?;
        if services.ack == Ack::Spool && services.spool.is_none() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "writes are to be acknowledged by a spool, and there is none: name its directory (--spool DIR)",
            ));
        }
        let listener = listen(config.listen, config.socket.as_deref())?;
        let local_addr = listener.local_addr()?;
        Ok(Self {
            listener,
            local_addr,
            router: Arc::new(Router::new(config, services, extensions)),
        })
    }

    /// Returns the tokens of the running server, so that they can be replaced.
    pub fn admission(&self) -> Admission {
        self.router.app().admission.clone()
    }

    /// Returns the listening address, with the actual port.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves until `shutdown` is cancelled. Then no connection is accepted, idle ones are closed
    /// at once, requests under way are finished, and the future ends. Dropping the future only
    /// stops accepting connections.
    pub async fn run(self, shutdown: CancellationToken) {
        let config = &self.router.app().config;
        let tls = config.tls.clone().map(TlsAcceptor::from);
        let slots = Arc::new(Semaphore::new(config.max_connections.max(1)));
        let tracker = TaskTracker::new();
        loop {
            let (socket, slot) = tokio::select! {
                accepted = accept(&self.listener, &slots) => accepted,
                () = shutdown.cancelled() => break,
            };
            let (router, tls, stop) = (Arc::clone(&self.router), tls.clone(), shutdown.clone());
            let serve = move |socket| async move {
                let open = router.app().services.metrics.connections.clone();
                open.inc();
                connection::serve(router, socket, tls, stop).await;
                open.dec();
                drop(slot);
            };
            config.threads.serve(&tracker, socket, serve);
        }
        drop(self.listener);
        tracker.close();
        tracker.wait().await;
    }
}

/// Returns the next connection, once there is a slot for it.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed.
    let slot = Arc::clone(slots).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((socket, _)) => return (socket, slot),
            Err(error) => wait_after(&error).await,
        }
    }
}
