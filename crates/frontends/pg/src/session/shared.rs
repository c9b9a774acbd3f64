//! What all sessions share.

use std::sync::Arc;

use windrow_core::Budget;

use super::charge::LongMessages;
use super::lane::LaneBook;
use crate::bypass::Bypass;
use crate::databases::Databases;
use crate::gate::Gate;
use crate::proofs::Proofs;
use crate::senders::Senders;
use crate::statements::Readings;

/// What all sessions share.
pub(crate) struct Shared {
    /// The longest message of a client that is not COPY data, in bytes.
    pub(crate) max_message: usize,
    /// What one session may hold back until its Sync, in bytes.
    pub(crate) max_pending: usize,
    /// The memory of the process.
    pub(crate) budget: Budget,
    /// What of the memory budget long messages may hold.
    pub(crate) long_messages: LongMessages,
    /// What was read from texts.
    pub(crate) readings: Readings,
    /// The lanes that sessions have opened, with what is known of their statements.
    pub(crate) lanes: Arc<LaneBook>,
    /// The databases, and server connections for what is not joined.
    pub(crate) databases: Arc<Databases>,
    /// What is proven of statements that are relayed.
    pub(crate) proofs: Arc<Proofs>,
    /// Holds work back while a database is paused.
    pub(crate) gate: Arc<Gate>,
    /// Statements that were not joined, by reason.
    pub(crate) bypass: Arc<Bypass>,
    /// Who sends notifications.
    pub(crate) senders: Arc<Senders>,
}
