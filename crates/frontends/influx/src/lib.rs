//! InfluxDB's HTTP API for writes, beside the routes of [`windrow_http`]: a measurement is a table,
//! tags and fields are columns, and the timestamp is the column `time`.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `api` | [`InfluxApi`], the extension of the HTTP server |
//! | `write` | executes the lines of a body and counts those that failed |
//! | `query` | answers the statements that clients send before they write |
//! | `parameters`, `token` | the parameters of a write, the token in InfluxDB's forms |
//! | `point` | converts a line to a row |
//! | `line`, `moment` | reads line protocol and timestamps |
//! | `answer` | answers and errors in InfluxDB's form |

mod answer;
mod api;
mod line;
mod moment;
mod parameters;
mod point;
mod query;
mod token;
mod write;

pub use api::InfluxApi;
