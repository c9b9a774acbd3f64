//! SQL calls: the meaning of SQL clients' statements, and their values.
//!
//! | module | what it does |
//! | --- | --- |
//! | `describe`, `judge` | ask the server for the meaning of a statement; decide if it may be joined |
//! | `meaning`, `call_catalog` | the answer, and all answers of a lane |
//! | `bound_call` | a statement with the formats of its values, ready to be executed |
//! | `carrier` | turns the raw values of a parameter into one array |
//! | `key` | the row that a call is about, from raw values |
//! | `row_plan`, `row_value` | a call as the write of a row, if that stores the same |
//! | `row_of` | the one row that a call may change, for replicas |
//! | `known_tables` | tables that were read for described statements |
//! | `literal` | the literals that may be values of parameters |
//! | `preview` | the plan by which an INSERT is answered before it is executed |
//! | `preview_part` | the place of a statement in such a plan |
//! | `late_write` | a write that is executed as late as at COMMIT |
//! | `given_values` | the values of a call that is answered before it is executed |
//! | `renew` | statements whose tables were changed |

pub(crate) mod bound_call;
pub(crate) mod call_catalog;
mod carrier;
pub(crate) mod describe;
mod given_values;
mod judge;
mod key;
mod known_tables;
pub(crate) mod late_write;
mod literal;
pub(crate) mod meaning;
pub(crate) mod preview;
mod preview_part;
pub(crate) mod renew;
mod row_of;
mod row_plan;
mod row_value;
