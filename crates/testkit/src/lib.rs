//! What Windrow's tests and experiments need from outside: real database servers that are started
//! and stopped by the test itself, a TCP proxy that delays and cuts, a fake sink, and the `windrow`
//! process seen from outside.
//!
//! Nothing here has state of its own: whatever is started belongs to a value and ends when that
//! value is dropped, also when the process that holds it is killed.

pub mod arangodb;
pub mod batches;
pub mod browser;
pub mod cockroachdb;
pub mod command;
pub mod cratedb;
pub mod database;
pub mod kafka;
pub mod left_out;
pub mod loads;
pub mod mariadb;
pub mod pgbouncer;
pub mod pgclient;
pub mod postgres;
pub mod process;
pub mod procfs;
pub mod proxy;
pub mod sink;
pub mod spooled;
pub mod tree;
pub mod web;
pub mod writes;
