//! What executes requests with keys.

use std::fmt;
use std::sync::Arc;

use windrow_core::{Bookkeeping, Intake, RowWrite};

use crate::key::IdempotencyKey;
use crate::refused::Refused;
use crate::request::KeyedRequest;
use crate::under_way::{Shared, UnderWay};

/// Executes requests that have keys. Cheap to clone.
#[derive(Clone)]
pub struct Keys(Arc<Shared>);

impl Keys {
    /// For writes that go to this lane, into a database with these tables of Windrow's own.
    pub fn new(lane: Intake<RowWrite>, tables: Arc<dyn Bookkeeping>) -> Self {
        Self(Arc::new(Shared::new(lane, tables)))
    }

    /// Begins a request. While it is there, no other one with its key begins.
    ///
    /// # Errors
    /// [`Refused::UnderWay`] where another one with the same key has not ended yet.
    pub fn begin(&self, key: IdempotencyKey) -> Result<KeyedRequest, Refused> {
        let begun = UnderWay::begin(&self.0, key).ok_or_else(Refused::under_way)?;
        Ok(KeyedRequest::new(begun))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}
