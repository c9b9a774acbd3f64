//! Claims: movers whose writes may still be on their way to the destination.
//!
//! A mover that is killed may have sent rows that the destination's server reads much later. Then
//! nothing but their markers keeps them from being written again, so the markers of the mover that
//! took over must still be there. Each mover notes a claim in the source before it writes, and
//! removes the claim once it knows the outcome of its writes. Markers stay while a claim is open
//! that was open when they were written, but for at most [`GRACE`].

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use windrow_core::Fault;
use windrow_core::moves::{Mover, PickMost};

/// The time after which nothing of a mover that was killed is on its way any more.
const GRACE: Duration = Duration::from_secs(10);

/// The most names that are read: noted batches and claims.
const MAX_NOTED: usize = 10_000;

/// The longest wait for live movers once the move is to stop.
const STOP_WAIT: Duration = Duration::from_secs(1);

/// The delay between two looks at the claims of other movers at the end.
const LOOK_DELAY: Duration = Duration::from_millis(50);

/// Stands in the names of claims, and in no name of a batch.
const SIGN: char = '?';

/// Bytes of a move's name that end the names of its claims.
const MOVE_BYTES: usize = 16;

/// The claims of one move, as one of its movers sees them.
pub(super) struct Claims {
    /// The end of the names of all claims of the move.
    ending: Box<str>,
    /// The claim of this mover, if one is open.
    own: Option<Box<str>>,
    /// True if the source listed the own claim.
    is_listed: bool,
    /// Open claims of other movers, and when each was seen first.
    others: Vec<(Box<str>, Instant)>,
    /// Batches that are committed and whose markers are still there.
    marked: Vec<MarkedBatch>,
}

/// A batch whose markers are still there.
struct MarkedBatch {
    name: Box<str>,
    committed: Instant,
    /// The claims of other movers that were open.
    beside: Vec<Box<str>>,
}

/// True if a noted name is that of a claim.
pub(super) fn is_claim(name: &str) -> bool {
    name.contains(SIGN)
}

impl Claims {
    /// `relocation`: the name of the move.
    pub(super) fn new(relocation: &str) -> Self {
        let name = relocation.get(..MOVE_BYTES).unwrap_or(relocation);
        Self {
            ending: format!("{SIGN}{name}").into(),
            own: None,
            is_listed: false,
            others: Vec::new(),
            marked: Vec::new(),
        }
    }

    /// Returns the name of the claim that belongs to a batch.
    pub(super) fn name(&self, batch: &str) -> Box<str> {
        format!("{batch}{}", self.ending).into()
    }

    /// Returns the claim of this mover.
    pub(super) fn own(&self) -> Option<Box<str>> {
        self.own.clone()
    }

    /// True if this mover has a claim.
    pub(super) fn is_open(&self) -> bool {
        self.own.is_some()
    }

    /// Notes the claim of this mover, and returns the one that it replaces.
    pub(super) fn replace(&mut self, own: Option<Box<str>>) -> Option<Box<str>> {
        std::mem::replace(&mut self.own, own)
    }

    /// Notes the names that the source lists.
    fn look(&mut self, listed: &[Box<str>], now: Instant) {
        self.is_listed = false;
        let mut others = Vec::new();
        for name in listed.iter().filter(|name| name.ends_with(&*self.ending)) {
            if self.own.as_ref() == Some(name) {
                self.is_listed = true;
            } else {
                let known = self.others.iter().find(|(known, _)| known == name);
                others.push((name.clone(), known.map_or(now, |(_, since)| *since)));
            }
        }
        self.others = others;
    }

    /// True if the claim is to be replaced with the next commit: another mover may wait for its
    /// end, or has taken it for dead.
    pub(super) fn needs_renewal(&self) -> bool {
        !self.others.is_empty() || (self.own.is_some() && !self.is_listed)
    }

    /// Notes a batch that is committed in the source.
    pub(super) fn committed(&mut self, batch: Box<str>, now: Instant) {
        self.marked.push(MarkedBatch {
            name: batch,
            committed: now,
            beside: self.others.iter().map(|(name, _)| name.clone()).collect(),
        });
    }

    /// Takes the batches whose markers nobody needs any more.
    pub(super) fn take_unneeded(&mut self, now: Instant) -> Vec<Box<str>> {
        let others = &self.others;
        let is_needed = |batch: &MarkedBatch| {
            let mut open = others.iter().map(|(name, _)| name);
            now < batch.committed + GRACE && open.any(|claim| batch.beside.contains(claim))
        };
        let all = std::mem::take(&mut self.marked);
        let (needed, unneeded) = all.into_iter().partition::<Vec<_>, _>(is_needed);
        self.marked = needed;
        unneeded.into_iter().map(|batch| batch.name).collect()
    }

    /// Returns the claims of other movers that were open for so long that they are dead.
    pub(super) fn dead(&self, now: Instant) -> Vec<Box<str>> {
        let is_dead = |(_, since): &&(Box<str>, Instant)| now >= *since + GRACE;
        let dead = self.others.iter().filter(is_dead);
        dead.map(|(name, _)| name.clone()).collect()
    }

    /// Notes the claim of this mover in a transaction of its own. False: there are no rows to move.
    pub(super) async fn open(
        &mut self,
        mover: &mut dyn Mover,
        claim: Box<str>,
    ) -> Result<bool, Fault> {
        // Rows are picked so that the transaction begins once no other mover writes to the source.
        let one = PickMost { rows: 1, bytes: 1 };
        if mover.pick(one).await?.is_empty() {
            return Ok(false);
        }
        mover.note(&claim).await?;
        mover.commit().await?;
        self.own = Some(claim);
        // The next rows are picked from the first one on.
        mover.rollback().await?;
        Ok(true)
    }

    /// Forgets the claim of this mover, outside a transaction. A claim that stays only makes others
    /// wait.
    pub(super) async fn close(&mut self, mover: &mut dyn Mover) {
        if let Some(claim) = self.own.take() {
            let forgotten = mover.forget(std::slice::from_ref(&claim)).await;
            if let Err(fault) = forgotten {
                tracing::debug!(%fault, "a claim stays noted for now");
                self.own = Some(claim);
            }
        }
    }

    /// Reads the claims of other movers. Returns all names that the source lists.
    pub(super) async fn read(&mut self, mover: &mut dyn Mover) -> Result<Vec<Box<str>>, Fault> {
        let noted = mover.batches(MAX_NOTED).await?;
        self.look(&noted, Instant::now());
        Ok(noted)
    }

    /// Waits until the claims of other movers are gone, or their movers are known to be dead, and
    /// forgets the claims of the dead. Waits a second at most if the move is to stop.
    pub(super) async fn settle(
        &mut self,
        mover: &mut dyn Mover,
        stop: &CancellationToken,
    ) -> Result<(), Fault> {
        let start = Instant::now();
        self.read(mover).await?;
        let waited: Vec<Box<str>> = self.others.iter().map(|(name, _)| name.clone()).collect();
        let wait = || match stop.is_cancelled() {
            true => STOP_WAIT,
            false => GRACE,
        };
        while self.others.iter().any(|(name, _)| waited.contains(name)) && start.elapsed() < wait()
        {
            sleep(LOOK_DELAY).await;
            self.read(mover).await?;
        }
        let dead = self.dead(Instant::now());
        match dead.is_empty() {
            true => Ok(()),
            false => mover.forget(&dead).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<Box<str>> {
        names.iter().map(|name| (*name).into()).collect()
    }

    #[test]
    fn markers_stay_while_a_claim_is_open_that_was_open_before() {
        let mut claims = Claims::new("m");
        let start = Instant::now();
        claims.look(&names(&["a", "a?n"]), start);
        claims.committed("1".into(), start);
        assert_eq!(claims.take_unneeded(start), names(&["1"]));
        claims.replace(Some(claims.name("own")));
        claims.look(&names(&["own?m", "x?m"]), start);
        assert!(claims.needs_renewal() && claims.is_open());
        claims.committed("2".into(), start);
        assert_eq!(claims.take_unneeded(start), names(&[]));
        // Another claim is open only now.
        claims.look(&names(&["own?m", "y?m"]), start);
        claims.committed("3".into(), start);
        assert_eq!(claims.take_unneeded(start), names(&["2"]));
        assert_eq!(claims.dead(start), names(&[]));
        claims.look(&names(&["y?m"]), start + GRACE);
        assert_eq!(claims.take_unneeded(start + GRACE), names(&["3"]));
        assert_eq!(claims.dead(start + GRACE), names(&["y?m"]));
        claims.look(&names(&["own?m"]), start);
        assert!(!claims.needs_renewal());
        claims.look(&names(&[]), start);
        assert!(claims.needs_renewal());
        assert!(is_claim("y?m") && !is_claim("y"));
    }
}
