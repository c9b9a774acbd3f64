//! Windrow's own tables for a database without transactions: in a file in the spool's directory.

use std::path::Path;
use std::sync::Arc;

use windrow_core::{Database, Fault};
use windrow_database::Options;
use windrow_drain::Beside;

use crate::databases;

/// The file, which is an SQLite database.
const BOOKS: &str = "books.db";

/// Gives a database without transactions the tables that a spool needs, in the spool's directory.
/// Unless `makes` is set, the file must exist.
///
/// # Errors
/// The file cannot be opened, or this build does not contain SQLite.
pub(crate) async fn beside(
    database: &Arc<dyn Database>,
    directory: &Path,
    makes: bool,
) -> Result<Arc<dyn Database>, Fault> {
    let file = directory.join(BOOKS);
    let name = database.profile().name;
    let told = |mut fault: Fault| {
        let message = format!(
            "{name} has no transactions, so how far the spool has come is kept in {}, which cannot \
             be opened: {}",
            file.display(),
            fault.message
        );
        fault.message = message.into();
        fault
    };
    let path = file.to_str().filter(|path| !path.contains('?'));
    let path = path.ok_or_else(|| {
        told(Fault::invalid(
            "the path holds a question mark or what is no text; choose another directory",
        ))
    })?;
    let mode = if makes { "rwc" } else { "rw" };
    let url = format!("sqlite://{path}?mode={mode}");
    let books = databases::open(&url, &Options::default()).await;
    let books = books.map_err(told)?;
    Ok(Arc::new(Beside::new(Arc::clone(database), books)))
}
