//! A connection, and the state of its database between batches.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use rusqlite::Connection;
use windrow_core::{Fault, Report, Shape, TableName, Verdict};
use windrow_database::Options;

use super::moments::Moments;
use super::plan::{Plan, Plans};
use super::send::UnitRunner;
use super::settle::Batch;
use super::sql::{NoPlan, TableRules};
use crate::catalog::cache::Catalog;
use crate::catalog::standings::Standings;
use crate::catalog::table::Table;
use crate::connection;
use crate::connection::Opener;
use crate::identity::Identity;
use crate::location::Location;
use crate::values::packed::Packed;

/// A connection, with the descriptions and plans of its database.
#[derive(Debug)]
pub(crate) struct Session {
    connection: Connection,
    catalog: Catalog,
    plans: Plans,
    moments: Moments,
    rules: TableRules,
    opener: Option<Opener>,
    file: Option<Identity>,
}

impl Session {
    /// Wraps a connection.
    pub(crate) fn new(connection: Connection, rules: TableRules) -> Self {
        Self {
            connection,
            catalog: Catalog::default(),
            plans: Plans::default(),
            moments: Moments::default(),
            rules,
            opener: None,
            file: None,
        }
    }

    /// Opens a session. It reports to `standings` which of its tables share transactions.
    pub(crate) fn open(
        location: &Location,
        options: &Options,
        standings: &Arc<Standings>,
    ) -> Result<Self, Fault> {
        let connection = connection::open(location, options)?;
        let opener = || Opener {
            location: location.clone(),
            options: options.clone(),
        };
        let file = match location {
            Location::File { path, .. } => Some(Identity::of(path)),
            Location::Memory => None,
        };
        let rules = TableRules {
            create: options.create_tables,
            extend: options.extend_tables,
            exact: options.exact_names,
        };
        Ok(Self {
            catalog: Catalog::telling(standings.clone(), options.received_at.clone()),
            opener: file.is_some().then(opener),
            file,
            ..Self::new(connection, rules)
        })
    }

    /// Checks that the path still names the same file.
    ///
    /// # Errors
    /// Those of [`Identity::check`].
    pub(crate) fn check_file(&self) -> Result<(), Fault> {
        self.file.as_ref().map_or(Ok(()), Identity::check)
    }

    /// Returns the connection.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Returns true if missing tables and columns are created.
    pub(crate) fn creates(&self) -> bool {
        self.rules.create
    }

    /// Returns the connection, and drops everything else.
    pub(crate) fn into_connection(self) -> Connection {
        self.connection
    }

    /// Drops plans and statements if the schema has changed.
    pub(crate) fn renew(&mut self) -> rusqlite::Result<()> {
        if self.catalog.refresh(&self.connection)? {
            self.plans.clear();
            self.connection.flush_prepared_statement_cache();
        }
        Ok(())
    }

    /// Returns the table of that name, as of the last [`Session::renew`].
    pub(crate) fn table(&mut self, name: &TableName) -> rusqlite::Result<Option<Arc<Table>>> {
        self.catalog.table(&self.connection, name)
    }

    /// Returns the plan of a shape.
    pub(crate) fn plan(
        &mut self,
        shape: &Arc<Shape>,
    ) -> rusqlite::Result<Result<Arc<Plan>, NoPlan>> {
        let table = self.catalog.table(&self.connection, &shape.table)?;
        Ok(self.plans.plan(shape, table.as_deref(), self.rules))
    }

    /// Executes a batch.
    pub(crate) fn execute(&mut self, packed: &Packed) -> Report {
        let started = Instant::now();
        let runner = UnitRunner::new(
            &self.connection,
            &mut self.catalog,
            &mut self.plans,
            &mut self.moments,
            (packed, self.rules),
        );
        let mut report = Batch::new(runner, self.opener.as_ref()).execute();
        report.tally.in_database = started.elapsed();
        match self.check_file() {
            Ok(()) => report,
            Err(fault) => Report::broken(packed.units(), &Verdict::Final(Err(fault.into()))),
        }
    }
}
