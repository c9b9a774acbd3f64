//! The entry point for requests with keys.

use std::fmt;
use std::sync::Arc;

use windrow_core::{Bookkeeping, Intake};

use crate::key::IdempotencyKey;
use crate::refused::Refused;
use crate::request::KeyedRequest;
use crate::under_way::{Shared, UnderWay};

/// Executes requests that have keys. Cheap to clone.
#[derive(Clone)]
pub struct Keys {
    shared: Arc<Shared>,
    for_all: bool,
}

impl Keys {
    /// Returns an executor for writes to this lane, into a database with these tables.
    pub fn new(lane: Intake, tables: Arc<dyn Bookkeeping>) -> Self {
        Self {
            shared: Arc::new(Shared::new(lane, tables)),
            for_all: false,
        }
    }

    /// Sets whether requests without a key are executed under one of the gateway's own
    /// ([`Keys::begin_own`]).
    #[must_use]
    pub fn for_all(self, for_all: bool) -> Self {
        Self { for_all, ..self }
    }

    /// Begins a request. Until it is dropped, no other one with its key begins.
    ///
    /// # Errors
    /// [`Refused::UnderWay`] if another one with the same key has not ended.
    pub fn begin(&self, key: IdempotencyKey) -> Result<KeyedRequest, Refused> {
        let begun = UnderWay::begin(&self.shared, key).ok_or_else(Refused::under_way)?;
        Ok(KeyedRequest::new(begun))
    }

    /// Begins a request without a key, under a random one that is deleted once the request is
    /// answered. It shows the outcome if the connection to the database is lost at the commit.
    /// `None` if such requests are executed without a key.
    pub fn begin_own(&self) -> Option<KeyedRequest> {
        let begun = || UnderWay::begin_own(&self.shared);
        self.for_all.then(|| KeyedRequest::new(begun()))
    }

    /// True if requests without a key are executed under a key of the gateway's own.
    pub fn is_for_all(&self) -> bool {
        self.for_all
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}
