//! Commands that end by themselves.

pub(crate) mod check_config;
pub(crate) mod dead_letters;
pub(crate) mod doctor;
mod gateway;
pub(crate) mod health;
pub(crate) mod load;
pub(crate) mod moves;
mod progress;
pub(crate) mod replica;
pub(crate) mod run;
pub(crate) mod spool;
mod status_page;
pub(crate) mod summary;
