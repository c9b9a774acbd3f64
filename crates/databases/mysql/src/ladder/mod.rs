//! From units to statements, and from answers to verdicts.
//!
//! | file | what it does |
//! | --- | --- |
//! | `plan`, `text`, `bind` | plan: a shape joined with its table, its statements, its values |
//! | `send_one`, `send_many`, `one_statement` | send: one write, or many writes, by one statement |
//! | `settle` | settle: a transaction from its begin to its commit, and the verdicts of its units |
//! | `isolate`, `step` | isolate: savepoints for units of several writes; smaller statements after a failure |
//! | `executor` | the loop of transactions that ends when every unit has its verdict |

pub(crate) mod batch;
mod bind;
pub(crate) mod cache;
pub(crate) mod connection;
mod demands;
mod executor;
mod failed;
mod isolate;
mod matching;
mod named;
mod one_statement;
pub(crate) mod plan;
mod send_many;
mod send_one;
mod settle;
mod step;
mod text;
