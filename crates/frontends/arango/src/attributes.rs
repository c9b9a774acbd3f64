//! The attributes that ArangoDB makes itself.

/// The column that is the key.
pub(crate) const KEY: &str = "_key";
/// Those of a body are not written.
pub(crate) const ID: &str = "_id";
pub(crate) const REV: &str = "_rev";
