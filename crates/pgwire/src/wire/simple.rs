//! Simple queries with few rows: catalog reads and DDL.

use postgres_protocol::message::frontend;

use super::answer::Answer;
use super::broken::Broken;
use super::connection::Wire;
use super::server_error::ServerError;

/// The rows of a simple query, as text; `None` is NULL.
pub type TextRows = Vec<Vec<Option<String>>>;

impl Wire {
    /// Runs a simple query and returns the rows of all its statements, for catalog reads and DDL.
    /// [`Wire::out`] must be empty. Bytes that are not UTF-8 (databases in SQL_ASCII) are
    /// replaced.
    ///
    /// **Not cancel safe**, as [`Wire::exchange`].
    ///
    /// # Errors
    /// The outer error is [`Broken`], the inner one that of the first failed statement.
    pub async fn simple(&mut self, sql: &str) -> Result<Result<TextRows, ServerError>, Broken> {
        if frontend::query(sql, &mut self.out).is_err() {
            self.clear_out();
            return Ok(Err(ServerError::own(
                "22021",
                "a statement cannot hold a zero byte or more than 1 GiB",
            )));
        }
        let mut rows = Vec::new();
        let mut failed = None;
        self.exchange(1, &mut |answer| match answer {
            Answer::DataRow(row) => rows.push(row.columns().map(text).collect()),
            Answer::Error(error) => failed = Some(error),
            _ => {}
        })
        .await?;
        Ok(failed.map_or(Ok(rows), Err))
    }

    /// Runs simple queries in one round trip, and returns the rows or the error of each. The
    /// conditions of [`Wire::simple`] apply. A text with a zero byte is not sent and returns no
    /// rows.
    ///
    /// # Errors
    /// [`Broken`].
    pub async fn simple_each(
        &mut self,
        all: impl Iterator<Item = &str>,
    ) -> Result<Vec<Result<TextRows, ServerError>>, Broken> {
        let mut count = 0;
        for sql in all {
            if frontend::query(sql, &mut self.out).is_err() {
                frontend::sync(&mut self.out);
            }
            count += 1;
        }
        let mut answers = Vec::with_capacity(count);
        let (mut rows, mut failed) = (TextRows::new(), None);
        self.exchange(count, &mut |answer| match answer {
            Answer::DataRow(row) => rows.push(row.columns().map(text).collect()),
            Answer::Error(error) => failed = Some(error),
            Answer::Ready(_) => {
                let rows = std::mem::take(&mut rows);
                answers.push(failed.take().map_or(Ok(rows), Err));
            }
            _ => {}
        })
        .await?;
        Ok(answers)
    }
}

fn text(column: Option<&[u8]>) -> Option<String> {
    column.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}
