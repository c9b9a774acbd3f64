//! The experiments: one file each.

pub mod batch_api;
pub mod bulk;
pub mod capacity;
pub mod files;
mod flawed;
pub mod forms;
pub mod gateway;
pub mod latency;
pub mod load;
pub mod low_load;
mod measure;
pub mod moves;
pub mod outage;
mod outcomes;
pub mod overload;
pub mod pace;
pub mod poison;
pub mod replicas;
mod sampler;
pub mod soak;
pub mod spool;
mod spooled;
pub mod sweep;
