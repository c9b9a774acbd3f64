//! One attempt to connect: its parameters, and the reason of a refusal.

use windrow_core::{Fault, FaultClass};

use super::endpoint::{Endpoint, Peer};
use crate::target::{Host, Target};

/// The parameters of an attempt to connect.
pub(super) struct Entrance<'a> {
    pub(super) target: &'a Target,
    pub(super) host: &'a Host,
    pub(super) endpoint: &'a Endpoint,
    pub(super) settings: &'a [(&'a str, String)],
}

impl<'a> Entrance<'a> {
    pub(super) fn peer(&self) -> Peer<'a> {
        Peer(self.host, self.endpoint)
    }

    pub(super) fn garbled(&self, what: &str) -> Fault {
        Fault::new(
            FaultClass::Other,
            "08P01",
            format!("the start of a session at {} failed: {what}", self.peer()),
        )
    }

    pub(super) fn lost(&self, why: &str) -> Fault {
        Fault::unavailable(format!(
            "cannot connect to PostgreSQL at {}: {why}",
            self.peer()
        ))
    }
}

/// A refused attempt. Says whether another attempt with TLS instead of without, or the reverse, may
/// succeed.
pub(super) struct Refusal {
    pub(super) fault: Fault,
    pub(super) other_way: bool,
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self {
            fault,
            other_way: false,
        }
    }
}
