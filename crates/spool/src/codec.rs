//! Units of row writes as bytes: what a drain needs to apply them exactly as they were asked for.
//!
//! An entry holds the writes of one unit, which commit together. It begins with a version byte and
//! the number of writes. Each write is the place of its shape, and its values with their number
//! before them. The place is 0 where the shape itself follows, with its length before it, and else
//! the number, from 1, of one that has stood in this entry. So an entry can be read by itself,
//! whatever was trimmed before it. Numbers are little-endian base-128 (LEB128), texts and bytes
//! have their length before them.

mod read;
mod tag;
mod write;

pub use self::read::{Decoder, Unreadable, decode_unit};
pub use self::write::{Encoder, encode_unit};

#[cfg(test)]
mod tests;
