//! The experiments: one file each.

pub mod batch_api;
pub mod bulk;
pub mod files;
pub mod forms;
pub mod gateway;
pub mod latency;
pub mod load;
pub mod low_load;
pub mod moves;
pub mod outage;
pub mod outcomes;
pub mod poison;
pub mod replicas;
pub mod restart;
pub mod soak;
pub mod spool;
pub mod spooled;
pub mod stall;
pub mod sweep;
pub mod timeline;
pub mod under_load;
