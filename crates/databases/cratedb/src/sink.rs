//! The sink: opens connections and holds the settings that they share.

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::sink::Purpose;
use windrow_core::{
    Database, Executor, Fault, Limitation, Name, Profile, Promise, Sink, TableName, Tally, Unit,
};
use windrow_database::Options;
use windrow_database::web::{Origin, Target, alive, connected};

use super::catalog::cache::Catalog;
use super::executor::connection::Connection;
use super::executor::key;
use super::executor::session::Session;

/// The abilities of CrateDB.
pub(super) const PROFILE: Profile = Profile {
    name: "CrateDB",
    transactional: false,
    flights: 8,
    batch_rows: 10_000,
    limitations: &[
        Limitation {
            promise: Promise::Returned,
            why: "A delete that asks for its row is refused.",
        },
        Limitation {
            promise: Promise::Atomic,
            why: "A unit of several writes is refused.",
        },
        Limitation {
            promise: Promise::Committed,
            why: "Reads, updates and deletes by columns other than the primary key see a write after the table's next refresh.",
        },
        Limitation {
            promise: Promise::Values,
            why: "A column that is created for decimals is a double, or text once a value needs more digits.",
        },
        Limitation {
            promise: Promise::Unique,
            why: "There are no others.",
        },
        Limitation {
            promise: Promise::ForeignKeys,
            why: "There are none.",
        },
    ],
};

/// A CrateDB cluster.
pub(super) struct CrateSink {
    origin: Arc<Origin>,
    schema: Option<String>,
    options: Options,
    catalog: Arc<Catalog>,
}

impl CrateSink {
    /// Returns a sink for a URL.
    ///
    /// # Errors
    /// The URL is invalid.
    pub(super) fn new(target: Target, options: &Options) -> Result<Self, Fault> {
        let schema = match target.path.as_slice() {
            [] => None,
            [schema] => Some(schema.clone()),
            _ => {
                return Err(Fault::invalid(
                    "the path of a URL of CrateDB is a schema, one name",
                ));
            }
        };
        let origin = Origin::new(target, PROFILE.name, options.connect_timeout)?;
        Ok(Self {
            origin: Arc::new(origin),
            schema,
            options: options.clone(),
            catalog: Arc::default(),
        })
    }

    /// Returns a session that was opened within the time limit.
    async fn connected(&self) -> Result<Session, Fault> {
        connected(&self.origin, self.options.connect_timeout, self.session()).await
    }

    async fn session(&self) -> Result<Session, Fault> {
        let mut session = Session::new(self.origin.clone(), self.schema.as_deref())?;
        session.greet().await?;
        Ok(session)
    }
}

#[async_trait]
impl Sink for CrateSink {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    // No connection waits for a lock of another, because there are no locks.
    async fn connect(&self, _purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
        let session = self.connected().await?;
        let connection = Connection::new(session, self.catalog.clone(), &self.options);
        Ok(Box::new(connection))
    }

    fn touches(&self, unit: &Unit, hashes: &mut Vec<u64>) {
        for write in unit.writes() {
            if let Some(table) = self.catalog.get(&write.shape.table) {
                let places = key::places(&write.shape, &table);
                hashes.extend(key::find(&table, &places, write.row()).hash(&table));
            }
        }
    }
}

#[async_trait]
impl Database for CrateSink {
    async fn ping(&self) -> Result<(), Fault> {
        alive(&self.origin, self.session()).await
    }

    async fn primary_key(&self, table: &TableName) -> Result<Box<[Name]>, Fault> {
        let known = match self.catalog.fresh(table) {
            Some(known) => Some(known),
            None => {
                let mut session = self.connected().await?;
                let whole = session.whole_name(table);
                let facts = session.read(&whole, &mut Tally::default()).await?;
                self.catalog.put(table, facts)
            }
        };
        let key = known.as_ref().map(|table| table.key());
        let names = key.into_iter().flatten().map(|column| column.name.clone());
        Ok(names.collect())
    }
}
