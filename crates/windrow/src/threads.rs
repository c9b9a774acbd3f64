//! The threads of the server, each with a runtime of its own.

use std::io;

use tokio::runtime::{Builder, Runtime};
use windrow_sockets::Threads;

/// Runtimes of one thread each. The first one accepts connections and runs everything that belongs
/// to no client.
pub(crate) struct Runtimes {
    pub(crate) first: Runtime,
    others: Vec<Runtime>,
}

impl Runtimes {
    /// Starts so many threads, at least one.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let start = || {
            Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .thread_name("windrow")
                .build()
        };
        Ok(Self {
            first: start()?,
            others: (1..count).map(|_| start()).collect::<io::Result<_>>()?,
        })
    }

    /// Returns the threads, for the frontends.
    pub(crate) fn threads(&self) -> Threads {
        let all = std::iter::once(&self.first).chain(&self.others);
        Threads::new(all.map(|runtime| runtime.handle().clone()))
    }

    /// Ends all threads. Does not wait for tasks that hang.
    pub(crate) fn end(self) {
        self.first.shutdown_background();
        self.others
            .into_iter()
            .for_each(Runtime::shutdown_background);
    }
}
