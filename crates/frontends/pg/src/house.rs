//! What all sessions share.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use windrow_core::{Budget, Name};

use crate::admit::{Access, Moments, Register, Starting, Tls};
use crate::bypass::Bypass;
use crate::client::Identity;
use crate::config::{DatabaseConfig, PgConfig};
use crate::gate::Gate;
use crate::metrics::PgMetrics;
use crate::pool::Pool;
use crate::proofs::Proofs;
use crate::senders::Senders;
use crate::services::{Console, Lanes, Services};
use crate::session::charge::LongMessages;
use crate::session::{LaneBook, Readings};

/// The house in which all sessions live.
pub(crate) struct House {
    /// What is configured.
    pub(crate) config: PgConfig,
    /// The lanes of the process.
    pub(crate) lanes: Arc<dyn Lanes>,
    /// The memory of the process.
    pub(crate) budget: Budget,
    /// What of the memory budget long messages may hold.
    pub(crate) long_messages: LongMessages,
    /// Server connections for what is not joined.
    pub(crate) pool: Pool,
    /// What is proven of statements that are relayed.
    pub(crate) proofs: Arc<Proofs>,
    /// What was read from texts.
    pub(crate) readings: Readings,
    /// The lanes that sessions have opened, with what is known of their statements.
    pub(crate) lane_book: LaneBook,
    /// Statements that were not joined, by reason.
    pub(crate) bypass: Bypass,
    /// Holds work back while the house is paused.
    pub(crate) gate: Gate,
    /// What is counted.
    pub(crate) metrics: PgMetrics,
    /// What the console can ask for besides.
    pub(crate) console: Console,
    /// Who may come in.
    pub(crate) access: Access,
    /// What the server says of roles.
    pub(crate) moments: Moments,
    /// TLS for clients.
    pub(crate) tls: Option<Tls>,
    /// Who is on its way in.
    pub(crate) starting: Arc<Starting>,
    /// Who sends notifications.
    pub(crate) senders: Arc<Senders>,
    /// Who is in.
    pub(crate) register: Arc<Register>,
    /// One for each client that may be in.
    pub(crate) seats: Arc<Semaphore>,
    /// Sessions end what is under way and leave once this is cancelled.
    pub(crate) stop: CancellationToken,
}

impl House {
    /// A house with all its rooms.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub(crate) fn new(config: PgConfig, services: Services) -> Result<Arc<Self>, String> {
        let seats = config.max_clients.min(Semaphore::MAX_PERMITS);
        Ok(Arc::new(Self {
            pool: Pool::new(&config, &services.metrics),
            access: Access::new(&config)?,
            moments: Moments::new(&config),
            tls: config.tls.as_deref().map(Tls::new),
            config,
            lanes: services.lanes,
            long_messages: LongMessages::new(&services.budget),
            budget: services.budget,
            proofs: Arc::default(),
            readings: Readings::default(),
            lane_book: LaneBook::default(),
            bypass: Bypass::new(&services.metrics),
            gate: Gate::default(),
            register: Arc::clone(&services.metrics.register),
            metrics: services.metrics,
            console: services.console,
            starting: Arc::default(),
            senders: Arc::default(),
            seats: Arc::new(Semaphore::new(seats)),
            stop: CancellationToken::new(),
        }))
    }
}

impl House {
    /// Closes all connections to a server's database that nothing is under way on: somebody wants
    /// to drop it, or to change what only one may change who has it alone.
    pub(crate) fn let_go(&self, is: impl Fn(&DatabaseConfig) -> bool) {
        for database in self.config.databases.iter().filter(|database| is(database)) {
            let name = Name::from(&*database.name);
            self.pool.clear(&name);
            self.moments.let_go(&name);
        }
    }

    /// True where nobody is in a database.
    pub(crate) fn is_left(&self, database: &str) -> bool {
        let is = |identity: &Identity| *identity.database == *database;
        self.register.count(is) == 0
    }
}
