//! Claims: movers whose writes may still be on their way to the destination.
//!
//! A mover that is killed may have sent rows that the destination's server reads much later. Then
//! nothing but their markers keeps them from being written again, so the markers of the mover that
//! took over must still be there. Each mover notes a claim in the source before it writes, and
//! removes the claim once it knows the outcome of its writes. Markers stay while a claim is open
//! that was open when they were written, but for at most [`GRACE`].
//!
//! A mover reads the claims of others once a while, and then removes the markers that nobody needs
//! of all batches that were committed before.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use windrow_bookkeeping::{forget_batches, list_batches, note_batch};
use windrow_core::Fault;
use windrow_core::moves::{Mover, PickMost};

/// The time after which writes of a mover that was killed cannot be under way any more.
const GRACE: Duration = Duration::from_secs(10);

/// The most batches, or claims, that are read at once.
const MAX_LISTED: usize = 10_000;

/// The longest wait for live movers once the move is to stop.
const STOP_WAIT: Duration = Duration::from_secs(1);

/// The delay between two looks at the claims of other movers at the end.
const LOOK_DELAY: Duration = Duration::from_millis(50);

/// The delay between two looks of a mover that is busy. Much shorter than [`GRACE`], after which
/// others take a mover for dead that does not renew its claim.
const BUSY_LOOK_DELAY: Duration = Duration::from_millis(250);

/// The most batches whose markers stay until the next look.
const MAX_MARKED: usize = 32;

/// A character in the names of claims, which no name of a batch contains.
const SIGN: char = '?';

/// Bytes of a move's name that end the names of its claims.
const MOVE_BYTES: usize = 16;

/// The claims of one move, as one of its movers sees them.
pub(super) struct Claims {
    /// The prefix of the names of the batches to this destination.
    batches: Box<str>,
    /// The end of the names of all claims of the move.
    ending: Box<str>,
    /// The claim of this mover, if one is open.
    own: Option<Box<str>>,
    /// True unless the source lacked the own claim at the last look.
    is_listed: bool,
    /// True if the own claim was noted since the last look.
    is_new: bool,
    /// Open claims of other movers, and when each was seen first.
    others: Vec<(Box<str>, Instant)>,
    /// Batches that are committed and whose markers are still there.
    marked: Vec<MarkedBatch>,
    /// The moment of the last look.
    looked: Option<Instant>,
}

/// A batch whose markers are still there.
struct MarkedBatch {
    name: Box<str>,
    committed: Instant,
    /// True if the claims were read since.
    is_looked_at: bool,
    /// The claims of other movers that were open then.
    beside: Vec<Box<str>>,
}

impl Claims {
    /// Makes the claims of a move. `relocation` is the move's name, `batches` the prefix of the
    /// names of its batches.
    pub(super) fn new(relocation: &str, batches: &str) -> Self {
        let name = relocation.get(..MOVE_BYTES).unwrap_or(relocation);
        Self {
            batches: batches.into(),
            ending: format!("{SIGN}{name}").into(),
            own: None,
            is_listed: true,
            is_new: true,
            others: Vec::new(),
            marked: Vec::new(),
            looked: None,
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

    /// Returns true if this mover has a claim.
    pub(super) fn is_open(&self) -> bool {
        self.own.is_some()
    }

    /// Replaces the claim of this mover by one that is noted.
    pub(super) fn replace(&mut self, own: Box<str>) {
        self.own = Some(own);
        self.is_new = true;
    }

    /// Notes the names that the source lists.
    fn look(&mut self, listed: &[Box<str>], now: Instant) {
        self.looked = Some(now);
        (self.is_listed, self.is_new) = (false, false);
        let mut others = Vec::new();
        for name in listed {
            if self.own.as_ref() == Some(name) {
                self.is_listed = true;
            } else {
                let known = self.others.iter().find(|(known, _)| known == name);
                others.push((name.clone(), known.map_or(now, |(_, since)| *since)));
            }
        }
        self.others = others;
        for batch in self.marked.iter_mut().filter(|batch| !batch.is_looked_at) {
            batch.is_looked_at = true;
            let open = self.others.iter().map(|(name, _)| name);
            batch.beside.extend(open.cloned());
        }
    }

    /// Returns true if the claim must be replaced with the next commit: another mover may be
    /// waiting for its end, or has concluded that this one is dead.
    pub(super) fn needs_renewal(&self) -> bool {
        let is_missing = self.own.is_some() && !self.is_listed;
        !self.is_new && (is_missing || !self.others.is_empty())
    }

    /// Returns true if a busy mover must read the claims of others again.
    pub(super) fn needs_look(&self, now: Instant) -> bool {
        let is_due = |looked| now >= looked + BUSY_LOOK_DELAY;
        self.looked.is_none_or(is_due) || self.marked.len() >= MAX_MARKED
    }

    /// Returns true if there are batches whose markers still exist.
    pub(super) fn has_marked(&self) -> bool {
        !self.marked.is_empty()
    }

    /// Notes a batch that is committed in the source.
    pub(super) fn committed(&mut self, batch: Box<str>, now: Instant) {
        let beside = self.others.iter().map(|(name, _)| name.clone()).collect();
        self.marked.push(MarkedBatch {
            name: batch,
            committed: now,
            is_looked_at: false,
            beside,
        });
    }

    /// Removes and returns the batches whose markers are not needed any more, as the last check
    /// shows.
    pub(super) fn take_unneeded(&mut self, now: Instant) -> Vec<Box<str>> {
        let others = &self.others;
        let is_needed = |batch: &MarkedBatch| {
            let mut open = others.iter().map(|(name, _)| name);
            let is_young = now < batch.committed + GRACE;
            !batch.is_looked_at || (is_young && open.any(|claim| batch.beside.contains(claim)))
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

    /// Notes the claim of this mover in a transaction of its own. Returns false if there are no
    /// rows to move.
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
        note_batch(mover, &claim).await?;
        mover.commit().await?;
        self.replace(claim);
        // The next rows are picked from the first one on.
        mover.rollback().await?;
        Ok(true)
    }

    /// Forgets the claim of this mover, outside a transaction. A claim that stays only makes others
    /// wait.
    pub(super) async fn close(&mut self, mover: &mut dyn Mover) {
        if let Some(claim) = self.own.take() {
            let forgotten = forget_batches(mover, std::slice::from_ref(&claim)).await;
            if let Err(fault) = forgotten {
                tracing::debug!(%fault, "a claim stays noted for now");
                self.own = Some(claim);
            }
        }
    }

    /// Notes the batches of dead movers to this destination, whose markers may still be there.
    pub(super) async fn find_left(&mut self, mover: &mut dyn Mover) -> Result<(), Fault> {
        let noted = list_batches(mover, &self.batches, "", MAX_LISTED).await?;
        let left = noted.into_iter().filter(|name| !name.contains(SIGN));
        left.for_each(|batch| self.committed(batch, Instant::now()));
        Ok(())
    }

    /// Reads the claims of other movers.
    pub(super) async fn read(&mut self, mover: &mut dyn Mover) -> Result<(), Fault> {
        let listed = list_batches(mover, "", &self.ending, MAX_LISTED).await?;
        self.look(&listed, Instant::now());
        Ok(())
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
            false => forget_batches(mover, &dead).await,
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
        let mut claims = Claims::new("m", "");
        let start = Instant::now();
        claims.committed("1".into(), start);
        // Nobody knows yet which claims are open.
        assert_eq!(claims.take_unneeded(start), names(&[]));
        claims.look(&names(&[]), start);
        assert_eq!(claims.take_unneeded(start), names(&["1"]));
        claims.replace(claims.name("own"));
        claims.look(&names(&["own?m", "x?m"]), start);
        assert!(claims.needs_renewal() && claims.is_open());
        claims.committed("2".into(), start);
        // The claim that was open at the commit has been replaced by another one.
        claims.look(&names(&["own?m", "y?m"]), start);
        assert_eq!(claims.take_unneeded(start), names(&[]));
        claims.look(&names(&["own?m", "z?m"]), start);
        assert_eq!(claims.take_unneeded(start), names(&["2"]));
        claims.committed("3".into(), start);
        claims.look(&names(&["own?m", "z?m"]), start);
        assert_eq!(claims.take_unneeded(start), names(&[]));
        assert_eq!(claims.dead(start), names(&[]));
        claims.look(&names(&["z?m"]), start + GRACE);
        assert_eq!(claims.take_unneeded(start + GRACE), names(&["3"]));
        assert_eq!(claims.dead(start + GRACE), names(&["z?m"]));
        claims.look(&names(&["own?m"]), start);
        assert!(!claims.needs_renewal());
        claims.look(&names(&[]), start);
        assert!(claims.needs_renewal());
    }

    #[test]
    fn a_busy_mover_looks_once_a_while() {
        let mut claims = Claims::new("m", "");
        let start = Instant::now();
        assert!(claims.needs_look(start));
        claims.look(&names(&[]), start);
        assert!(!claims.needs_look(start));
        assert!(claims.needs_look(start + BUSY_LOOK_DELAY));
        for batch in 0..MAX_MARKED {
            assert!(!claims.needs_look(start));
            claims.committed(batch.to_string().into(), start);
        }
        assert!(claims.needs_look(start) && claims.has_marked());
        claims.look(&names(&[]), start);
        assert_eq!(claims.take_unneeded(start).len(), MAX_MARKED);
        assert!(!claims.needs_look(start) && !claims.has_marked());
    }
}
