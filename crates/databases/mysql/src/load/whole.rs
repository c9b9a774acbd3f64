//! A portion of which all rows are written, or none.

use windrow_core::{LoadFault, Loaded, Mark, Rows};

use super::connection::{MysqlLoader, write};
use super::fault::{miscounted, of_mark, of_trouble};
use crate::fault::DUPLICATE;
use crate::own_tables::insert_marks;
use crate::values::cell::get;

/// Warnings that a server tells of one statement at most.
const MOST_WARNINGS: u64 = 65_535;

impl MysqlLoader {
    /// Writes all rows, and their mark; commits nothing.
    pub(super) async fn write(
        &mut self,
        rows: &Rows,
        mark: Option<&Mark>,
    ) -> Result<Loaded, LoadFault> {
        self.open().await?;
        let loaded = self.rows(rows).await?;
        if let Some(mark) = mark {
            let sql = insert_marks(&mark.load, &[mark.span]);
            self.session.say(&sql).await.map_err(of_mark)?;
        }
        Ok(loaded)
    }

    async fn rows(&mut self, rows: &Rows) -> Result<Loaded, LoadFault> {
        if rows.is_empty() {
            return Ok(Loaded::default());
        }
        let load = &self.load;
        let (written, warnings) = write(&mut self.session, load, rows).await?;
        self.judge(rows.len() as u64, written, warnings).await
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
        let duplicates = match self.load.ignores && warnings < MOST_WARNINGS {
            true => self.duplicates().await?,
            false => None,
        };
        if duplicates == Some(ignored) {
            return Ok(Loaded { written, ignored });
        }
        Err(LoadFault::Refused(self.first_warning(sent, written).await?))
    }

    /// Returns the number of warnings, if each is about a key that exists already.
    async fn duplicates(&mut self) -> Result<Option<u64>, LoadFault> {
        let rows = self
            .session
            .rows("SHOW WARNINGS")
            .await
            .map_err(of_trouble)?;
        let duplicate = |row: &mysql_async::Row| get::<u32>(row, 1) == Some(DUPLICATE.into());
        Ok(rows.iter().all(duplicate).then_some(rows.len() as u64))
    }
}
