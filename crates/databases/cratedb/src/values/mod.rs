//! Values, in and out; which of them name the same row.

pub(crate) mod column;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod moment;
