//! Statements as clients prepare them: what their texts say, read once for all sessions, and the
//! names that a session gives them.
//!
//! | module | what is there |
//! | --- | --- |
//! | `names` | the names of statements in EXECUTE and DEALLOCATE |
//! | `readings` | what was read from texts, shared by all sessions |
//! | `entry` | the prepared statements of one session, and the types that were fixed for them |

mod entry;
pub(crate) mod names;
mod readings;

pub(crate) use entry::{ClientName, Entry, FixedTypes, Statements, too_many};
pub(crate) use readings::{Prepared, Readings, Simple};
