//! The entrance for requests with keys.

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
    /// For writes that go to this lane, into a database with these tables of Windrow's own.
    pub fn new(lane: Intake, tables: Arc<dyn Bookkeeping>) -> Self {
        Self {
            shared: Arc::new(Shared::new(lane, tables)),
            for_all: false,
        }
    }

    /// The same, where requests without a key are executed under one of the gateway's own
    /// ([`Keys::begin_own`]).
    #[must_use]
    pub fn for_all(self, for_all: bool) -> Self {
        Self { for_all, ..self }
    }

    /// Begins a request. While it is there, no other one with its key begins.
    ///
    /// # Errors
    /// [`Refused::UnderWay`] where another one with the same key has not ended yet.
    pub fn begin(&self, key: IdempotencyKey) -> Result<KeyedRequest, Refused> {
        let begun = UnderWay::begin(&self.shared, key).ok_or_else(Refused::under_way)?;
        Ok(KeyedRequest::new(begun))
    }

    /// Begins a request that has no key, under one that nobody knows and that is forgotten once the
    /// request is answered: so what becomes of it is found out where the connection to the database
    /// is lost at its commit. `None` where such requests are to go without.
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
