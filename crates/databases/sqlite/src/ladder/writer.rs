//! The thread that owns the connection: SQLite has one writer at a time, so there is one.
//!
//! What it is to do comes as a closure through a bounded channel; the pattern is that of
//! sqlx-sqlite's `connection/worker.rs`. A closure that panics takes its connection with it (an
//! open transaction is rolled back by that), never the thread: its caller learns that the answer is
//! lost, the next one gets a new connection.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
use windrow_core::Fault;
use windrow_database::Options;

use super::session::Session;
use crate::catalog::standings::Standings;
use crate::location::Location;

/// What may wait for the thread: two executors and a ping, and some room.
const WAITING: usize = 8;

type Job = Box<dyn FnOnce(&mut Database) + Send>;

/// The handle of the thread. When the last one is dropped, the thread finishes what it was asked
/// for, checkpoints and ends; dropping waits for that.
#[derive(Debug)]
pub(crate) struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    standings: Arc<Standings>,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The thread was gone already: nothing was done.
    NotBegun,
    /// The work broke off half-way: it cannot be known what was done.
    HalfWay,
}

/// The database that the thread serves, opened when it is first needed.
#[derive(Debug)]
pub(crate) struct Database {
    location: Location,
    options: Options,
    session: Option<Session>,
    standings: Arc<Standings>,
}

impl Writer {
    /// Starts the thread. The database is opened when it is first asked for.
    pub(crate) fn spawn(location: Location, options: Options) -> Result<Self, Fault> {
        let (sender, jobs) = mpsc::channel(WAITING);
        let standings = Arc::<Standings>::default();
        let database = Database {
            location,
            options,
            session: None,
            standings: standings.clone(),
        };
        let thread = std::thread::Builder::new()
            .name("windrow-sqlite".into())
            .spawn(move || serve(database, jobs))
            .map_err(|e| Fault::unavailable(format!("no thread for SQLite: {e}")))?;
        Ok(Self {
            jobs: Some(sender),
            thread: Some(thread),
            standings,
        })
    }

    /// What has been found of the tables.
    pub(crate) fn standings(&self) -> &Standings {
        &self.standings
    }

    /// Has the thread do something and gives back what came of it. A future that is dropped before
    /// the thread has taken the work takes it out only while the channel is full; otherwise the
    /// work is done and its answer dropped.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Database) -> T + Send + 'static,
    ) -> Result<T, Lost> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |database| {
            // An error only says that nobody waits any more.
            drop(reply.send(work(database)));
        });
        let jobs = self.jobs.as_ref().ok_or(Lost::NotBegun)?;
        jobs.send(job).await.map_err(|_| Lost::NotBegun)?;
        answer.await.map_err(|_| Lost::HalfWay)
    }

    /// The same for work that can fail and that leaves nothing behind where it breaks off: being
    /// lost is then one failure more.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Database) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        match self.ask(work).await {
            Ok(answer) => answer,
            Err(Lost::NotBegun) => Err(Fault::unavailable("SQLite's writer has ended")),
            Err(Lost::HalfWay) => Err(Fault::unavailable(
                "SQLite's writer broke off; its transaction is rolled back",
            )),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // Panics are caught inside; there is nobody to tell of one here.
            drop(thread.join());
        }
    }
}

impl Database {
    /// The connection, opened if need be: also where the file is not there any more, or is another
    /// one.
    pub(crate) fn session(&mut self) -> Result<&mut Session, Fault> {
        let there = self.session.as_ref().map_or(Ok(()), Session::check_file);
        if let Err(fault) = there {
            tracing::error!(%fault, "the SQLite file is opened anew");
            self.session = None;
        }
        match &mut self.session {
            Some(session) => Ok(session),
            empty @ None => {
                let session = Session::open(&self.location, &self.options, &self.standings)?;
                Ok(empty.insert(session))
            }
        }
    }

    /// Forgets a connection that cannot be used any more; the next caller gets a new one.
    pub(crate) fn discard(&mut self) {
        self.session = None;
    }
}

fn serve(mut database: Database, mut jobs: mpsc::Receiver<Job>) {
    while let Some(job) = jobs.blocking_recv() {
        if catch_unwind(AssertUnwindSafe(|| job(&mut database))).is_err() {
            tracing::error!("SQLite's writer met a defect; its connection is opened anew");
            database.discard();
        }
    }
    if let Some(session) = database.session {
        close(session.into_connection());
    }
}

/// Brings the write-ahead log into the database file, as far as other processes let it, and closes.
fn close(connection: Connection) {
    let checkpoint = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    if let Err(error) = checkpoint {
        tracing::warn!(%error, "SQLite's log could not be checkpointed; it will be when the file is next opened");
    }
    if let Err((_, error)) = connection.close() {
        tracing::warn!(%error, "SQLite's connection could not be closed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer() -> Writer {
        Writer::spawn(Location::Memory, Options::default()).unwrap()
    }

    #[tokio::test]
    async fn a_panic_hangs_nobody_and_the_next_caller_is_served() {
        let writer = writer();
        let broken = writer.ask(|_| panic!("a defect")).await;
        assert_eq!(broken, Err::<(), _>(Lost::HalfWay));
        let fine = writer.ask(|database| database.session().is_ok()).await;
        assert_eq!(fine, Ok(true));
    }

    #[tokio::test]
    async fn dropping_finishes_what_was_asked_for() {
        let (done, was_done) = std::sync::mpsc::channel();
        let writer = writer();
        for n in 0..3 {
            let done = done.clone();
            let asked = writer.ask(move |_| done.send(n));
            // Sent, and not waited for.
            tokio::select! {
                biased;
                _ = asked => {}
                () = std::future::ready(()) => {}
            }
        }
        drop(writer);
        drop(done);
        assert_eq!(was_done.iter().collect::<Vec<_>>(), [0, 1, 2]);
    }
}
