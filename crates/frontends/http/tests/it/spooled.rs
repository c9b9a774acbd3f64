//! A server with a spool that does what a test says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

use async_trait::async_trait;
use tokio::sync::watch;
use windrow_core::{
    Arrivals, Budget, Fault, Intake, SpoolPlace, Spooling, Submission, Write, WriteDone,
};
use windrow_http::{Ack, HttpConfig};

use crate::support::{MIB, Seen, Server, answer, eventually, start_changed};

/// A spool of one partition. What the database has of it is what a test says.
#[derive(Debug)]
pub(crate) struct FakeSpool {
    intake: Intake,
    end: AtomicU64,
    /// `None` once nothing more will be applied.
    applied: watch::Sender<Option<u64>>,
    /// Who waits at this moment, and who has ever asked.
    pub(crate) waiting: AtomicUsize,
    pub(crate) asked: AtomicUsize,
}

const NAME: u128 = 0xabc;

impl FakeSpool {
    pub(crate) fn new(budget: Budget) -> (Arc<Self>, Arrivals) {
        let (intake, entries) = Intake::channel(budget, 64);
        let spool = Self {
            intake,
            end: AtomicU64::new(0),
            applied: watch::Sender::new(Some(0)),
            waiting: AtomicUsize::new(0),
            asked: AtomicUsize::new(0),
        };
        (Arc::new(spool), entries)
    }

    /// Answers a submission; units that the rule lets through are entries from then on.
    pub(crate) fn take(
        &self,
        submission: Submission,
        mut rule: impl FnMut(&Write) -> Result<(), Fault>,
    ) {
        self.end.fetch_add(submission.units.len() as u64, SeqCst);
        answer(submission, &mut |write| {
            rule(write).map(|()| WriteDone::default())
        });
    }

    /// The database has all of it.
    pub(crate) fn apply(&self) {
        self.applied.send_replace(Some(self.end.load(SeqCst)));
    }

    /// Nothing more will be applied.
    pub(crate) fn stop(&self) {
        self.applied.send_replace(None);
    }

    pub(crate) async fn has_waiting(&self, count: usize) {
        eventually("so many wait for the database", || {
            self.waiting.load(SeqCst) == count
        })
        .await;
    }
}

struct Waits<'a>(&'a AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[async_trait]
impl Spooling for FakeSpool {
    fn intake(&self) -> &Intake {
        &self.intake
    }

    fn end(&self) -> SpoolPlace {
        SpoolPlace {
            spool: NAME,
            positions: [self.end.load(SeqCst)].into(),
        }
    }

    fn level(&self) -> Option<SpoolPlace> {
        let applied = *self.applied.borrow();
        applied.map(|at| SpoolPlace {
            spool: NAME,
            positions: [at].into(),
        })
    }

    async fn applied(&self, place: &SpoolPlace) -> Result<(), Fault> {
        self.asked.fetch_add(1, SeqCst);
        let to = match *place.positions {
            [to] if place.spool == NAME && to <= self.end.load(SeqCst) => to,
            _ => return Err(Fault::invalid("no answer of this spool has named it")),
        };
        self.waiting.fetch_add(1, SeqCst);
        let _waits = Waits(&self.waiting);
        let mut applied = self.applied.subscribe();
        let reached = applied
            .wait_for(|at| at.is_none_or(|at| at >= to))
            .await
            .map_err(|_| Fault::internal("no spool"))?;
        reached
            .map(|_| ())
            .ok_or_else(|| Fault::unavailable("the drain has stopped"))
    }
}

/// A server, its lane, and its spool with the end where entries come out.
pub(crate) struct Spooled {
    pub(crate) server: Server,
    pub(crate) lane: Arrivals,
    pub(crate) spool: Arc<FakeSpool>,
    pub(crate) entries: Arrivals,
}

/// A server whose lane and spool are played by the test.
pub(crate) async fn start(config: HttpConfig, ack: Ack) -> Spooled {
    let budget = Budget::new(64 * MIB);
    let (spool, entries) = FakeSpool::new(budget.clone());
    let given = Arc::clone(&spool);
    let (server, lane) = start_changed(config, budget, crate::extension(), |services| {
        services.spool = Some(given);
        services.ack = ack;
    })
    .await;
    Spooled {
        server,
        lane,
        spool,
        entries,
    }
}

/// What came to a server whose lane and spool answer at once.
pub(crate) struct Answering {
    pub(crate) server: Server,
    pub(crate) spool: Arc<FakeSpool>,
    /// What the lane was asked.
    pub(crate) lane: Seen,
    /// What the spool was asked.
    pub(crate) entries: Seen,
}

/// A server whose lane writes one row each time, and whose spool takes what a rule lets through.
pub(crate) async fn serve(
    config: HttpConfig,
    ack: Ack,
    mut rule: impl FnMut(&Write) -> Result<(), Fault> + Send + 'static,
) -> Answering {
    let Spooled {
        server,
        lane: mut arrivals,
        spool,
        entries: mut taken,
    } = start(config, ack).await;
    let (lane, entries) = (Seen::default(), Seen::default());
    let (log, spool_log, own) = (lane.clone(), entries.clone(), Arc::clone(&spool));
    tokio::spawn(async move {
        while let Some(submission) = arrivals.recv().await {
            log.add(&submission);
            answer(submission, &mut |_| Ok(WriteDone::rows(1)));
        }
    });
    tokio::spawn(async move {
        while let Some(submission) = taken.recv().await {
            spool_log.add(&submission);
            own.take(submission, &mut rule);
        }
    });
    Answering {
        server,
        spool,
        lane,
        entries,
    }
}
