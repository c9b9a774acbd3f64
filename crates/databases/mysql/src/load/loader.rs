//! Loads a portion in one transaction.

use async_trait::async_trait;
use windrow_core::{Claim, Contents, Filtered, LoadFault, Loaded, Loader, Rows};

use super::connection::{MysqlLoader, write};
use super::fault::{miscounted, of_mark};
use crate::fault::{DUPLICATE, Scope, Trouble, unavailable, unknown};
use crate::own_tables::insert_marks;
use crate::values::cell::get;

/// The most warnings of one statement that a server reports.
const MAX_WARNINGS: u64 = 65_535;

/// The marks that one statement writes: far less than the smallest packet that a server can be
/// configured to accept.
const MAX_MARKS: usize = 1000;

impl MysqlLoader {
    /// Checks that the connection can be used.
    fn check(&self) -> Result<(), LoadFault> {
        if self.session.is_usable() {
            return Ok(());
        }
        let why = "it had ended before";
        Err(LoadFault::Again(unavailable(why)))
    }

    /// Commits the rows that were written, or rolls back.
    async fn finish<T>(&mut self, written: Result<T, LoadFault>) -> Result<T, LoadFault> {
        if written.is_ok() {
            self.commit().await?;
        } else if self.session.is_usable() && self.session.say("ROLLBACK").await.is_err() {
            // Without an answer the connection is lost, and the server rolls back by itself.
            self.session.give_up();
        }
        written
    }

    async fn commit(&mut self) -> Result<(), LoadFault> {
        match self.session.say("COMMIT").await {
            Ok(_) => Ok(()),
            Err(Trouble::Lost(why)) => Err(LoadFault::Unknown(unknown(&why))),
            Err(Trouble::Refused(refusal)) => Err(match refusal.scope {
                // Another node of a cluster committed first, or a lock timed out: certainly rolled
                // back.
                Scope::Transaction | Scope::Lock => LoadFault::Again(refusal.fault),
                Scope::Statement | Scope::Connection => {
                    LoadFault::Unknown(unknown(&refusal.fault.message))
                }
            }),
        }
    }

    /// Writes a portion and its marks. Does not commit.
    async fn portion(
        &mut self,
        contents: Contents<'_>,
        claim: Option<&Claim<'_>>,
    ) -> Result<Filtered, LoadFault> {
        let rows = contents.rows().map_err(LoadFault::Refused)?;
        let filtered = match contents.leaves_out() {
            true => self.write_filtered(rows).await?,
            false => self.write_whole(rows).await?,
        };
        if let Some(claim) = claim {
            for spans in claim.spans(&filtered.left).chunks(MAX_MARKS) {
                let sql = insert_marks(&claim.mark.load, spans);
                self.session.say(&sql).await.map_err(of_mark)?;
            }
        }
        Ok(filtered)
    }

    /// Writes all rows. Does not commit.
    async fn write_whole(&mut self, rows: &Rows) -> Result<Filtered, LoadFault> {
        self.open().await?;
        if rows.is_empty() {
            return Ok(Filtered::default());
        }
        let load = &self.load;
        let (written, warnings) = write(&mut self.session, load, rows).await?;
        let loaded = self.judge(rows.len() as u64, written, warnings).await?;
        let left = Vec::new();
        Ok(Filtered { loaded, left })
    }

    /// Checks that all rows were written with the values that were sent.
    async fn judge(&mut self, sent: u64, written: u64, warnings: u64) -> Result<Loaded, LoadFault> {
        let ignored = sent.saturating_sub(written);
        if written > sent {
            return Err(LoadFault::Refused(miscounted(sent, written)));
        }
        if warnings == 0 && ignored == 0 {
            return Ok(Loaded {
                written,
                ignored: 0,
            });
        }
        let duplicates = match self.load.ignores && warnings < MAX_WARNINGS {
            true => self.duplicates().await?,
            false => None,
        };
        if duplicates == Some(ignored) {
            return Ok(Loaded { written, ignored });
        }
        Err(LoadFault::Refused(self.first_warning(sent, written).await?))
    }

    /// Returns the number of warnings, if each of them reports a key that exists already.
    async fn duplicates(&mut self) -> Result<Option<u64>, LoadFault> {
        let rows = self.session.rows("SHOW WARNINGS").await?;
        let duplicate = |row: &mysql_async::Row| get::<u32>(row, 1) == Some(DUPLICATE.into());
        Ok(rows.iter().all(duplicate).then_some(rows.len() as u64))
    }
}

#[async_trait]
impl Loader for MysqlLoader {
    async fn write(
        &mut self,
        contents: Contents<'_>,
        claim: Option<&Claim<'_>>,
    ) -> Result<Filtered, LoadFault> {
        self.check()?;
        let written = self.portion(contents, claim).await;
        self.finish(written).await
    }

    async fn close(self: Box<Self>) {
        self.session.close().await;
    }
}
