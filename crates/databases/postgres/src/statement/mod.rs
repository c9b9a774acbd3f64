//! A write as a statement whose parts are known, and the SQL that executes many such writes at
//! once. Used for rows and for SQL calls. Nothing here reads values.
//!
//! | module | what it does |
//! | --- | --- |
//! | `of_shape` | the statement of a row write |
//! | `parsed` | reads single parts of a statement |
//! | `defaults` | lists the defaults that writes of a statement use |
//! | `level` | decides what writes of a statement may share |
//! | `clock_use` | finds where a statement reads the transaction's clock |
//! | `set` | the set-based statement |

pub(crate) mod clock_use;
pub(crate) mod defaults;
pub(crate) mod level;
pub(crate) mod of_shape;
pub(crate) mod parsed;
pub(crate) mod set;
