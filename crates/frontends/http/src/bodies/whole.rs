//! Reads a body, or one row of it, as a whole.

use bytes::{Bytes, BytesMut};
use windrow_core::{Budget, Fault, Permit};

use crate::answers::Refusal;
use crate::bodies::Feed;
use crate::bodies::charge::Charge;

/// A limit on what is read, and its name in the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub(crate) bytes: usize,
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
}

impl Limit {
    /// Checks a length.
    ///
    /// # Errors
    /// 413 beyond the limit.
    pub fn check(&self, bytes: u64) -> Result<(), Refusal> {
        if bytes <= self.bytes as u64 {
            return Ok(());
        }
        Err(Fault::too_large(format!(
            "{} has {bytes} bytes or more; the limit ({}) is {}",
            self.what, self.name, self.bytes
        ))
        .into())
    }
}

/// Bytes, and the memory that they are charged with.
#[derive(Debug)]
pub struct Whole {
    /// The bytes that were read.
    pub bytes: Bytes,
    /// The memory of the bytes; empty if they are in the connection's own buffer.
    pub permit: Permit,
}

impl Feed<'_> {
    /// Reads the whole body. A body that is announced to be too long is refused before the client
    /// is asked for it.
    ///
    /// # Errors
    /// 413 beyond the limit, 429 if the budget is full, and those of an incomplete or invalid body.
    pub async fn all(&mut self, limit: Limit, budget: &Budget) -> Result<Whole, Refusal> {
        limit.check(self.length().unwrap_or(0))?;
        let first = self.chunk().await?.unwrap_or_default();
        self.rest(first, limit, budget).await
    }

    /// Reads everything after `first`. A body of one chunk is neither copied nor charged, because
    /// it is in the connection's own buffer.
    ///
    /// # Errors
    /// 413 beyond the limit, 429 if the budget is full, and those of [`Feed::chunk`].
    pub(crate) async fn rest(
        &mut self,
        first: Bytes,
        limit: Limit,
        budget: &Budget,
    ) -> Result<Whole, Refusal> {
        if let Some(length) = self.length() {
            limit.check(length.saturating_add(first.len() as u64))?;
        }
        if self.has_ended() {
            limit.check(first.len() as u64)?;
            return Ok(Whole {
                bytes: first,
                permit: Permit::empty(),
            });
        }
        let collected = self.collect(first, limit, budget).await;
        self.holds(false);
        collected
    }

    async fn collect(
        &mut self,
        first: Bytes,
        limit: Limit,
        budget: &Budget,
    ) -> Result<Whole, Refusal> {
        let mut charge = Charge::new(budget.clone());
        // An announced length costs nothing until the bytes arrive.
        let announced = self.length().and_then(|n| usize::try_from(n).ok());
        let whole = announced.map_or(usize::MAX, |rest| first.len().saturating_add(rest));
        if announced.is_some() && whole > budget.total() {
            // A body that could never be held is refused before it is read.
            charge.add(whole)?;
        }
        let mut charged = first.len();
        charge.add(charged)?;
        let mut all = BytesMut::with_capacity(charged);
        all.extend_from_slice(&first);
        drop(first);
        self.holds(true);
        while let Some(chunk) = self.chunk().await? {
            let length = all.len() + chunk.len();
            limit.check(length as u64)?;
            if length > charged {
                let grown = length.saturating_mul(2).min(whole).max(length);
                charge.add(grown - charged)?;
                charged = grown;
                all.reserve(grown - all.len());
            }
            all.extend_from_slice(&chunk);
        }
        Ok(Whole {
            bytes: all.freeze(),
            permit: charge.into_permit(),
        })
    }
}
