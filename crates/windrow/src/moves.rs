//! Rows of a table that serves as a queue into their final tables: what `windrow move` does, for
//! programs.
//!
//! ```no_run
//! # async fn example() -> Result<(), windrow::moves::MoveError> {
//! use windrow::moves::{MoveSettings, Moving};
//!
//! let settings = MoveSettings::new("postgres://app@localhost/app", "pending", "final_{tenant}");
//! let moving = Moving::open(settings).await?;
//! let counts = moving.counts();
//! moving.run().await?;
//! println!("{} rows", counts.read().moved);
//! # Ok(()) }
//! ```

mod checks;
mod ends;

use std::num::NonZero;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windrow_core::moves::{NameLimit, Referrer, TableFacts};
use windrow_core::{Database, Fault, FaultClass, MovePlan, Moves, Secret, TableName};
use windrow_lanes::Lane;
use windrow_move::{Elsewhere, Order, Template};

pub use windrow_move::{Counted, Counts, MoveError};

use self::checks::{described, fits, has_column, invalid, key, of_table, passing_over, referred};
use self::ends::{
    alike, check_documents, destination_of, elsewhere, prepare_destination, source_of,
};

/// The rows and the bytes of a batch that is read, unless configured. Such a batch is held in
/// memory, and its rows are locked as long as it is written.
const READ_ROWS: usize = 2_000;
const READ_BYTES: usize = 8 << 20;

/// The most values of a route in a survey.
const MAX_ROUTES: usize = 10_000;

/// The settings of a move.
#[derive(Clone, Debug)]
pub struct MoveSettings {
    /// The URL of the database that holds the rows.
    pub from: Secret,
    /// The URL of the destination's database; `None` for the same database.
    pub to: Option<Secret>,
    /// The source table.
    pub source: String,
    /// The destination table, with `{column}` for the value of a column.
    pub destination: String,
    /// The columns that identify rows; `None` for the primary key.
    pub key: Option<Vec<String>>,
    /// The column that decides where a row goes; `None` for the one in the destination's name, if
    /// there is one.
    pub route_by: Option<String>,
    /// True if missing destinations are created.
    pub create: bool,
    /// The most rows of one batch; `None` for a number that suits the database.
    pub batch_rows: Option<NonZero<usize>>,
    /// The number of connections that move at once; `None` for one.
    pub jobs: Option<NonZero<usize>>,
    /// A condition in the source's SQL that rows must meet. It becomes a part of statements as it
    /// is, and is trusted.
    pub filter: Option<String>,
    /// The most rows that are moved; `None` for all.
    pub limit: Option<u64>,
    /// True if the move continues as rows arrive, until it is stopped.
    pub follow: bool,
    /// True if rows are moved although deleting them from the source changes other rows: by foreign
    /// keys with ON DELETE CASCADE, SET NULL or SET DEFAULT, triggers and rules.
    pub delete_effects: bool,
}

impl MoveSettings {
    /// Makes settings for all rows of a table, within one database.
    pub fn new(
        from: impl Into<Secret>,
        source: impl Into<String>,
        destination: impl Into<String>,
    ) -> Self {
        Self {
            from: from.into(),
            to: None,
            source: source.into(),
            destination: destination.into(),
            key: None,
            route_by: None,
            create: false,
            batch_rows: None,
            jobs: None,
            filter: None,
            limit: None,
            follow: false,
            delete_effects: false,
        }
    }
}

/// A destination, as a survey sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The destination's name; `None` if the value of the route gives none.
    pub destination: Option<String>,
    /// The number of rows that would be moved there.
    pub rows: u64,
    /// A remark: the destination is created first, or it refuses the rows and why.
    pub remark: Option<String>,
    /// The prospect of the rows, as far as names and tables show it.
    pub prospect: Prospect,
}

/// The prospect of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prospect {
    /// The rows would be moved, unless their destination refuses them.
    Moved,
    /// Rows would stay if rows of other tables refer to them; all others would be moved.
    Held,
    /// The rows would go to the dead letters.
    Rejected,
    /// The rows would stay, because the move would end with an error.
    Ended,
}

/// A move that is ready to run.
pub struct Moving {
    moves: Arc<dyn Moves>,
    /// The identity of the source table.
    identity: String,
    order: Arc<Order>,
    to: Option<(Arc<dyn Database>, Elsewhere, Lane)>,
    /// Side effects of deleting rows from the source.
    effects: Vec<Box<str>>,
    delete_effects: bool,
    /// The condition of the settings.
    filter: Option<Box<str>>,
    /// Foreign keys that keep rows in the source.
    referrers: Vec<Referrer>,
    counts: Arc<Counts>,
    stop: CancellationToken,
}

impl Moving {
    /// Checks the settings against both databases. Changes nothing yet.
    ///
    /// # Errors
    /// The settings are invalid, or do not fit the databases.
    pub async fn open(settings: MoveSettings) -> Result<Self, MoveError> {
        let (from, moves) = source_of(settings.from.reveal()).await?;
        let source = TableName::parse(&settings.source).map_err(invalid)?;
        let template = Template::parse(&settings.destination).map_err(invalid)?;
        let route = template
            .route(settings.route_by.as_deref())
            .map_err(invalid)?;
        let facts = described(&*moves, &source).await?;
        let key = key(&facts, &source, settings.key.as_deref())?;
        if let Some(route) = &route {
            has_column(&facts, &source, route)?;
        }
        let to = match &settings.to {
            Some(to) if *to != settings.from => {
                destination_of(to.reveal(), &*moves, settings.create, route.is_some()).await?
            }
            _ => None,
        };
        if let Some(to) = &to {
            check_documents(&**to, &facts)?;
        }
        let plan = MovePlan {
            columns: facts.plain().cloned().collect(),
            source,
            key,
            names: facts.naming().into(),
            route,
            filter: passing_over(settings.filter.as_deref(), &facts.referrers),
            across: to.is_some(),
            alike: to.as_ref().is_some_and(|to| alike(&*from, &**to)),
        };
        let name_limit = match &to {
            None => Some(moves.clone()),
            Some(to) => to.moves(),
        };
        let name_limit = match name_limit {
            Some(moves) => moves.name_limit().await.map_err(invalid)?,
            None => NameLimit::default(),
        };
        let rows = settings.batch_rows.map(NonZero::get);
        let jobs = settings.jobs.map_or(1, NonZero::get);
        let order = Order {
            name_limit,
            template,
            create: settings.create,
            batch_rows: rows.unwrap_or(match plan.across {
                true => READ_ROWS,
                false => moves.batch_rows(),
            }),
            batch_bytes: READ_BYTES,
            jobs: jobs.min(moves.most_movers()),
            limit: settings.limit,
            follow: settings.follow,
            passes_over_referred: !facts.referrers.is_empty(),
            plan,
        };
        let to = to.map(|sink| {
            let url = settings.to.as_ref().map_or("", Secret::reveal);
            let (elsewhere, lane) = elsewhere(&sink, &facts, url);
            (sink, elsewhere, lane)
        });
        Ok(Self {
            moves,
            identity: facts.identity,
            effects: facts.effects,
            filter: settings.filter.map(String::into_boxed_str),
            referrers: facts.referrers,
            delete_effects: settings.delete_effects,
            order: Arc::new(order),
            to,
            counts: Arc::default(),
            stop: CancellationToken::new(),
        })
    }

    /// Returns the progress, which may be read during the move.
    pub fn counts(&self) -> Arc<Counts> {
        self.counts.clone()
    }

    /// Returns the token that ends the move: batches under way are finished.
    pub fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Returns descriptions of the side effects of deleting rows from the source: foreign keys of
    /// other tables that delete or change rows with it, triggers and rules.
    pub fn effects(&self) -> &[Box<str>] {
        &self.effects
    }

    /// Returns the names of the foreign keys of other tables that may keep rows in the source.
    pub fn referrers(&self) -> impl Iterator<Item = &str> {
        self.referrers.iter().map(|referrer| &*referrer.words)
    }

    /// Counts the rows that stay in the source because rows of other tables refer to them.
    async fn held(&self) -> Result<u64, MoveError> {
        let Some(filter) = referred(self.filter.as_deref(), &self.referrers) else {
            return Ok(0);
        };
        let plan = MovePlan {
            filter: Some(filter),
            route: None,
            ..self.order.plan.clone()
        };
        let counted = self.moves.survey(&plan, 1).await;
        let counted = counted.map_err(|fault| of_table(&plan.source, fault))?;
        Ok(counted.iter().map(|(_, rows)| rows).sum())
    }

    /// Refuses a move whose deletes change other rows, unless the settings allow it.
    fn check_effects(&self) -> Result<(), Fault> {
        match self.delete_effects || self.effects.is_empty() {
            true => Ok(()),
            false => Err(Fault::invalid(format!(
                "a row that is moved is deleted from {}, and deleting its rows runs {}: that would delete or change other rows; \
                 remove it, or move the rows all the same with --delete-effects",
                self.order.plan.source,
                self.effects.join(", ")
            ))),
        }
    }

    /// Returns the rows that would be moved, by destination. Changes nothing.
    ///
    /// # Errors
    /// The errors of a database.
    pub async fn survey(&self) -> Result<Vec<Planned>, MoveError> {
        let plan = &self.order.plan;
        let found = self.moves.survey(plan, MAX_ROUTES).await;
        let found = found.map_err(|fault| of_table(&plan.source, fault))?;
        let refusal = self.check_effects().err();
        let mut planned = Vec::with_capacity(found.len());
        let mut tables: Vec<TableName> = Vec::new();
        for (route, rows) in found {
            let limit = self.order.name_limit;
            let name = self.order.template.name(route.as_deref(), limit);
            let (prospect, remark) = match &name {
                _ if refusal.is_some() => (Prospect::Ended, None),
                Err(fault) => self.refused(fault),
                Ok(table) => match tables.iter().find(|other| limit.folds(other, table)) {
                    Some(other) => {
                        self.refused(&TableFacts::otherwise_spelled(table, &other.table))
                    }
                    None => self.prospect(table).await?,
                },
            };
            let name = name.ok();
            planned.push(Planned {
                destination: name.as_ref().map(ToString::to_string),
                rows,
                remark,
                prospect,
            });
            tables.extend(name.filter(|_| prospect == Prospect::Moved));
        }
        let held = self.held().await?;
        planned.extend((held > 0).then(|| Planned {
            destination: None,
            rows: held,
            remark: Some("would stay: rows of other tables refer to them".into()),
            prospect: Prospect::Held,
        }));
        Ok(planned)
    }

    /// Returns the prospect of rows that have no destination, with the reason.
    fn refused(&self, why: &Fault) -> (Prospect, Option<String>) {
        match self.order.plan.route {
            Some(_) => (
                Prospect::Rejected,
                Some(format!("to the dead letters: {}", why.message)),
            ),
            None => (Prospect::Ended, Some(why.message.to_string())),
        }
    }

    /// Returns the prospect of rows with this destination, with a remark if the destination is
    /// missing or does not fit.
    async fn prospect(&self, table: &TableName) -> Result<(Prospect, Option<String>), MoveError> {
        let fine = (Prospect::Moved, None);
        let moves = match &self.to {
            None => Some(self.moves.clone()),
            Some((to, ..)) => to.moves(),
        };
        let Some(moves) = moves else { return Ok(fine) };
        let found = moves.describe(table).await;
        let found = found.map_err(|fault| of_table(table, fault))?;
        let (plan, create) = (&self.order.plan, self.order.create);
        let Some(facts) = found else {
            let made = match create {
                true => self.order.name_limit.check(&table.table),
                false => Err(Fault::invalid("there is no such table")),
            };
            return Ok(match made {
                Ok(()) => (Prospect::Moved, Some("would be made".into())),
                Err(fault) => self.refused(&fault),
            });
        };
        if self.to.is_none() && facts.identity == self.identity {
            let why = "this is the source itself; rows cannot be moved into it";
            return Ok(self.refused(&Fault::invalid(why)));
        }
        let other = facts.spelled.clone();
        if let Some(other) = other.filter(|name| plan.route.is_some() && *name != table.table) {
            return Ok(self.refused(&TableFacts::otherwise_spelled(table, &other)));
        }
        let fitting = fits(table, facts, plan, create);
        Ok(fitting.map_or_else(|fault| self.refused(&fault), |()| fine))
    }

    /// Checks the table in another database that all rows go to, if it can be described. Within one
    /// database the mover does that.
    async fn check(&self) -> Result<(), MoveError> {
        let (Some((to, ..)), Some(table)) = (&self.to, self.order.template.table()) else {
            return Ok(());
        };
        let Some(moves) = to.moves() else {
            return Ok(());
        };
        let (found, create) = (moves.describe(table).await, self.order.create);
        let fitting = match found.map_err(|fault| of_table(table, fault))? {
            Some(facts) => fits(table, facts, &self.order.plan, create),
            None if create => Ok(()),
            None => Err(Fault::new(
                FaultClass::NoTable,
                "42P01",
                format!(
                    "there is no table {table} in the destination; create it, or let it be made by --create"
                ),
            )),
        };
        fitting.map_err(|fault| of_table(table, fault))
    }

    /// Moves rows until none are left, or, if it follows, until it is stopped.
    ///
    /// # Errors
    /// [`MoveError`]. What was moved before stays moved.
    pub async fn run(self) -> Result<(), MoveError> {
        self.check_effects().map_err(invalid)?;
        self.check().await?;
        let plan = &self.order.plan;
        let prepared = self.moves.prepare(plan).await;
        prepared.map_err(|fault| of_table(&plan.source, fault))?;
        let elsewhere = match &self.to {
            None => None,
            Some((sink, elsewhere, _)) => {
                tracing::debug!(to = sink.profile().name, "rows go to another database");
                if elsewhere.transactional {
                    prepare_destination(&**sink, elsewhere, &plan.source).await?;
                }
                Some(elsewhere.clone())
            }
        };
        let (moves, order, counts) = (self.moves.clone(), self.order.clone(), self.counts());
        let moved = windrow_move::run(moves, order, elsewhere, counts, self.stop()).await;
        let ended = match moved {
            Ok(()) => self.held().await.map(|held| self.counts.set_held(held)),
            error => error,
        };
        if let Some((_, _, lane)) = self.to {
            lane.shutdown().await;
        }
        ended
    }
}
