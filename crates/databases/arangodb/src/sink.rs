//! The sink: opens connections and holds the settings that they share.

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::sink::Purpose;
use windrow_core::{
    Database, Executor, Fault, Limitation, Name, Op, Profile, Promise, Secret, Sink, TableName,
    Unit,
};
use windrow_database::Options;
use windrow_database::web::{Origin, Target, alive, connected};

use super::executor::connection::Connection;
use super::executor::plan::{KEY, hash};
use super::executor::session::{Identity, Session};
use super::values::encode;

/// The name of the database that every server has.
const SYSTEM: &str = "_system";

/// The abilities of ArangoDB.
pub(super) const PROFILE: Profile = Profile {
    name: "ArangoDB",
    transactional: false,
    flights: 8,
    batch_rows: 10_000,
    limitations: &[
        Limitation {
            promise: Promise::Atomic,
            why: "A unit of several writes is refused.",
        },
        Limitation {
            promise: Promise::Committed,
            why: "Unless the collection has waitForSync, a loss of power may lose answered writes.",
        },
        Limitation {
            promise: Promise::Values,
            why: "Numbers are doubles or whole numbers of 64 bits: one with more digits is refused, within JSON values rounded.",
        },
        Limitation {
            promise: Promise::ForeignKeys,
            why: "There are none.",
        },
    ],
};

/// A database of an ArangoDB server or cluster.
pub(super) struct ArangoSink {
    origin: Arc<Origin>,
    identity: Identity,
    database: Arc<str>,
    options: Options,
}

impl ArangoSink {
    /// Returns a sink for a URL.
    ///
    /// # Errors
    /// The URL is invalid.
    pub(super) fn new(mut target: Target, options: &Options) -> Result<Self, Fault> {
        let database = match target.path.as_slice() {
            [] => Arc::from(SYSTEM),
            [database] => Arc::from(&**database),
            _ => {
                return Err(Fault::invalid(
                    "the path of a URL of ArangoDB is a database, one name",
                ));
            }
        };
        let identity = match (
            target.take("token"),
            target.take("auth").as_ref().map(Secret::reveal),
        ) {
            (Some(token), None) => Identity::Token(token),
            (None, None | Some("basic")) => Identity::Basic,
            (None, Some("jwt")) => Identity::Session,
            _ => {
                return Err(Fault::invalid(
                    "the URL's auth is basic or jwt, or else it has a token",
                ));
            }
        };
        target.finish(", auth, token")?;
        let origin = Origin::new(target, PROFILE.name, options.connect_timeout)?;
        Ok(Self {
            origin: Arc::new(origin),
            identity,
            database,
            options: options.clone(),
        })
    }

    async fn connection(&self) -> Result<Connection, Fault> {
        let limit = self.options.connect_timeout;
        let session = connected(&self.origin, limit, self.session()).await?;
        Ok(Connection::new(session, self.options.create_tables))
    }

    async fn session(&self) -> Result<Session, Fault> {
        let (identity, database) = (self.identity.clone(), self.database.clone());
        let mut session = Session::new(self.origin.clone(), identity, database);
        session.greet().await?;
        Ok(session)
    }
}

#[async_trait]
impl Sink for ArangoSink {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    // A document that another session writes is a conflict at once, so no write waits for a lock.
    async fn connect(&self, _purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
        Ok(Box::new(self.connection().await?))
    }

    fn touches(&self, unit: &Unit, hashes: &mut Vec<u64>) {
        for write in unit.writes() {
            let shape = &write.shape;
            let place = match shape.op {
                Op::Insert => shape.columns.iter().position(|column| &**column == KEY),
                _ => Some(shape.columns.len()),
            };
            let key = place
                .and_then(|place| write.row().get(place))
                .and_then(encode::key);
            hashes.extend(key.map(|key| hash(&shape.table.table, &key)));
        }
    }
}

#[async_trait]
impl Database for ArangoSink {
    async fn ping(&self) -> Result<(), Fault> {
        alive(&self.origin, self.session()).await
    }

    async fn connect_durably(&self) -> Result<Box<dyn Executor>, Fault> {
        Ok(Box::new(self.connection().await?.synced()))
    }

    async fn primary_key(&self, _table: &TableName) -> Result<Box<[Name]>, Fault> {
        Ok([Name::from(KEY)].into())
    }

    /// Returns true for system collections, which hold users, queues, graphs and the code of
    /// services (ArangoDB's documentation, "System collections").
    fn owns(&self, table: &TableName) -> bool {
        table.table.starts_with('_')
    }
}
