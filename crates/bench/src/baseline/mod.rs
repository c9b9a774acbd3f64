//! What Windrow is compared with: the usual ways to write the same rows.

pub mod copy;
pub mod pgbench;
pub mod sqlite;
