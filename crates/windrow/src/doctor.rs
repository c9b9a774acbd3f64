//! Windrow's view of a database: which tables' writes are joined, which not and why.
//! Nothing is written.
//!
//! ```no_run
//! # async fn example() -> Result<(), windrow::Fault> {
//! let seen = windrow::doctor::look("postgres://app@localhost/shop", 100).await?;
//! for standing in &seen.standings {
//!     println!("{}: {:?}", standing.table, standing.level);
//! }
//! # Ok(()) }
//! ```

use std::sync::Arc;

use prometheus_client::registry::Registry;
use windrow_core::apart::Apart;
use windrow_core::bookkeeping::OwnTable;
use windrow_core::shape::ShapeParts;
use windrow_core::{
    Budget, Database, Fault, Intake, Key, KeyedTable, Limits, Name, OnConflict, Op, Profile,
    Returning, Secret, Shape, Standing, TableName, Unit, Value, Write,
};
use windrow_database::Options;
use windrow_database::named_key::NO_SUCH_KEY;
use windrow_lanes::{Lane, LaneMetrics};

use crate::databases;
use crate::lanes::LANE_CAPACITY;
use crate::writer::DEFAULT_MEMORY;

/// The description of a database.
#[derive(Debug)]
pub struct Seen {
    /// The database's profile.
    pub profile: Profile,
    /// The number of its tables; `None` if the database cannot tell it.
    pub tables: Option<usize>,
    /// The standings of the first tables: with what the writes of each are joined.
    pub standings: Vec<Standing>,
    /// The standings of MySQL clients' statements on the first tables; empty for other databases.
    pub client_standings: Vec<ClientStatements>,
    /// Tables that could not be described, with the reason.
    pub unseen: Vec<(TableName, Fault)>,
}

/// Single-row statements of MySQL clients on a table that are joined or relayed alike.
#[derive(Debug)]
pub struct ClientStatements {
    /// The table.
    pub table: TableName,
    /// The statements, such as `REPLACE`.
    pub statements: Vec<&'static str>,
    /// The reason why the statements are relayed; `None` if they are joined.
    pub why: Option<Apart>,
}

/// Describes the first `most` tables of a database. Cancel safe.
///
/// # Errors
/// The URL is invalid; the database cannot be reached, or refuses.
pub async fn look(url: impl Into<Secret>, most: usize) -> Result<Seen, Fault> {
    let url = url.into();
    let database = databases::open_existing(url.reveal(), &Options::default()).await?;
    database.ping().await?;
    let mut seen = Seen {
        profile: database.profile().clone(),
        tables: None,
        standings: Vec::new(),
        client_standings: Vec::new(),
        unseen: Vec::new(),
    };
    let Some(inventory) = database.inventory() else {
        return Ok(seen);
    };
    let mut names = inventory.tables().await?;
    names.retain(|name| !OwnTable::is_one(name));
    seen.tables = Some(names.len());
    let first: Vec<TableName> = names.into_iter().take(most).collect();
    #[cfg(feature = "mysql")]
    if seen.profile.name == "MySQL and MariaDB" {
        clients::look(url.reveal(), &first, &mut seen).await?;
    }
    let meeting = Meeting::new(Arc::clone(&database));
    for name in first {
        let met = match inventory.table(&name).await {
            Ok(Some(table)) => meeting.meet(&table).await,
            Ok(None) => continue,
            Err(fault) => Err(fault),
        };
        if let Err(fault) = met {
            seen.unseen.push((name, fault));
        }
    }
    seen.standings = database.standings();
    meeting.lane.shutdown().await;
    Ok(seen)
}

/// Describes the statements of MySQL clients.
#[cfg(feature = "mysql")]
mod clients {
    use windrow_core::{Fault, TableName};
    use windrow_database::Options;
    use windrow_mysql::ClientSink;
    use windrow_mysqlwire::{Credential, LaneLogin, Target};

    use super::{ClientStatements, Seen};

    /// Describes tables as the lane of a client does that logs in as the URL's user.
    pub(super) async fn look(
        url: &str,
        tables: &[TableName],
        seen: &mut Seen,
    ) -> Result<(), Fault> {
        let target = Target::parse(url)?;
        let login = LaneLogin {
            user: target.user.as_bytes().into(),
            credential: Credential::Password(target.password.clone()),
            database: Some(target.database.as_str().into()),
            counts_found_rows: false,
            ignores_space: false,
            has_extended_metadata: false,
            variables: Box::default(),
        };
        let sink = ClientSink::new(target, login, &Options::default());
        for table in tables {
            let standings = match sink.survey(table).await {
                Ok(standings) => standings,
                Err(fault) => {
                    seen.unseen.push((table.clone(), fault));
                    continue;
                }
            };
            let standings = standings.into_iter().map(|alike| ClientStatements {
                table: table.clone(),
                statements: alike.statements,
                why: alike.why,
            });
            seen.client_standings.extend(standings);
        }
        sink.rest();
        Ok(())
    }
}

/// A lane that is used to have tables described.
struct Meeting {
    intake: Intake,
    lane: Lane,
}

impl Meeting {
    fn new(database: Arc<dyn Database>) -> Self {
        let (intake, arrivals) = Intake::channel(Budget::new(DEFAULT_MEMORY), LANE_CAPACITY);
        let metrics = LaneMetrics::register(&mut Registry::default());
        let limits = Limits::default();
        let lane = Lane::start(database, limits, arrivals, metrics, "doctor".into());
        Self { intake, lane }
    }

    /// Reads a row whose key is NULL, which no row has, because the table is described for that. A
    /// table without a key is described too, before the read is refused.
    async fn meet(&self, table: &KeyedTable) -> Result<(), Fault> {
        let Some(column) = table.columns.first().cloned() else {
            return Ok(());
        };
        let key: Box<[Name]> = match &*table.key {
            [] => [column.clone()].into(),
            key => key.into(),
        };
        let nulls = vec![Value::Null; key.len()];
        let shape = Shape::new(ShapeParts {
            op: Op::Get,
            table: table.name.clone(),
            columns: Box::default(),
            key: Key::Columns(key),
            on_conflict: OnConflict::Error,
            returning: Returning::Columns([column].into()),
        });
        let unit = Unit::one(Write::new(Arc::new(shape), nulls));
        let permit = self.intake.budget().take(unit.bytes()).await?;
        let source = self.intake.new_source();
        let outcomes = self.intake.submit(source, [unit], permit).await?.await;
        match outcomes.into_iter().next() {
            Some(Err(failed)) if failed.fault.code != NO_SUCH_KEY => Err(failed.fault),
            _ => Ok(()),
        }
    }
}
