//! Encodes and decodes values.

pub(crate) mod bind;
pub(crate) mod column;
pub(crate) mod moment;
pub(crate) mod packed;
pub(crate) mod read;
pub(crate) mod spelling;
