//! Code shared by the databases.
//!
//! | module | content |
//! | --- | --- |
//! | [`driver`] | the port: the URLs of a database, and how it is opened |
//! | [`options`] | the settings of a database |
//! | [`quote`] | identifiers in SQL |
//! | [`plan`] | the order in which the writes of a batch become statements |
//! | [`sources`] | the units of a batch that come from one client |
//! | [`described`] | descriptions of tables that executors share |
//! | [`question`] | the connection for questions about statements |
//! | [`named_key`] | keys that a write names by their columns |
//! | [`shape_faults`] | faults of shapes and rows that do not fit their tables |
//! | [`infer`], [`new_table`], [`demand`] | tables and columns that are created from rows |
//! | [`binary`], [`decimal`], [`iso_moment`], [`truth`] | values as texts |
//! | [`members`] | JSON objects in their order |
//! | [`moved`] | texts and faults of moves |
//! | [`web`] | HTTP, for databases that speak it |

pub mod binary;
pub mod decimal;
pub mod demand;
pub mod described;
pub mod driver;
pub mod infer;
pub mod iso_moment;
pub mod members;
pub mod moved;
pub mod named_key;
pub mod new_table;
pub mod options;
pub mod page;
pub mod plan;
pub mod question;
pub mod quote;
pub mod shape_faults;
pub mod sources;
pub mod truth;
#[cfg(feature = "web")]
pub mod web;

pub use driver::Driver;
pub use options::{Options, Synchronous};
