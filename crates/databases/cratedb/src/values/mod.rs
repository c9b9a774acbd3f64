//! Encodes and decodes values, and compares keys.

pub(crate) mod column;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod moment;
