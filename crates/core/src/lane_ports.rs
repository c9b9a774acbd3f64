//! The way of an SQL client's writes into its lane.

use std::sync::Arc;

use crate::intake::Intake;
use crate::sql::Describer;

/// The ports of a lane of SQL clients. The lane lives while a session holds them, and some time
/// longer.
#[derive(Clone)]
pub struct LanePorts {
    /// Where units go.
    pub intake: Intake,
    /// The describer of parsed statements under the lane's user and settings.
    pub describer: Arc<dyn Describer>,
}
