//! Encodes and decodes documents.

pub(crate) mod decode;
pub(crate) mod encode;
