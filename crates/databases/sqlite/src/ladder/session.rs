//! A connection and what is known of its database between batches.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use rusqlite::Connection;
use windrow_core::{Fault, Report, RowDone, Shape, TableName, Verdict};
use windrow_database::Options;

use super::moments::Moments;
use super::plan::{Plan, Refusal, TableRules};
use super::plans::Plans;
use super::send::UnitRunner;
use super::settle::Batch;
use crate::catalog::cache::Catalog;
use crate::catalog::standings::Standings;
use crate::catalog::table::Table;
use crate::connection;
use crate::connection::Opener;
use crate::identity::Identity;
use crate::location::Location;
use crate::values::packed::Packed;

/// A connection and what is known of its database.
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

    /// The session of a database that can be opened once more, which tells what it finds of its
    /// tables.
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
            catalog: Catalog::telling(standings.clone()),
            opener: file.is_some().then(opener),
            file,
            ..Self::new(connection, rules)
        })
    }

    /// Looks whether the file is still the one that its path names.
    ///
    /// # Errors
    /// Those of [`Identity::check`].
    pub(crate) fn check_file(&self) -> Result<(), Fault> {
        self.file.as_ref().map_or(Ok(()), Identity::check)
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// True where tables and columns that are missing are made.
    pub(crate) fn creates(&self) -> bool {
        self.rules.create
    }

    pub(crate) fn into_connection(self) -> Connection {
        self.connection
    }

    /// Looks whether the schema has changed, and forgets what was made for another one.
    pub(crate) fn renew(&mut self) -> rusqlite::Result<()> {
        if self.catalog.refresh(&self.connection)? {
            self.plans.clear();
            self.connection.flush_prepared_statement_cache();
        }
        Ok(())
    }

    /// The table of that name, as it was when [`Session::renew`] looked.
    pub(crate) fn table(&mut self, name: &TableName) -> rusqlite::Result<Option<Arc<Table>>> {
        self.catalog.table(&self.connection, name)
    }

    /// The plan of a shape.
    pub(crate) fn plan(
        &mut self,
        shape: &Arc<Shape>,
    ) -> rusqlite::Result<Result<Arc<Plan>, Refusal>> {
        let table = self.catalog.table(&self.connection, &shape.table)?;
        Ok(self.plans.plan(shape, table.as_deref(), self.rules))
    }

    /// Executes a batch.
    pub(crate) fn execute(&mut self, packed: &Packed) -> Report<RowDone> {
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
