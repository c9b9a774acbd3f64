//! Converts values to and from text and arrays, judges if a value fits a column, and computes which
//! row a value names.
//!
//! | module | what it does |
//! | --- | --- |
//! | `text`, `time`, `scalar` | values as PostgreSQL's text |
//! | `encode` | a column of values as a binary array |
//! | `decode` | what comes back |
//! | `fit` | will the column take it? |
//! | `key` | which row a value names |

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod fit;
pub(crate) mod key;
pub(crate) mod scalar;
pub(crate) mod text;
pub(crate) mod time;
