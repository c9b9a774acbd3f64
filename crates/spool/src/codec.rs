//! Row writes of a unit as bytes, complete enough to apply them exactly as the client asked.
//!
//! An entry contains the writes of one unit, which commit together. It begins with a version byte
//! and the number of writes. Each write is the number of its shape, the number of its values, and
//! the values. Number 0 is followed by a new shape, with its length first; numbers from 1 mean an
//! earlier shape of the same entry. So an entry can be read by itself, whatever was trimmed before
//! it. Numbers are little-endian base-128 (LEB128); texts and bytes have their length first.

mod read;
mod tag;
mod write;

pub use self::read::{Decoder, Unreadable, decode_unit};
pub use self::write::{Encoder, encode_unit};

#[cfg(test)]
mod tests;
