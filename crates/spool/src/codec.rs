//! Row writes as bytes: what a drain needs to apply them exactly as they were asked for.
//!
//! A write begins with a version byte. Its shape stands in front of its values, in every entry: an
//! entry can be read by itself, whatever was trimmed before it. Numbers are little-endian base-128
//! (LEB128), texts and bytes have their length before them.

mod read;
mod tag;
mod write;

pub use self::read::{Unreadable, decode};
pub use self::write::{encode, to_bytes};

#[cfg(test)]
mod tests;
