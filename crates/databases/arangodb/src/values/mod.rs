//! Documents, in and out.

pub(crate) mod decode;
pub(crate) mod encode;
