//! Writes rows as the text of INSERT statements, for servers that do not allow LOAD DATA LOCAL.
//!
//! If the server refuses one row, the whole portion fails. A portion with a warning is refused too:
//! then each row is written by itself.

use windrow_core::{Fault, LoadFault, Rows};

use super::plan::Load;
use crate::session::Session;

/// The bytes of a statement, if the server's longest packet allows them. A single row may be
/// longer.
const STATEMENT_BYTES: usize = 512 << 10;

/// Writes all rows. Returns the number of rows that were written, and of warnings.
///
/// # Errors
/// A value cannot be written, or the server refuses a row; the connection is lost.
pub(super) async fn write(
    session: &mut Session,
    load: &Load,
    rows: &Rows,
) -> Result<(u64, u64), LoadFault> {
    if rows.columns() != load.width() {
        let why = "a portion has another number of columns than its load";
        return Err(LoadFault::Hopeless(Fault::internal(why)));
    }
    let most = STATEMENT_BYTES.min(session.server.packet / 2);
    let (mut written, mut warnings) = (0, 0);
    let mut fields = rows.fields();
    let mut sql = load.sql.clone();
    for row in 1..=rows.len() {
        load.push_values(&mut fields, &mut sql)
            .map_err(LoadFault::Refused)?;
        if row < rows.len() && sql.len() < most {
            sql.push_str(", ");
            continue;
        }
        let said = session.write(&sql).await?;
        (written, warnings) = (written + said.0, warnings + said.1);
        sql.truncate(load.sql.len());
    }
    Ok((written, warnings))
}
