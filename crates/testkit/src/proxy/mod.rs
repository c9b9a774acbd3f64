//! A TCP proxy on loopback that makes a line slow, cuts it, or holds it, and counts what goes over
//! it.

mod control;
mod delay;
mod direction;
mod line;
mod pump;
mod turns;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use control::Control;
pub use delay::Delay;
pub use direction::Direction;
use line::Delays;

/// A proxy before it listens. Made by [`Proxy::builder`].
#[derive(Clone, Debug)]
pub struct Builder {
    upstream: String,
    delays: Delays,
}

/// A listening proxy. It and all its connections end when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    upstream: String,
    control: Arc<Control>,
    _end: DropGuard,
}

impl Builder {
    /// How long bytes take on their way to the server.
    #[must_use]
    pub fn to_server(mut self, delay: Delay) -> Self {
        self.delays.to_server = delay;
        self
    }

    /// How long answers take on their way back.
    #[must_use]
    pub fn to_client(mut self, delay: Delay) -> Self {
        self.delays.to_client = delay;
        self
    }

    /// Half of a round trip time each way.
    #[must_use]
    pub fn round_trip(self, time: Duration) -> Self {
        let half = Delay::of(time / 2);
        self.to_server(half).to_client(half)
    }

    /// Listens on a port of its own. Needs a tokio runtime, which must live as long as the proxy.
    ///
    /// # Errors
    /// No port can be opened on 127.0.0.1.
    pub async fn start(self) -> Result<Proxy> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let control = Arc::new(Control::new());
        let end = CancellationToken::new();
        let upstream = self.upstream.clone();
        let accepting = accept(listener, self, Arc::clone(&control));
        let ended = end.clone();
        tokio::spawn(async move {
            ended.run_until_cancelled(accepting).await;
        });
        Ok(Proxy {
            address,
            upstream,
            control,
            _end: end.drop_guard(),
        })
    }
}

impl Proxy {
    /// A proxy in front of `upstream`, a `host:port`.
    pub fn builder(upstream: impl Into<String>) -> Builder {
        Builder {
            upstream: upstream.into(),
            delays: Delays {
                to_server: Delay::none(),
                to_client: Delay::none(),
            },
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A URL of the upstream, led through the proxy.
    ///
    /// # Errors
    /// The URL does not name the upstream's `host:port`.
    pub fn through(&self, url: &str) -> Result<String> {
        let at = url
            .find(&self.upstream)
            .with_context(|| format!("the URL does not name {}", self.upstream))?;
        let (before, rest) = url.split_at(at);
        let after = rest.get(self.upstream.len()..).unwrap_or_default();
        Ok(format!("{before}{}{after}", self.address))
    }

    /// Connections that were taken so far.
    pub fn connections(&self) -> u64 {
        self.control.connections.get()
    }

    /// Round trips so far, of all connections: times that the server began to answer something that
    /// the client had sent.
    pub fn round_trips(&self) -> u64 {
        self.control.round_trips.get()
    }

    /// Bytes read so far in a direction.
    pub fn bytes(&self, direction: Direction) -> u64 {
        self.control.flow(direction).bytes.get()
    }

    /// Cuts all connections that are open now (RST); new ones are taken.
    pub fn cut(&self) {
        self.control.cut();
    }

    /// Lets `bytes` more through in a direction, counted over all connections, and then cuts the
    /// connection that would have sent the next one. With 0 towards the client, the server does
    /// the work and nobody hears of it.
    pub fn cut_after(&self, direction: Direction, bytes: u64) {
        self.control.flow(direction).allow(bytes);
    }

    /// Holds all bytes of a direction back; they are kept in order.
    pub fn pause(&self, direction: Direction) {
        self.control.flow(direction).paused.send_replace(true);
    }

    /// Lets them go on.
    pub fn resume(&self, direction: Direction) {
        self.control.flow(direction).paused.send_replace(false);
    }

    /// While true, new connections are closed as soon as they are taken.
    pub fn refuse(&self, refuse: bool) {
        self.control.set_refusing(refuse);
    }
}

async fn accept(listener: TcpListener, settings: Builder, control: Arc<Control>) {
    let mut lines = tokio::task::JoinSet::new();
    let mut seed = 0;
    while let Ok((client, _)) = listener.accept().await {
        if control.is_refusing() {
            client.set_zero_linger().ok();
            continue;
        }
        control.connections.add(1);
        seed += 1;
        let (control, settings) = (Arc::clone(&control), settings.clone());
        lines.spawn(async move {
            if let Ok(server) = TcpStream::connect(&settings.upstream).await {
                line::run(client, server, settings.delays, &control, seed).await;
            }
        });
        while lines.try_join_next().is_some() {}
    }
}
