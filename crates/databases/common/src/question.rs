//! The connection on which a sink asks the database about statements. It is closed after some idle
//! time.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

/// The idle time after which the connection is closed.
const IDLE: Duration = Duration::from_secs(60);

/// Closes a connection.
pub type CloseConnection<C> = fn(C) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// The connection for questions. One question is asked at a time.
#[derive(Debug)]
pub struct QuestionConnection<C> {
    kept: Arc<Mutex<KeptConnection<C>>>,
    close: CloseConnection<C>,
}

#[derive(Debug)]
struct KeptConnection<C> {
    connection: Option<C>,
    used: Instant,
    /// True if a task is waiting to close the idle connection.
    is_watched: bool,
}

/// The right to ask the next question.
pub struct QuestionTurn<'q, C> {
    of: &'q QuestionConnection<C>,
    kept: MutexGuard<'q, KeptConnection<C>>,
}

impl<C: Send + 'static> QuestionConnection<C> {
    /// Begins without a connection. `close` closes one.
    pub fn new(close: CloseConnection<C>) -> Self {
        let kept = KeptConnection {
            connection: None,
            used: Instant::now(),
            is_watched: false,
        };
        Self {
            kept: Arc::new(Mutex::new(kept)),
            close,
        }
    }

    /// Closes the connection, unless it is in use.
    pub fn rest(&self) {
        if let Ok(mut kept) = self.kept.try_lock()
            && let Some(connection) = kept.connection.take()
        {
            tokio::spawn((self.close)(connection));
        }
    }

    /// Waits until no other question is being asked. Cancel safe.
    pub async fn turn(&self) -> QuestionTurn<'_, C> {
        QuestionTurn {
            of: self,
            kept: self.kept.lock().await,
        }
    }
}

impl<C: Send + 'static> QuestionTurn<'_, C> {
    /// Takes the connection, if there is one. It is dropped unless the caller puts it back.
    pub fn take(&mut self) -> Option<C> {
        self.kept.connection.take()
    }

    /// Returns a connection for the next question.
    pub fn put_back(mut self, connection: C) {
        self.kept.connection = Some(connection);
        self.kept.used = Instant::now();
        if std::mem::replace(&mut self.kept.is_watched, true) {
            return;
        }
        let (kept, close) = (Arc::downgrade(&self.of.kept), self.of.close);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(IDLE).await;
                let Some(kept) = kept.upgrade() else {
                    return;
                };
                let mut kept = kept.lock().await;
                if kept.used.elapsed() >= IDLE {
                    kept.is_watched = false;
                    if let Some(connection) = kept.connection.take() {
                        close(connection).await;
                    }
                    return;
                }
            }
        });
    }
}
