//! Building the shared state of a frontend: each part of it gets what it needs.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::recheck::Recheck;
use crate::admit::{Access, Starting, Tls};
use crate::bypass::Bypass;
use crate::config::PgConfig;
use crate::databases::Databases;
use crate::gate::Gate;
use crate::proofs::Proofs;
use crate::senders::Senders;
use crate::services::Services;
use crate::session::charge::LongMessages;
use crate::session::{self, LaneBook};
use crate::statements::Readings;
use crate::{admin, admit};

/// The parts of a frontend.
pub(super) struct Parts {
    /// For whoever comes.
    pub(super) admit: admit::Shared,
    /// For whoever is at the console.
    pub(super) console: admin::Shared,
    /// For sessions.
    pub(super) sessions: Arc<session::Shared>,
    /// For asking whether those who are in would still be let in.
    pub(super) recheck: Arc<Recheck>,
    /// Who is on its way in.
    pub(super) starting: Arc<Starting>,
    /// Sessions end what is under way and leave once this is cancelled.
    pub(super) stop: CancellationToken,
}

impl Parts {
    /// All parts.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub(super) fn new(config: PgConfig, services: Services) -> Result<Self, String> {
        let Services {
            lanes,
            budget,
            metrics,
            console,
        } = services;
        let databases = Arc::new(Databases::new(&config, &metrics));
        let access = Arc::new(Access::new(&config)?);
        let register = Arc::clone(&metrics.register);
        let bypass = Arc::new(Bypass::new(&metrics));
        let (gate, stop) = (Arc::<Gate>::default(), CancellationToken::new());
        let lanes = Arc::new(LaneBook::new(lanes));
        let slots = config.max_clients.min(Semaphore::MAX_PERMITS);
        Ok(Self {
            admit: admit::Shared {
                login_timeout: config.login_timeout,
                require_tls: config.require_tls,
                max_clients: config.max_clients,
                client_slots: Arc::new(Semaphore::new(slots)),
                tls: config.tls.as_deref().map(Tls::new),
                access: Arc::clone(&access),
                databases: Arc::clone(&databases),
                register: Arc::clone(&register),
                metrics: metrics.clone(),
                stop: stop.clone(),
            },
            sessions: Arc::new(session::Shared {
                max_message: config.max_message,
                max_pending: config.max_pending,
                long_messages: LongMessages::new(&budget),
                budget: budget.clone(),
                readings: Readings::default(),
                lanes: Arc::clone(&lanes),
                databases: Arc::clone(&databases),
                proofs: Arc::<Proofs>::default(),
                gate: Arc::clone(&gate),
                bypass: Arc::clone(&bypass),
                senders: Arc::<Senders>::default(),
            }),
            recheck: Arc::new(Recheck {
                register: Arc::clone(&register),
                access: Arc::clone(&access),
                databases: Arc::clone(&databases),
                lanes,
            }),
            console: admin::Shared {
                config,
                databases,
                access,
                register,
                gate,
                bypass,
                metrics,
                budget,
                console,
                stop: stop.clone(),
            },
            starting: Arc::default(),
            stop,
        })
    }
}
