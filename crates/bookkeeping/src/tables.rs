//! Creates, upgrades, reads and cleans Windrow's own tables, in every database.

use std::time::Duration;

use windrow_core::bookkeeping::{OwnSession, OwnStatement, OwnTable, TableChange};
use windrow_core::{Bookkeeping, Fault};

use crate::dead_letter::KeptLetter;

/// The most attempts to create or change a table while other sessions do the same.
const MAX_ATTEMPTS: usize = 5;

/// Creates or upgrades the tables of a spool: progress, dead letters and idempotency keys. Several
/// processes may call this function at the same time. Cancel safe.
///
/// # Errors
/// The error of the database.
pub async fn prepare(tables: &dyn Bookkeeping) -> Result<(), Fault> {
    create_all(
        tables,
        &[OwnTable::Progress, OwnTable::Rejected, OwnTable::Keys],
    )
    .await
}

/// Creates the table of idempotency keys, as [`prepare`] does.
///
/// # Errors
/// The error of the database.
pub async fn prepare_keys(tables: &dyn Bookkeeping) -> Result<(), Fault> {
    create_all(tables, &[OwnTable::Keys]).await
}

/// Creates or upgrades these tables, as [`prepare`] does.
///
/// # Errors
/// The error of the database.
pub async fn create_all(tables: &dyn Bookkeeping, wanted: &[OwnTable]) -> Result<(), Fault> {
    let mut session = tables.open().await?;
    let mut created = Ok(());
    for table in wanted {
        created = create(&mut *session, *table).await;
        if created.is_err() {
            break;
        }
    }
    session.close().await;
    created
}

/// Deletes at most `most` parts of requests that were executed longer ago than `age`. Returns the
/// number of deleted parts; 0 if the table does not exist. Cancel safe.
///
/// # Errors
/// The error of the database.
pub async fn forget_keys(
    tables: &dyn Bookkeeping,
    age: Duration,
    most: usize,
) -> Result<u64, Fault> {
    let mut session = tables.open().await?;
    let forgotten = forget(&mut *session, age, most).await;
    session.close().await;
    forgotten
}

/// Returns at most `most` dead letters with numbers above `after`, in order; none if the table does
/// not exist. Cancel safe.
///
/// # Errors
/// The error of the database.
pub async fn dead_letters(
    tables: &dyn Bookkeeping,
    after: u64,
    most: usize,
) -> Result<Vec<KeptLetter>, Fault> {
    let mut session = tables.open().await?;
    let letters = read(&mut *session, after, most).await;
    session.close().await;
    letters
}

/// Returns the number of dead letters, at most `most`; 0 if the table does not exist. Cancel safe.
///
/// # Errors
/// The error of the database.
pub async fn count_dead_letters(tables: &dyn Bookkeeping, most: usize) -> Result<u64, Fault> {
    let mut session = tables.open().await?;
    let counted = count(&mut *session, most).await;
    session.close().await;
    counted
}

/// Creates a table unless it exists, and upgrades one that an older Windrow has created. The table
/// is read first, so that a role that may not create tables can use one that was created for it.
///
/// # Errors
/// The error of the database.
pub async fn create(session: &mut dyn OwnSession, table: OwnTable) -> Result<(), Fault> {
    for attempt in 1.. {
        let columns = session.columns(table).await?;
        let Some(statement) = missing(table, &columns) else {
            return Ok(());
        };
        match session.change(statement).await? {
            TableChange::Done if columns.is_empty() => return Ok(()),
            TableChange::Raced(fault) if attempt >= MAX_ATTEMPTS => return Err(fault),
            TableChange::Done | TableChange::Raced(_) => {}
        }
    }
    Ok(())
}

/// Returns the statement that brings a table with these columns closer to its current form.
fn missing(table: OwnTable, columns: &[String]) -> Option<OwnStatement<'static>> {
    let lacks = |name: &str| !columns.iter().any(|column| column == name);
    if columns.is_empty() {
        return Some(OwnStatement::Create(table));
    }
    match table {
        // The first versions had another name for the moment, and no entries.
        OwnTable::Rejected if lacks("rejected_at") => Some(OwnStatement::RenameMovedAt),
        OwnTable::Rejected if lacks("entry") => Some(OwnStatement::AddEntry),
        _ => None,
    }
}

async fn forget(session: &mut dyn OwnSession, age: Duration, most: usize) -> Result<u64, Fault> {
    if session.columns(OwnTable::Keys).await?.is_empty() {
        return Ok(0);
    }
    let answer = session.run(OwnStatement::ForgetKeys { age, most }).await?;
    Ok(answer.deleted)
}

async fn read(
    session: &mut dyn OwnSession,
    after: u64,
    most: usize,
) -> Result<Vec<KeptLetter>, Fault> {
    if session.columns(OwnTable::Rejected).await?.is_empty() {
        return Ok(Vec::new());
    }
    create(session, OwnTable::Rejected).await?;
    let after = after.min(i64::MAX.unsigned_abs());
    let answer = session.run(OwnStatement::ReadRejected { after, most });
    let rows = answer.await?.rows.into_iter();
    Ok(rows.map(KeptLetter::read).collect())
}

async fn count(session: &mut dyn OwnSession, most: usize) -> Result<u64, Fault> {
    if session.columns(OwnTable::Rejected).await?.is_empty() {
        return Ok(0);
    }
    let table = OwnTable::Rejected.name();
    let text = format!("SELECT count(*) FROM (SELECT 1 AS one FROM {table} LIMIT {most}) AS found");
    let answer = session.run(OwnStatement::Plain(&text)).await?;
    let cell = answer.rows.first().and_then(|row| row.first()?.as_deref());
    let digits = cell.and_then(|cell| std::str::from_utf8(cell).ok()?.parse().ok());
    digits.ok_or_else(|| Fault::internal("a count is not a number"))
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use windrow_core::bookkeeping::OwnAnswer;

    use super::*;

    /// A table that another session changes at the same time.
    struct Raced {
        columns: Vec<&'static str>,
        races: usize,
        changes: Vec<String>,
    }

    #[async_trait]
    impl OwnSession for Raced {
        async fn columns(&mut self, _: OwnTable) -> Result<Vec<String>, Fault> {
            Ok(self.columns.iter().map(|name| (*name).to_owned()).collect())
        }

        async fn change(&mut self, statement: OwnStatement<'_>) -> Result<TableChange, Fault> {
            self.changes.push(format!("{statement:?}"));
            if let Some(left) = self.races.checked_sub(1) {
                self.races = left;
                return Ok(TableChange::Raced(Fault::internal("raced")));
            }
            match statement {
                OwnStatement::RenameMovedAt => self.columns = vec!["id", "rejected_at"],
                _ => self.columns = vec!["id", "rejected_at", "entry"],
            }
            Ok(TableChange::Done)
        }

        async fn run(&mut self, _: OwnStatement<'_>) -> Result<OwnAnswer, Fault> {
            Ok(OwnAnswer::default())
        }
    }

    async fn changes(columns: Vec<&'static str>, races: usize) -> Vec<String> {
        let mut raced = Raced {
            columns,
            races,
            changes: Vec::new(),
        };
        let created = create(&mut raced, OwnTable::Rejected).await;
        assert_eq!(created.is_err(), races >= MAX_ATTEMPTS);
        raced.changes
    }

    #[tokio::test]
    async fn a_table_is_created_or_brought_up_to_date() {
        let (rename, entry) = ("RenameMovedAt", "AddEntry");
        assert_eq!(changes(vec![], 0).await, ["Create(Rejected)"]);
        assert_eq!(changes(vec!["id", "moved_at"], 0).await, [rename, entry]);
        assert_eq!(changes(vec!["id", "rejected_at"], 0).await, [entry]);
        let now = changes(vec!["rejected_at", "entry"], 0).await;
        assert!(now.is_empty(), "{now:?}");
        assert_eq!(changes(vec![], 2).await, ["Create(Rejected)"; 3]);
        assert_eq!(changes(vec![], 99).await.len(), MAX_ATTEMPTS);
    }
}
