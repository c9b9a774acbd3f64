//! SQL calls: statements that clients wrote themselves.
//!
//! | module | what it does |
//! | --- | --- |
//! | `sink` | the sink of one lane, which also describes parsed statements |
//! | `form` | SQL calls for the executor |
//! | `describe`, `judge` | ask the server what a statement means; decide if it may be joined |
//! | `meaning`, `call_catalog` | the answer, and all answers of a lane |
//! | `bound_call` | a statement with the formats of its values, ready to be executed |
//! | `carrier` | turns the raw values of a parameter into one array |
//! | `key` | the row that a call is about, from raw values |
//! | `messages` | messages to the server, and the answers to calls |
//! | `row_plan`, `row_value` | a call as the write of a row, if that stores the same |
//! | `row_of` | the one row that a call may change, for replicas |
//! | `known_tables` | tables that were read for described statements |
//! | `literal` | the literals that may be values of parameters |
//! | `renew` | statements whose tables were changed |

mod bound_call;
mod call_catalog;
mod carrier;
mod describe;
mod form;
mod judge;
mod key;
mod known_tables;
mod literal;
mod meaning;
mod messages;
mod renew;
mod row_of;
mod row_plan;
mod row_value;
mod sink;

pub use sink::StatementSink;
