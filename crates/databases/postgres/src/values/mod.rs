//! Converts values to and from text and arrays, judges if a value fits a column, and computes which
//! row a value names.
//!
//! | module | what it does |
//! | --- | --- |
//! | `text`, `time`, `scalar` | values as PostgreSQL's text |
//! | `encode` | a column of values as a binary array |
//! | `decode` | decodes returned values |
//! | `fit` | judges whether a value fits its column |
//! | `key` | the keys of rows |

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod fit;
pub(crate) mod key;
pub(crate) mod scalar;
pub(crate) mod text;
pub(crate) mod time;
