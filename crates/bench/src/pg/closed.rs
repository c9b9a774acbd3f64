//! A closed loop: each connection makes its next call when the last one is answered.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::task::LocalSet;
use windrow_testkit::pgclient::Address;

use super::job::{self, Job};
use super::report::Report;
use super::session::Session;

/// Many connections on one thread with one event loop.
#[derive(Debug)]
pub struct Clients {
    runtime: tokio::runtime::Runtime,
    tasks: LocalSet,
    sessions: Vec<Session>,
}

impl Clients {
    /// Opens them, one after the other.
    ///
    /// # Errors
    /// One is not let in.
    pub fn open(address: &Address, count: usize) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let sessions = runtime.block_on(async {
            let mut sessions = Vec::with_capacity(count);
            for _ in 0..count {
                sessions.push(Session::open(address).await?);
            }
            anyhow::Ok(sessions)
        })?;
        Ok(Self {
            runtime,
            tasks: LocalSet::new(),
            sessions,
        })
    }

    /// Lets the first `busy` of them prepare a job's statement.
    ///
    /// # Errors
    /// The server refuses.
    pub fn prepare(&mut self, busy: usize, job: &dyn Job) -> Result<()> {
        let request = job::prepare(job);
        let sessions = self.sessions.iter_mut().take(busy);
        self.runtime.block_on(async {
            for session in sessions {
                session.expect(&request).await?;
            }
            Ok(())
        })
    }

    /// Lets the first `busy` of them call for a time; the others are silent. They must have
    /// prepared the statement.
    ///
    /// # Errors
    /// A connection ends.
    pub fn run(&mut self, busy: usize, time: Duration, job: &Arc<dyn Job>) -> Result<Report> {
        let start = Instant::now();
        let active: Vec<Session> = self
            .sessions
            .drain(..busy.min(self.sessions.len()))
            .collect();
        // One for all of them: thousands of histograms would fit into no cache.
        let report = Rc::new(RefCell::new(Report::new()?));
        let calls: Vec<_> = active
            .into_iter()
            .enumerate()
            .map(|(number, session)| {
                let (job, report) = (Arc::clone(job), Rc::clone(&report));
                self.tasks
                    .spawn_local(calls(session, number, (start, time), job, report))
            })
            .collect();
        let sessions = self.tasks.block_on(&self.runtime, async {
            let mut sessions = Vec::with_capacity(calls.len());
            for call in calls {
                sessions.push(call.await.context("a client panicked")??);
            }
            anyhow::Ok(sessions)
        })?;
        let mut report = report.borrow().clone();
        report.elapsed = start.elapsed();
        self.sessions.splice(0..0, sessions);
        Ok(report)
    }
}

async fn calls(
    mut session: Session,
    number: usize,
    (start, time): (Instant, Duration),
    job: Arc<dyn Job>,
    report: Rc<RefCell<Report>>,
) -> Result<Session> {
    let mut request = Vec::new();
    for n in 0.. {
        let begun = Instant::now();
        if begun - start >= time {
            break;
        }
        let outcome = session.call(&*job, (number, n), &mut request).await?;
        report.borrow_mut().add(outcome, begun.elapsed(), b"");
        job.seen(number, n, outcome);
    }
    Ok(session)
}
