//! Server connections for statements that are not joined.
//!
//! A session has one for as long as it needs it. The next session gets it in the state that it
//! expects, with as few round trips as possible:
//!
//! | | round trips |
//! | --- | --- |
//! | taken, by a session with the settings that the connection has already (the usual case) | 0 |
//! | taken, otherwise: all SET and RESET together | 1 |
//! | given back | 0 or 1, as [`Leftover`] says |

mod database;
mod idle;
mod loan;
mod names;
mod probe;
mod reports;
mod state;
mod take;
#[cfg(test)]
mod tests;
mod who;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use windrow_core::{Fault, FaultClass, Name};

use crate::cache::Cache;
use crate::config::PgConfig;
use crate::metrics::PgMetrics;

use database::Database;
pub(crate) use database::ServerLine;
pub(crate) use loan::{GivenBack, Leftover, Loan};
pub(crate) use names::{NOWHERE, Names, PASSING, StatementKey};
pub(crate) use probe::{DRAWN, Drawn};
pub(crate) use reports::Report;
use reports::Reports;
pub(crate) use state::{emptied, lasts, literal};
pub(crate) use who::Who;

/// The time for which clients get a report without asking a server connection. Every new server
/// connection renews its report.
const MAX_REPORT_AGE: Duration = Duration::from_secs(60);

/// The most reports kept.
const MAX_REPORTS: usize = 4096;

/// Server connections for statements that are not joined.
pub(crate) struct Pool {
    databases: HashMap<Name, Arc<Database>>,
    reports: Arc<Reports>,
}

impl Pool {
    /// Returns a pool for the configured databases.
    pub(crate) fn new(config: &PgConfig, metrics: &PgMetrics) -> Self {
        let reports = Arc::new(Cache::new(MAX_REPORTS, MAX_REPORT_AGE));
        let databases = config.databases.iter().map(|database| {
            let opened = Database::new(database, config, metrics, Arc::clone(&reports));
            (Name::from(&*database.name), opened)
        });
        Self {
            databases: databases.collect(),
            reports,
        }
    }

    /// Takes a server connection in exactly the state that `who` describes. Waiting sessions are
    /// served in the order of asking. Cancel safe.
    ///
    /// # Errors
    /// The server's refusal, verbatim if there is one; [`FaultClass::Unavailable`] if it cannot be
    /// reached; [`FaultClass::Overloaded`] (53300) if none became free in time;
    /// [`FaultClass::Invalid`] (3D000) for a database that is not configured.
    pub(crate) async fn take(&self, who: &Who) -> Result<Loan, Fault> {
        self.database(who)?.take(who).await
    }

    fn database(&self, who: &Who) -> Result<&Arc<Database>, Fault> {
        let name = &who.identity.database;
        self.databases.get(name).ok_or_else(|| {
            let text = format!("database \"{name}\" does not exist");
            Fault::new(FaultClass::Invalid, "3D000", text)
        })
    }

    /// Returns the report for new sessions of `who`, which also shows that the server knows role
    /// and database. Cancel safe.
    ///
    /// # Errors
    /// Those of [`Pool::take`].
    pub(crate) async fn report(&self, who: &Who) -> Result<Arc<Report>, Fault> {
        let (identity, settings) = (who.identity.clone(), who.settings.at_start());
        let key = (identity.clone(), settings.clone());
        let ask = async |older: bool| {
            let newcomer = Who {
                settings: settings.clone(),
                ..who.clone()
            };
            // A client does not wait for other sessions only to get a report that is known already.
            let loan = match older {
                true => self.database(&newcomer)?.take_now(&newcomer).await?,
                false => self.take(&newcomer).await?,
            };
            let report = Report::of(identity, settings.clone(), &loan.wire);
            loan.give_back(&settings, Leftover::Nothing, &[]).await;
            Ok(Arc::new(report))
        };
        self.reports.get(&key, ask).await
    }

    /// Opens and closes a connection, to see if the server admits the role.
    ///
    /// # Errors
    /// The server's refusal, verbatim.
    pub(crate) async fn try_connect(&self, who: &Who) -> Result<(), Fault> {
        self.database(who)?.try_connect(who).await
    }

    /// Gives the existing connections to this database to no other session: those in use are closed
    /// when they are given back.
    pub(crate) fn retire(&self, database: &Name) {
        if let Some(database) = self.databases.get(database) {
            database.retire();
        }
    }

    /// Drops the connections and reports of a database of which a login was revoked.
    pub(crate) fn revoke(&self, database: &Name) {
        self.retire(database);
        self.reports.clear();
    }

    /// Closes idle connections to this database, including those of its lanes.
    pub(crate) fn clear(&self, database: &Name) {
        if let Some(database) = self.databases.get(database) {
            database.clear();
        }
    }

    /// Closes connections that no session has used for long, and those that the server has ended.
    pub(crate) async fn sweep(&self) {
        for database in self.databases.values() {
            database.sweep().await;
        }
    }

    /// Closes all connections that no session uses.
    pub(crate) async fn close(&self) {
        for database in self.databases.values() {
            database.close().await;
        }
    }

    /// Returns the lines for the console, one for each database and role.
    pub(crate) fn lines(&self) -> Vec<ServerLine> {
        let mut lines: Vec<_> = self
            .databases
            .values()
            .flat_map(|database| database.lines())
            .collect();
        lines.sort_by(|a, b| (&a.database, &a.role).cmp(&(&b.database, &b.role)));
        lines
    }
}
