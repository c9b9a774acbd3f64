//! Values as the protocol and as SQL have them, in and out; which of them name the same row.

pub(crate) mod cell;
pub(crate) mod column;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod key;
pub(crate) mod literal;
pub(crate) mod moment;
