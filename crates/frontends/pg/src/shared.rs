//! The state that all connections of a frontend share.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use windrow_core::{Budget, CurrentStatements, Tracer};

use crate::access::Access;
use crate::bypass::Bypass;
use crate::charge::LongMessages;
use crate::client::Identity;
use crate::config::PgConfig;
use crate::databases::Databases;
use crate::gate::Gate;
use crate::lanes::LaneBook;
use crate::metrics::PgMetrics;
use crate::own::Allowed;
use crate::proofs::Proofs;
use crate::register::Register;
use crate::senders::Senders;
use crate::services::{Console, Services, SqlKeys, SqlSpool};
use crate::statements::StatementCache;
use crate::tls::Tls;

/// The state that all connections of a frontend share.
pub(crate) struct Shared {
    /// The configuration.
    pub(crate) config: PgConfig,
    /// One slot for each client.
    pub(crate) client_slots: Arc<Semaphore>,
    /// TLS for clients.
    pub(crate) tls: Option<Tls>,
    /// The rules of admission.
    pub(crate) access: Access,
    /// The sessions.
    pub(crate) register: Arc<Register>,
    /// The databases, and server connections for what is not joined.
    pub(crate) databases: Databases,
    /// The lanes that sessions have open.
    pub(crate) lanes: LaneBook,
    /// The statements, by their texts.
    pub(crate) cache: StatementCache,
    /// The verdicts on relayed statements.
    pub(crate) proofs: Arc<Proofs>,
    /// Statements that were not joined, by reason.
    pub(crate) bypass: Bypass,
    /// The senders of notifications.
    pub(crate) senders: Arc<Senders>,
    /// Pauses work in databases.
    pub(crate) gate: Gate,
    /// The memory of the process.
    pub(crate) budget: Budget,
    /// The part of the memory budget that long messages may hold.
    pub(crate) long_messages: LongMessages,
    /// The spool for writes that are answered before the database has them.
    pub(crate) spool: Option<SqlSpool>,
    /// The executor of writes with keys, if there is one.
    pub(crate) keys: Option<SqlKeys>,
    /// The tracer; `None` if writes are not traced.
    pub(crate) tracer: Option<Tracer>,
    /// The statements whose meaning was found unchanged.
    pub(crate) current: CurrentStatements,
    /// The counters.
    pub(crate) metrics: PgMetrics,
    /// The commands and tables of the console that are not the frontend's own.
    pub(crate) console: Console,
    /// Cancelled when Windrow stops: no client is admitted any more, and sessions finish what is
    /// under way.
    pub(crate) stop: CancellationToken,
}

impl Shared {
    /// Returns the features that the sessions of a role in a database may use.
    pub(crate) fn allowed<'a>(&'a self, identity: &'a Identity) -> Allowed<'a> {
        Allowed {
            spool: self.spool.as_ref(),
            keys: self.keys.as_ref(),
            identity,
        }
    }

    /// Returns the state without any client or connection.
    ///
    /// # Errors
    /// The defect of the configuration.
    pub(crate) fn new(config: PgConfig, services: Services) -> Result<Self, String> {
        let Services {
            spool,
            keys,
            lanes,
            tracer,
            budget,
            metrics,
            console,
        } = services;
        let slots = config.max_clients.min(Semaphore::MAX_PERMITS);
        Ok(Self {
            client_slots: Arc::new(Semaphore::new(slots)),
            tls: config.tls.as_deref().map(Tls::new),
            access: Access::new(&config)?,
            register: Arc::clone(&metrics.register),
            databases: Databases::new(&config, &metrics),
            lanes: LaneBook::new(lanes),
            cache: StatementCache::default(),
            proofs: Arc::default(),
            bypass: Bypass::new(&metrics),
            senders: Arc::default(),
            gate: Gate::default(),
            long_messages: LongMessages::new(&budget),
            budget,
            metrics,
            console,
            stop: CancellationToken::new(),
            spool,
            keys,
            tracer,
            current: CurrentStatements::default(),
            config,
        })
    }
}
