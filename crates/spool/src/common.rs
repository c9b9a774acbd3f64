//! The state that the partitions of a spool share: limits, the bytes that they hold, and the
//! failure after which nothing is accepted.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use crate::fault::SpoolFault;
use crate::files::Files;
use crate::options::Options;

/// The state that the partitions of a spool share.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) options: Options,
    /// The number of this gateway, which it draws when it opens the spool.
    pub(crate) gateway: u64,
    held: AtomicU64,
    poison: watch::Sender<Option<Arc<str>>>,
}

impl Common {
    pub(crate) fn new(files: Arc<dyn Files>, options: Options, gateway: u64) -> Self {
        Self {
            files,
            options,
            gateway,
            held: AtomicU64::new(0),
            poison: watch::Sender::new(None),
        }
    }

    /// Counts bytes that are stored already.
    pub(crate) fn hold(&self, bytes: u64) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes that will be written, unless they exceed the limit.
    pub(crate) fn reserve(&self, more: u64) -> Result<(), SpoolFault> {
        let limit = self.options.max_bytes;
        let fits = |held: u64| held.checked_add(more).filter(|sum| *sum <= limit);
        match self
            .held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
        {
            Ok(_) => Ok(()),
            Err(held) => Err(SpoolFault::SizeLimit { held, more, limit }),
        }
    }

    /// Stops counting bytes.
    pub(crate) fn release(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Lets all partitions refuse appends from now on. Keeps only the first reason.
    pub(crate) fn poison(&self, path: &Path, what: &str) -> Arc<str> {
        let why: Arc<str> = format!("{what} ({})", path.display()).into();
        let mut first = false;
        self.poison.send_if_modified(|poison| {
            first = poison.is_none();
            poison.get_or_insert_with(|| Arc::clone(&why));
            first
        });
        if first {
            tracing::error!(%why, "the spool takes nothing more");
        }
        why
    }

    /// Returns the reason why nothing is accepted any more.
    pub(crate) fn poisoned(&self) -> Option<Arc<str>> {
        self.poison.borrow().clone()
    }

    /// Refuses if nothing is accepted any more.
    pub(crate) fn check(&self) -> Result<(), SpoolFault> {
        match self.poisoned() {
            Some(why) => Err(SpoolFault::Poisoned { why }),
            None => Ok(()),
        }
    }

    /// Returns a receiver for the failure after which nothing is accepted.
    pub(crate) fn watch_poison(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.poison.subscribe()
    }
}

/// Bytes that a crash has left at the end of a log: part of a group that was being written, and
/// that no client had an answer for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The file that was cut.
    pub path: PathBuf,
    /// The length of the file after the cut, in bytes.
    pub offset: u64,
    /// The number of bytes that were cut off.
    pub bytes: u64,
    /// The damage found in these bytes.
    pub what: &'static str,
}
