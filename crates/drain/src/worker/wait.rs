//! Waiting for something to apply, and for more of it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use windrow_core::{Executor, RowWrite};
use windrow_spool::Log;

use super::state::{Ended, Worker};
use crate::flight::Wanted;
use crate::reader::{Reader, Stopped};

/// How long more is let come at most where nobody waits for what is there.
const GATHER: Duration = Duration::from_millis(5);

impl Worker {
    /// Waits until there is something to apply. Meanwhile the database is asked whether it still
    /// has what it had: before it has said so for a while, that is not given up in the spool.
    pub(super) async fn wait_for_entries(
        &mut self,
        connection: &mut dyn Executor<RowWrite>,
    ) -> Result<(), Ended> {
        loop {
            if self.stop.is_cancelled() {
                return Err(Ended::Stopping);
            }
            let lost = Ended::Again(self.options.long_pause);
            let found = self.found.as_mut().ok_or(lost)?;
            let first = found.reader.items().front().map(|item| item.written);
            self.partition.oldest(first);
            if first.is_some() {
                return Ok(());
            }
            if found.position() >= self.partition.log.end().0 {
                self.partition.level();
                self.backoff.reset();
            }
            match found.reader.stopped().cloned() {
                None => {}
                // What is there is applied; the drain is told to stop as well before long.
                Some(Stopped::Closed) => self.stop.cancelled().await,
                Some(stopped) => return Err(self.stopped(stopped)),
            }
            let Some(found) = &mut self.found else {
                continue;
            };
            let ask = self.partition.ask_at(self.options.keep);
            let asking = async {
                match ask {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {}
                () = found.reader.fill() => {}
                () = asking => self.locate(connection).await?,
            }
        }
    }

    /// Lets more come as long as nobody waits for what is there: a transaction for each few entries
    /// costs the database and the gateway more than one for many. What has come is read in one go:
    /// following each append would cost more than applying it. Cancel safe.
    pub(super) async fn gather(&mut self) {
        let (most, partition) = (self.size.entries(), Arc::clone(&self.partition));
        let Some(found) = &mut self.found else { return };
        if !matches!(self.wanted, Wanted::Many) {
            return;
        }
        let log = Arc::clone(&partition.log);
        take(&mut found.reader, &*log, most).await;
        if !found.reader.wants_more() || found.reader.items().len() >= most {
            return;
        }
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = partition.awaited() => {}
            () = tokio::time::sleep(GATHER) => {}
        }
        take(&mut found.reader, &*log, most).await;
    }
}

/// Reads what is there, until there are so many entries.
async fn take(reader: &mut Reader, log: &dyn Log, most: usize) {
    while reader.items().len() < most && reader.lags(log.end(), 1) {
        // Where the log's last positions are nobody's, nothing comes.
        if timeout(GATHER, reader.fill()).await.is_err() {
            return;
        }
    }
}
