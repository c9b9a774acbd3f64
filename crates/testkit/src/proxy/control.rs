//! State that the owner of a proxy and its connections share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::watch;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) connections: Counter,
    pub(crate) round_trips: Counter,
    to_server: Flow,
    to_client: Flow,
    refusing: AtomicBool,
    /// The number of times that all connections were cut: each connection ends when it grows.
    cuts: watch::Sender<u64>,
}

/// The state of one direction of all connections.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) bytes: Counter,
    pub(crate) paused: watch::Sender<bool>,
    /// Bytes that may still pass before a cut; [`UNLIMITED`] without one.
    allowed: AtomicU64,
}

const UNLIMITED: u64 = u64::MAX;

impl Control {
    pub(crate) fn new() -> Self {
        Self {
            connections: Counter::default(),
            round_trips: Counter::default(),
            to_server: Flow::new(),
            to_client: Flow::new(),
            refusing: AtomicBool::new(false),
            cuts: watch::Sender::new(0),
        }
    }

    pub(crate) fn flow(&self, direction: Direction) -> &Flow {
        match direction {
            Direction::ToServer => &self.to_server,
            Direction::ToClient => &self.to_client,
        }
    }

    pub(crate) fn cut(&self) {
        self.cuts.send_modify(|n| *n += 1);
    }

    /// Ends at the next cut after this call.
    pub(crate) fn cut_comes(&self) -> impl Future<Output = ()> + use<> {
        let mut cuts = self.cuts.subscribe();
        async move {
            // An error means that the proxy is gone, which ends the line as well.
            cuts.changed().await.ok();
        }
    }

    pub(crate) fn is_refusing(&self) -> bool {
        self.refusing.load(Ordering::Relaxed)
    }

    pub(crate) fn set_refusing(&self, refusing: bool) {
        self.refusing.store(refusing, Ordering::Relaxed);
    }
}

impl Flow {
    fn new() -> Self {
        Self {
            bytes: Counter::default(),
            paused: watch::Sender::new(false),
            allowed: AtomicU64::new(UNLIMITED),
        }
    }

    /// From now on so many bytes pass, then one connection is cut and all is as before.
    pub(crate) fn allow(&self, bytes: u64) {
        self.allowed.store(bytes, Ordering::SeqCst);
    }

    /// Counts `wanted` bytes, and returns how many of them may pass. After fewer than asked for,
    /// the connection is cut.
    pub(crate) fn take(&self, wanted: usize) -> usize {
        let wanted64 = wanted as u64;
        self.bytes.add(wanted64);
        let step = |allowed: u64| match allowed {
            UNLIMITED => None,
            few if few < wanted64 => Some(UNLIMITED),
            enough => Some(enough - wanted64),
        };
        match self
            .allowed
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, step)
        {
            Ok(few) if few < wanted64 => usize::try_from(few).unwrap_or(wanted),
            _ => wanted,
        }
    }

    /// Ends once bytes may go on. Cancel safe.
    pub(crate) async fn open(&self) {
        let mut paused = self.paused.subscribe();
        paused.wait_for(|paused| !paused).await.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_comes_once_after_exactly_the_bytes_allowed() {
        let flow = Flow::new();
        assert_eq!(flow.take(100), 100);
        flow.allow(10);
        assert_eq!(flow.take(4), 4);
        assert_eq!(flow.take(6), 6);
        assert_eq!(flow.take(5), 0);
        assert_eq!(flow.take(5), 5);
        assert_eq!(flow.bytes.get(), 120);
    }
}
