//! The attributes that ArangoDB adds to each document.

/// The name of the key column.
pub(crate) const KEY: &str = "_key";
/// The name of the attribute with collection and key. A value in the body is ignored.
pub(crate) const ID: &str = "_id";
pub(crate) const REV: &str = "_rev";
