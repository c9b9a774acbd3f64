//! Baselines: the usual ways to write the same rows.

pub mod copy;
pub mod cratedb;
pub mod mariadb;
pub mod mover;
pub mod parallel_copy;
pub mod pgbench;
pub mod slap;
pub mod sqlite;
