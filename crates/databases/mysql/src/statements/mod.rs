//! Writes of MySQL clients: a lane's connections execute the clients' own statements.
//!
//! A batch is one transaction. Each statement in it is executed as its client wrote it, all sent
//! before the first answer is read; INSERTs of one statement become one INSERT of many rows. The
//! answers are the server's packets. No answer comes from an attempt that was rolled back.
//!
//! | module | what it does |
//! | --- | --- |
//! | `client_sink` | the sink of one lane |
//! | `client_catalog` | the described statements of a lane |
//! | `table_look` | reads a table's description, and notices that it has changed |
//! | `meaning` | decides which statements are joined, and how |
//! | `survey` | says which statements on a table are joined, for `windrow doctor` |
//! | `row_plan` | converts calls to row writes, for the spool and for keys |
//! | `row_given`, `row_value` | read clients' values, and decide which are stored the same |
//! | `row_settings` | the settings that decide that |
//! | `lane_session` | a connection: sends commands and reads answers |
//! | `lane_settings` | the settings of a connection |
//! | `lane_interrupt` | cancels a connection's batch |
//! | `prepared` | the prepared statements of a connection |
//! | `command` | builds the commands of calls |
//! | `client_batch` | the units of a batch and their verdicts |
//! | `steps` | the statements of a batch |
//! | `client_connection` | executes statements on a connection |
//! | `lone` | executes a unit by itself |
//! | `attempt` | executes units in one transaction |
//! | `closing` | commits in the round trip of the statements |
//! | `round` | sends the statements of a transaction, reads their answers |
//! | `judgement` | judges the answers to a transaction's statements |
//! | `client_executor` | executes batches |
//! | `answers` | converts answers to outcomes |

mod answers;
mod attempt;
mod client_batch;
mod client_catalog;
mod client_connection;
mod client_executor;
mod client_sink;
mod closing;
mod command;
mod judgement;
mod lane_interrupt;
mod lane_session;
mod lane_settings;
mod lone;
mod meaning;
mod prepared;
mod round;
mod row_given;
mod row_plan;
mod row_settings;
mod row_value;
mod steps;
mod survey;
mod table_look;

pub use self::client_sink::ClientSink;
pub use self::survey::ClientStanding;
