//! Rows that were refused: counted, shown, and kept in a file that can be corrected and loaded
//! again.
//!
//! `FILE` holds the rows as they were in the source, after the source's header. `FILE.reasons`
//! holds one JSON object a line for each of them, in the same order. Rows are written before their
//! reasons, and both before the mark that covers them. A reason contains the place in `FILE` where
//! its row ends, so a partial row that a crash left is cut off.

mod file;
mod reject;

use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use windrow_core::Span;

use self::file::RejectFiles;
use super::LoadError;

pub(super) use self::reject::Origin;
pub use self::reject::{Reason, Reject};

/// A function that is called with every refused row, from any thread. It must not block for long.
pub type Listener = Box<dyn Fn(&Reject<'_>) + Send + Sync>;

/// The destination of refused rows. Shared by all workers.
pub struct Rejects {
    most: Option<u64>,
    listener: Listener,
    state: Mutex<RejectState>,
}

#[derive(Default)]
struct RejectState {
    count: u64,
    last: String,
    pair: Option<RejectFiles>,
}

impl Rejects {
    /// Makes a list that counts refused rows and passes them to `listener`. More than `most` of
    /// them end the load.
    pub fn new(most: Option<u64>, listener: Listener) -> Self {
        Self {
            most,
            listener,
            state: Mutex::default(),
        }
    }

    /// Keeps refused rows in a file too. With `go_on`, a file that an earlier run has written is
    /// continued. Without it, a file that is not empty is an error, because its rows may still be
    /// needed.
    ///
    /// # Errors
    /// [`LoadError::Rejects`].
    pub fn keep(&self, path: &Path, go_on: bool) -> Result<(), LoadError> {
        self.state.lock().pair = Some(RejectFiles::open(path, go_on)?);
        Ok(())
    }

    /// Returns true if refused rows are kept in a file.
    pub(super) fn keeps(&self) -> bool {
        self.state.lock().pair.is_some()
    }

    /// Returns the files that hold refused rows and their reasons; `None` if there are none.
    pub fn kept(&self) -> Option<(PathBuf, PathBuf)> {
        let state = self.state.lock();
        let pair = state.pair.as_ref().filter(|pair| !pair.is_empty())?;
        Some(pair.paths())
    }

    /// Closes the files, and deletes them if they are empty.
    pub fn close(&self) {
        if let Some(pair) = self.state.lock().pair.take() {
            pair.close();
        }
    }

    /// Returns the records of a load that the files hold from an earlier run.
    pub(super) fn before(&self, load: &str) -> Vec<Span> {
        let state = self.state.lock();
        let pair = state.pair.as_ref();
        pair.map(|pair| pair.before(load)).unwrap_or_default()
    }

    /// Sets the first line of the file of rows.
    pub(super) fn header(&self, header: Option<&[u8]>) -> Result<(), LoadError> {
        match &mut self.state.lock().pair {
            Some(pair) => pair.header(header),
            None => Ok(()),
        }
    }

    /// Notes a row. The files hold it after [`Rejects::settle`].
    pub(super) fn note(&self, origin: &Origin, reject: &Reject<'_>) -> Result<(), LoadError> {
        (self.listener)(reject);
        let mut state = self.state.lock();
        state.count += 1;
        if self.most.is_some_and(|most| state.count > most) {
            state.last = reject.sentence();
        }
        match &mut state.pair {
            Some(pair) => pair.write(origin, reject),
            None => Ok(()),
        }
    }

    /// Writes the noted rows to the files, and syncs the files if the load can be continued.
    pub(super) fn settle(&self, origin: &Origin) -> Result<(), LoadError> {
        let mut state = self.state.lock();
        if let Some(pair) = &mut state.pair {
            pair.settle(origin.load.is_some())?;
        }
        match self.most {
            Some(most) if state.count > most => Err(LoadError::TooManyRejects {
                rejects: state.count,
                most,
                last: state.last.clone(),
            }),
            _ => Ok(()),
        }
    }
}

impl std::fmt::Debug for Rejects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rejects")
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}
