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

/// The configuration, the ports, and the state kept between requests.
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

    /// Returns when a write is answered if its request asks for `asked`. The spool only answers
    /// writes whose success has no further content: inserts, also those that may update, without
    /// returned values. If the database has no transactions, entries may be applied more than once,
    /// and the spool only accepts single inserts that cannot fail because of a key. All other
    /// writes are answered once they are committed.
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Invalid`] if the spool is asked for and there is none.
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

    /// Returns the fault of a request that needs a spool.
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

    /// Checks the number of rows of one unit, or of one body that is read as a whole.
    ///
    /// # Errors
    /// 413 beyond the limit.
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
