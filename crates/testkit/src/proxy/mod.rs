//! A TCP proxy on loopback that makes a line slow, cuts it, or holds it, and counts what goes over
//! it.

mod control;
mod delay;
mod line;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::TcpStream;

use control::Control;
pub use control::Direction;
pub use delay::Delay;
use line::Delays;

use crate::listener::Listener;

/// A proxy before it listens. Made by [`Proxy::builder`].
#[derive(Clone, Debug)]
pub struct ProxyBuilder {
    upstream: String,
    delays: Delays,
}

/// A listening proxy. It and all its connections end when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    listener: Listener,
    upstream: String,
    control: Arc<Control>,
}

impl ProxyBuilder {
    /// Sets the delay of bytes on their way to the server.
    #[must_use]
    pub fn to_server(mut self, delay: Delay) -> Self {
        self.delays.to_server = delay;
        self
    }

    /// Sets the delay of answers on their way back.
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
        let control = Arc::new(Control::new());
        let (upstream, delays) = (self.upstream.clone(), self.delays);
        let shared = Arc::clone(&control);
        let mut seed = 0;
        let listener = Listener::start(move |client| {
            let is_refused = shared.is_refusing();
            if !is_refused {
                shared.connections.add(1);
                seed += 1;
            }
            let (control, upstream, seed) = (Arc::clone(&shared), upstream.clone(), seed);
            async move {
                if is_refused {
                    client.set_zero_linger().ok();
                } else if let Ok(server) = TcpStream::connect(&upstream).await {
                    line::run(client, server, delays, &control, seed).await;
                }
            }
        });
        Ok(Proxy {
            listener: listener.await?,
            upstream: self.upstream,
            control,
        })
    }
}

impl Proxy {
    /// Prepares a proxy before `upstream`, a `host:port`.
    pub fn builder(upstream: impl Into<String>) -> ProxyBuilder {
        ProxyBuilder {
            upstream: upstream.into(),
            delays: Delays {
                to_server: Delay::none(),
                to_client: Delay::none(),
            },
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Returns a URL of the upstream, led through the proxy.
    ///
    /// # Errors
    /// The URL does not name the upstream's `host:port`.
    pub fn through(&self, url: &str) -> Result<String> {
        let at = url
            .find(&self.upstream)
            .with_context(|| format!("the URL does not name {}", self.upstream))?;
        let (before, rest) = url.split_at(at);
        let after = rest.get(self.upstream.len()..).unwrap_or_default();
        Ok(format!("{before}{}{after}", self.address()))
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

    /// Returns the bytes read so far in a direction.
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
