//! What all requests share.

use std::fmt;
use std::sync::Arc;

use windrow_core::{Budget, Fault};

use crate::answers::Refusal;
use crate::bodies::whole::Limit;
use crate::config::HttpConfig;
use crate::plan::Plans;
use crate::services::Services;
use crate::system::SystemTables;

/// The configuration, the ports, and what is kept from one request to the next.
pub(crate) struct App {
    pub(crate) config: HttpConfig,
    pub(crate) services: Services,
    pub(crate) plans: Plans,
}

impl App {
    pub(crate) fn new(config: HttpConfig, services: Services) -> Self {
        Self {
            plans: Plans::new(SystemTables::new(
                &config.system_tables,
                Arc::clone(&services.owns),
            )),
            services,
            config,
        }
    }

    pub(crate) fn budget(&self) -> &Budget {
        self.services.intake.budget()
    }

    /// The limit of a body that is read as a whole.
    pub(crate) fn body_limit(&self) -> Limit {
        Limit {
            bytes: self.config.max_body,
            name: "http.max_body",
            what: "the body",
        }
    }

    /// The limit of a single row.
    pub(crate) fn row_limit(&self) -> Limit {
        Limit {
            bytes: self.config.max_row,
            name: "http.max_row",
            what: "the row",
        }
    }

    /// Checks how many rows one unit, or one body that is read as a whole, has.
    pub(crate) fn check_rows(&self, count: usize) -> Result<(), Refusal> {
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
