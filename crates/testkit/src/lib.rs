//! Servers, proxies and programs for Windrow's tests and experiments: real database servers that
//! are started and stopped by the test itself, a TCP proxy that delays and cuts, a fake sink, and
//! the `windrow` process seen from outside.
//!
//! Nothing here has state of its own: all that is started belongs to a value and ends when that
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
mod listener;
pub mod loads;
pub mod mariadb;
pub mod metrics;
pub mod mosquitto;
mod own_server;
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

use listener::locked;
