//! Windrow in process: single-row writes in, multi-row statements out, a true outcome for each row.
//!
//! The same lanes and sinks that the `windrow` server runs, without a server:
//!
//! ```
//! # async fn example() -> Result<(), windrow::Fault> {
//! let writer = windrow::Writer::builder("sqlite::memory:").create_tables(true).open().await?;
//! let readings = writer.insert("readings", ["id", "celsius"])?;
//!
//! // One row, one outcome. Call it from as many tasks as you like: they share statements and
//! // commits.
//! let done = readings.write([1.into(), 21.5.into()]).await?;
//! assert_eq!(done.rows, 1);
//!
//! // Many rows from any iterator, one status for each, in order.
//! let statuses = readings.write_all((1..=3).map(|id| [id.into(), 20.0.into()])).await;
//! assert_eq!(statuses.iter().filter(|s| s.is_ok()).count(), 2); // row 1 is there already
//! assert_eq!(statuses[0].as_ref().unwrap_err().code, "23505");
//! writer.close().await;
//! # Ok(()) }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`Writer`], [`WriterBuilder`] | a database, opened by URL, with its knobs |
//! | [`Statement`] | what is done with a row: insert, upsert, update, delete |
//! | [`Table`] | a writer and a statement: `write`, `write_all`, `write_stream` |
//! | [`mod@load`] | files into a table, at the database's bulk speed |
//! | [`moves`] | rows of a table that serves as a queue into their final tables |
//! | [`bookkeeping`] | dead letters: read, tried again, dropped |
//! | [`settings`] | the server's configuration: file, environment, command line |
//! | [`disk`] | free space of disks |
//! | [`doctor`] | what would be made of a database: which writes are joined, and why others not |
//! | [`databases`] | the databases that rows can go to, and what each of them promises |
//! | [`serve`](mod@serve) | the server, wired from frontends, lanes and sinks |

pub mod bookkeeping;
pub mod databases;
pub mod disk;
pub mod doctor;
mod lanes;
pub mod load;
mod metrics;
pub mod moves;
pub mod serve;
pub mod settings;
mod statement;
mod table;
#[cfg(feature = "otlp")]
mod traces;
#[cfg(not(feature = "otlp"))]
#[path = "no_traces.rs"]
mod traces;
mod writer;

pub use statement::Statement;
pub use table::{Outcome, Table};
pub use windrow_core::{
    Extra, Fault, FaultClass, Generated, LaneStatus, Limits, OnConflict, Returned, Row, Value,
    WriteDone,
};
pub use windrow_database::Synchronous;
pub use writer::{Writer, WriterBuilder};
