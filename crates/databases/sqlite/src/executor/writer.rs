//! Runs the thread that owns the connection: SQLite has one writer at a time, so there is one.
//!
//! Jobs are closures, which come through a bounded channel, as in sqlx-sqlite's
//! `connection/worker.rs`. If a closure panics, its connection is closed, which rolls back an open
//! transaction. Its caller gets no answer, and the next one gets a new connection.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
use windrow_core::Fault;
use windrow_database::Options;

use super::session::Session;
use crate::catalog::standings::Standings;
use crate::fault::Failure;
use crate::location::Location;

/// Jobs that wait for the thread: two executors, a ping, and a few more.
const MAX_WAITING: usize = 8;

type Job = Box<dyn FnOnce(&mut Database) + Send>;

/// The handle of the thread. When it is dropped, the thread finishes its jobs, checkpoints and
/// ends. Dropping waits for that.
#[derive(Debug)]
pub(crate) struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    standings: Arc<Standings>,
}

/// The reason why a job has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The thread had ended: the job did not run.
    NotBegun,
    /// The job panicked: an unknown part of it was done.
    HalfWay,
}

/// The database of the thread, opened by the first job that needs it.
#[derive(Debug)]
pub(crate) struct Database {
    location: Location,
    options: Options,
    session: Option<Session>,
    standings: Arc<Standings>,
}

impl Writer {
    /// Starts the thread. The first job that needs the database opens it.
    pub(crate) fn spawn(location: Location, options: Options) -> Result<Self, Fault> {
        let (sender, jobs) = mpsc::channel(MAX_WAITING);
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

    /// Returns which tables share transactions, as far as it is known.
    pub(crate) fn standings(&self) -> &Standings {
        &self.standings
    }

    /// Runs a job on the thread, and returns its result. A dropped future withdraws the job only
    /// while the channel is full. After that the job runs and its result is dropped.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Database) -> T + Send + 'static,
    ) -> Result<T, Lost> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |database| {
            // An error means that the caller has gone.
            drop(reply.send(work(database)));
        });
        let jobs = self.jobs.as_ref().ok_or(Lost::NotBegun)?;
        jobs.send(job).await.map_err(|_| Lost::NotBegun)?;
        answer.await.map_err(|_| Lost::HalfWay)
    }

    /// Runs a job on the thread that leaves nothing behind if it panics. A panic becomes a fault.
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

    /// Runs a job on the thread's connection, in the same way.
    pub(crate) async fn query<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Fault> {
        self.run(move |database| {
            let worked = work(database.session()?.connection());
            worked.map_err(|error| Failure::from(error).fault)
        })
        .await
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // The thread catches panics of its jobs.
            drop(thread.join());
        }
    }
}

impl Database {
    /// Returns the session. Opens it if there is none, or if the path names another file by now.
    pub(crate) fn session(&mut self) -> Result<&mut Session, Fault> {
        let there = self.session.as_ref().map_or(Ok(()), Session::check_file);
        if let Err(fault) = there {
            tracing::error!(%fault, "the SQLite file is opened again");
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

    /// Drops a connection that cannot be used any more. The next job opens another one.
    pub(crate) fn discard(&mut self) {
        self.session = None;
    }
}

fn serve(mut database: Database, mut jobs: mpsc::Receiver<Job>) {
    while let Some(job) = jobs.blocking_recv() {
        if catch_unwind(AssertUnwindSafe(|| job(&mut database))).is_err() {
            tracing::error!("SQLite's writer met a defect; its connection is opened again");
            database.discard();
        }
    }
    if let Some(session) = database.session {
        close(session.into_connection());
    }
}

/// Checkpoints the write-ahead log, as far as other processes allow it, and closes.
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
