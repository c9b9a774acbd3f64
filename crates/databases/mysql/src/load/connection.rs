//! A connection that loads rows, and the steps that all portions need.

use windrow_core::{Fault, FaultClass, LoadFault, Rows};

use super::fault::miscounted;
use super::feed;
use super::insert;
use super::plan::{Load, Way};
use super::probe::Probe;
use super::selection::Selection;
use crate::catalog::guard;
use crate::session::Session;
use crate::values::cell::get;

/// A connection that loads.
#[derive(Debug)]
pub(super) struct MysqlLoader {
    pub(super) session: Session,
    pub(super) load: Load,
    pub(super) probe: Probe,
}

impl MysqlLoader {
    pub(super) fn new(session: Session, load: Load) -> Self {
        let probe = Probe::new();
        Self {
            session,
            load,
            probe,
        }
    }

    /// Opens the transaction and checks that the table is as it was described.
    pub(super) async fn open(&mut self) -> Result<(), LoadFault> {
        let (seen, ended) = self.session.looks(&self.load.open).await;
        ended?;
        if guard::holds(&self.load.print, &seen) {
            return Ok(());
        }
        let message = format!("table {} was altered", self.load.table);
        Err(LoadFault::Again(Fault::new(
            FaultClass::Conflict,
            "55006",
            message,
        )))
    }

    /// Returns the first warning of the last statement, as a fault.
    pub(super) async fn first_warning(
        &mut self,
        sent: u64,
        written: u64,
    ) -> Result<Fault, LoadFault> {
        let sql = "SHOW WARNINGS LIMIT 1";
        let rows = self.session.rows(sql).await?;
        let warning = rows.first().and_then(|row| get::<String>(row, 2));
        Ok(match warning {
            Some(warning) => Fault::new(FaultClass::Other, "01000", warning),
            None => miscounted(sent, written),
        })
    }
}

/// Writes all rows by the statement of the load. Returns the number of rows that were written, and
/// of warnings.
pub(super) async fn write(
    session: &mut Session,
    load: &Load,
    rows: &Rows,
) -> Result<(u64, u64), LoadFault> {
    match load.way {
        Way::File => send(session, load, &load.sql, rows, None).await,
        Way::Insert => insert::write(session, load, rows).await,
    }
}

/// Executes a LOAD DATA whose file consists of these rows, or of the selected ones. Returns the
/// number of rows that were written, and of warnings.
pub(super) async fn send(
    session: &mut Session,
    load: &Load,
    sql: &str,
    rows: &Rows,
    mut selection: Option<&mut Selection>,
) -> Result<(u64, u64), LoadFault> {
    if rows.columns() != load.width() {
        let why = "a portion has another number of columns than its load";
        return Err(LoadFault::Hopeless(Fault::internal(why)));
    }
    if let Some(selection) = &mut selection {
        selection.begin();
    }
    let (file, contents) = feed::file();
    let (said, fed) = {
        let mut loading = std::pin::pin!(session.load(sql, contents));
        let mut feeding = std::pin::pin!(feed::write(rows, load, selection, file));
        // If the statement ends before it has read everything, its own error is the reason.
        tokio::select! {
            biased;
            said = &mut loading => (said, Ok(())),
            fed = &mut feeding => (loading.await, fed),
        }
    };
    let answer = said?;
    fed.map_err(LoadFault::Refused)?;
    Ok(answer)
}
