//! Encodes and decodes values, and identifies the row of a write.

pub(crate) mod cell;
pub(crate) mod column;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod key;
pub(crate) mod literal;
pub(crate) mod moment;
