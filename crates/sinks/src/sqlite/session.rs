//! A connection and what is known of its database between batches.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use foldhash::fast::FixedState;
use rusqlite::Connection;
use windrow_core::{Fault, Report, Shape, TableName, Verdict};

use super::batch::Batch;
use super::catalog::{Catalog, Table};
use super::connection;
use super::identity::Identity;
use super::location::Location;
use super::packed::Packed;
use super::standings::Standings;
use super::statement::{self, Manner, Plan, Refusal};
use super::unit::Hands;
use crate::options::Options;

/// Shapes whose plans are kept; past it they are made anew.
const PLANS: usize = 1024;

/// A connection and what is known of its database.
#[derive(Debug)]
pub(super) struct Session {
    connection: Connection,
    catalog: Catalog,
    plans: Plans,
    manner: Manner,
    home: Option<Home>,
    file: Option<Identity>,
}

/// Where connections to the same database are opened.
#[derive(Debug)]
pub(super) struct Home {
    location: Location,
    options: Options,
}

impl Home {
    /// Opens another connection.
    pub(super) fn open(&self) -> Result<Connection, Fault> {
        connection::open(&self.location, &self.options)
    }
}

impl Session {
    pub(super) fn new(connection: Connection, manner: Manner) -> Self {
        Self {
            connection,
            catalog: Catalog::default(),
            plans: Plans::default(),
            manner,
            home: None,
            file: None,
        }
    }

    /// The session of a database that can be opened once more, which tells what it finds of its
    /// tables.
    pub(super) fn open(
        location: &Location,
        options: &Options,
        standings: &Arc<Standings>,
    ) -> Result<Self, Fault> {
        let connection = connection::open(location, options)?;
        let home = || Home {
            location: location.clone(),
            options: options.clone(),
        };
        let file = match location {
            Location::File { path, .. } => Some(Identity::of(path)),
            Location::Memory => None,
        };
        let manner = Manner {
            create: options.create_tables,
            exact: options.exact_names,
        };
        Ok(Self {
            catalog: Catalog::telling(standings.clone()),
            home: file.is_some().then(home),
            file,
            ..Self::new(connection, manner)
        })
    }

    /// Looks whether the file is still the one that its path names.
    ///
    /// # Errors
    /// Those of [`Identity::check`].
    pub(super) fn check_file(&self) -> Result<(), Fault> {
        self.file.as_ref().map_or(Ok(()), Identity::check)
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// True where tables and columns that are missing are made.
    pub(super) fn creates(&self) -> bool {
        self.manner.create
    }

    pub(super) fn into_connection(self) -> Connection {
        self.connection
    }

    /// Looks whether the schema has changed, and forgets what was made for another one.
    pub(super) fn renew(&mut self) -> rusqlite::Result<()> {
        if self.catalog.refresh(&self.connection)? {
            self.plans.clear();
            self.connection.flush_prepared_statement_cache();
        }
        Ok(())
    }

    /// The table of that name, as it was when [`Session::renew`] looked.
    pub(super) fn table(&mut self, name: &TableName) -> rusqlite::Result<Option<Arc<Table>>> {
        self.catalog.table(&self.connection, name)
    }

    /// The plan of a shape.
    pub(super) fn plan(
        &mut self,
        shape: &Arc<Shape>,
    ) -> rusqlite::Result<Result<Arc<Plan>, Refusal>> {
        let table = self.catalog.table(&self.connection, &shape.table)?;
        Ok(self.plans.plan(shape, table.as_deref(), self.manner))
    }

    /// Executes a batch.
    pub(super) fn execute(&mut self, packed: &Packed) -> Report {
        let started = Instant::now();
        let hands = Hands::new(
            &self.connection,
            &mut self.catalog,
            &mut self.plans,
            packed,
            self.manner,
        );
        let mut report = Batch::new(hands, self.home.as_ref()).execute();
        report.tally.in_database = started.elapsed();
        match self.check_file() {
            Ok(()) => report,
            Err(fault) => Report::broken(packed.units(), &Verdict::Told(Err(fault.into()))),
        }
    }
}

/// The plans of the shapes met since the schema last changed.
#[derive(Debug, Default)]
pub(super) struct Plans(HashMap<Arc<Shape>, Arc<Plan>, FixedState>);

impl Plans {
    pub(super) fn plan(
        &mut self,
        shape: &Arc<Shape>,
        table: Option<&Table>,
        manner: Manner,
    ) -> Result<Arc<Plan>, Refusal> {
        if let Some(plan) = self.0.get(shape) {
            return Ok(plan.clone());
        }
        let plan = Arc::new(statement::plan(shape, table, manner)?);
        if self.0.len() >= PLANS {
            self.0.clear();
        }
        self.0.insert(shape.clone(), plan.clone());
        Ok(plan)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests;
