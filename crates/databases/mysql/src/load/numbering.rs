//! Finds out which number the server gives a row of a file in its warnings.
//!
//! MariaDB 10.11 does not count rows that a CHECK refuses (`sql_load.cc` skips them where it counts
//! rows, and LOAD DATA's own message is too low by as many). As this is not documented, it is
//! tested on a temporary table.

use bytes::Bytes;
use windrow_core::TableName;
use windrow_database::quote::backtick::push_table;

use super::feed;
use super::warnings;
use super::warnings::Warning;
use crate::fault::Trouble;
use crate::session::Session;

/// The number that a row has in a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbering {
    /// The row's place in the file.
    All,
    /// The row's place among the rows that no CHECK refuses. A refused row has the number of the
    /// next one.
    NotChecked,
    /// Unknown: nothing can be concluded about rows that follow one that a CHECK refuses.
    Unknown,
}

/// The error of a row that a CHECK refuses (MariaDB).
pub(super) const CHECK: u32 = 4025;

/// Tests the numbering with a temporary table of this name, outside of transactions.
///
/// # Errors
/// The table cannot be created, or the connection is lost.
pub(super) async fn find(session: &mut Session, table: &TableName) -> Result<Numbering, Trouble> {
    if !session.server.numbers_rows {
        return Ok(Numbering::Unknown);
    }
    let mut name = String::new();
    push_table(&mut name, table);
    session
        .say(&format!(
            "CREATE TEMPORARY TABLE {name} (n INT CHECK (n > 0)) ENGINE = Aria TRANSACTIONAL = 0"
        ))
        .await?;
    let (file, contents) = feed::file();
    // A row that the CHECK refuses, and one whose value is changed. The channel has room for both.
    file.try_send(Bytes::from_static(b"0\n1x\n")).ok();
    drop(file);
    let load =
        format!("LOAD DATA LOCAL INFILE 'windrow' INTO TABLE {name} LINES TERMINATED BY X'0A' (n)");
    let (_, count) = session.load(&load, contents).await?;
    let warnings = warnings::read(session, count).await?;
    session.say(&format!("DROP TEMPORARY TABLE {name}")).await?;
    Ok(warnings.map_or(Numbering::Unknown, |warnings| of(&warnings)))
}

fn of(warnings: &[Warning]) -> Numbering {
    let numbers: Vec<_> = warnings.iter().map(|warning| warning.row).collect();
    match (
        warnings.first().map(|warning| warning.number),
        numbers.as_slice(),
    ) {
        (Some(CHECK), [Some(1), Some(2)]) => Numbering::All,
        (Some(CHECK), [Some(1), Some(1)]) => Numbering::NotChecked,
        _ => Numbering::Unknown,
    }
}
