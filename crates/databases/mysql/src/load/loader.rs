//! A portion: one transaction.

use async_trait::async_trait;
use windrow_core::{Claim, Filtered, LoadFault, Loaded, Loader, Mark, Rows};

use super::connection::MysqlLoader;
use crate::fault::{Scope, Trouble, unavailable, unknown};

impl MysqlLoader {
    /// The connection can be used.
    fn check(&self) -> Result<(), LoadFault> {
        if self.session.is_usable() {
            return Ok(());
        }
        let why = "it had ended before";
        Err(LoadFault::Again(unavailable(why)))
    }

    /// Commits what was written, or undoes it.
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
                // Another node of a cluster was faster, or a lock: certainly rolled back.
                Scope::Transaction | Scope::Lock => LoadFault::Again(refusal.fault),
                Scope::Statement | Scope::Connection => {
                    LoadFault::Unknown(unknown(&refusal.fault.message))
                }
            }),
        }
    }
}

#[async_trait]
impl Loader for MysqlLoader {
    async fn load(&mut self, rows: &Rows, mark: Option<&Mark>) -> Result<Loaded, LoadFault> {
        self.check()?;
        let written = self.write(rows, mark).await;
        self.finish(written).await
    }

    async fn filter(
        &mut self,
        rows: &Rows,
        claim: Option<&Claim<'_>>,
    ) -> Result<Filtered, LoadFault> {
        self.check()?;
        let written = self.write_filtered(rows, claim).await;
        self.finish(written).await
    }

    async fn close(self: Box<Self>) {
        self.session.close().await;
    }
}
