//! The calls that clients make.

use std::sync::Arc;

use crate::generator::pg::Mode;
use crate::generator::transaction::{Shape, Transactions};
use crate::generator::{Inserts, Job, Style};
use crate::servers::gate::Way;

/// The calls of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CapacityLoad {
    /// One prepared INSERT of a row.
    Single,
    /// BEGIN, INSERT .. RETURNING id, COMMIT.
    Transaction,
    /// BEGIN, INSERT .. RETURNING id, three INSERTs of lines with that id, COMMIT.
    Order,
    /// One row in an HTTP request, through Windrow only.
    Http,
}

/// The most calls of one client at one rate.
const CALLS: u64 = 1_000_000;

impl CapacityLoad {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Single => "single rows",
            Self::Transaction => "transactions",
            Self::Order => "orders of four rows",
            Self::Http => "rows over HTTP",
        }
    }

    pub(super) fn file(self) -> &'static str {
        match self {
            Self::Http => "http",
            _ => self.shape().as_str(),
        }
    }

    pub(super) fn shape(self) -> Shape {
        match self {
            Self::Single | Self::Http => Shape::Single,
            Self::Transaction => Shape::Transaction,
            Self::Order => Shape::Order,
        }
    }

    /// Returns the calls of the step of a number.
    pub(super) fn job(self, step: u32) -> Arc<dyn Job> {
        let first = u64::from(step) * CALLS;
        match self {
            Self::Single => Arc::new(Inserts::from(Style::Pg(Mode::Prepared), first)),
            Self::Http => Arc::new(Inserts::from(Style::Http, first)),
            Self::Transaction | Self::Order => {
                let lines = self.shape().lines();
                Arc::new(Transactions { lines })
            }
        }
    }

    pub(super) fn has(self, way: Way) -> bool {
        self != Self::Http || way == Way::Windrow
    }

    pub(super) fn arm(self, way: Way) -> String {
        format!("{}, {}", way.as_str(), self.as_str())
    }

    /// The arm of one rate.
    pub(super) fn step_arm(self, way: Way, rate: f64) -> String {
        format!("{} at {rate:.0}/s", self.arm(way))
    }
}
