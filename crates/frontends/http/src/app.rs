//! State that all requests share.

use std::fmt;
use std::sync::Arc;

use windrow_core::{Budget, Fault, OnConflict, Op, Returning};

use crate::ack::Ack;
use crate::answers::Refusal;
use crate::answers::expected::UsualAnswers;
use crate::auth::Admission;
use crate::bodies::whole::Limit;
use crate::config::HttpConfig;
use crate::lists::Lists;
use crate::plan::Plans;
use crate::services::Services;
use crate::system::SystemTables;
use crate::unfinished_heads::UnfinishedHeads;

/// The configuration, the ports, and what is kept from one request to the next.
pub struct App {
    pub(crate) config: HttpConfig,
    pub(crate) admission: Admission,
    pub(crate) services: Services,
    pub(crate) plans: Plans,
    pub(crate) lists: Lists,
    pub(crate) usual_answers: UsualAnswers,
    pub(crate) unfinished_heads: UnfinishedHeads,
}

impl App {
    pub(crate) fn new(config: HttpConfig, services: Services) -> Self {
        Self {
            plans: Plans::new(SystemTables::new(
                &config.system_tables,
                Arc::clone(&services.owns),
            )),
            lists: Lists::new(services.inventory.clone()),
            usual_answers: UsualAnswers::default(),
            unfinished_heads: UnfinishedHeads::new(services.intake.budget().total()),
            services,
            admission: Admission::new(config.tokens.clone()),
            config,
        }
    }

    /// Returns the memory budget that everything is charged to.
    pub fn budget(&self) -> &Budget {
        self.services.intake.budget()
    }

    /// When a write is answered for which `asked` stands in its request. Only what has nothing to
    /// tell but that it was taken is answered by the spool: inserts, also those that may update,
    /// that give nothing back. Where the database has no transactions, entries may be applied more
    /// than once: single inserts that may not fail at a key are all that it takes then. All else is
    /// answered once it is committed.
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Invalid`] where the spool is asked for and there is none.
    pub fn ack(
        &self,
        (op, on_conflict, returning): (Op, OnConflict, &Returning),
        is_atomic: bool,
        asked: Option<Ack>,
    ) -> Result<Ack, Fault> {
        if asked.unwrap_or(self.services.ack) == Ack::Commit {
            return Ok(Ack::Commit);
        }
        let Some(spool) = &self.services.spool else {
            return Err(self.no_spool("ack=spool"));
        };
        let once = is_atomic || on_conflict == OnConflict::Error;
        Ok(match (op, returning) {
            (Op::Insert, Returning::Nothing) if !(once && spool.repeats()) => Ack::Spool,
            _ => Ack::Commit,
        })
    }

    /// Something was asked for that takes a spool.
    pub(crate) fn no_spool(&self, what: &str) -> Fault {
        Fault::invalid(format!(
            "{what} needs a spool, and this server has none; it has one where it is started with --spool DIR, or with directory in the section [spool] of its configuration"
        ))
    }

    /// Returns the limit of a body that is read as a whole.
    pub fn body_limit(&self) -> Limit {
        Limit {
            bytes: self.config.max_body,
            name: "http.max_body",
            what: "the body",
        }
    }

    /// Returns the limit of a single row.
    pub fn row_limit(&self) -> Limit {
        Limit {
            bytes: self.config.max_row,
            name: "http.max_row",
            what: "the row",
        }
    }

    /// Checks how many rows one unit, or one body that is read as a whole, has.
    ///
    /// # Errors
    /// 413 past the limit.
    pub fn check_rows(&self, count: usize) -> Result<(), Refusal> {
        let limit = self.config.max_atomic_rows;
        if count <= limit {
            return Ok(());
        }
        Err(Fault::too_large(format!(
            "more than {limit} rows cannot be written at once (http.max_atomic_rows)"
        ))
        .into())
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
