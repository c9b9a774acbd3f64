//! The attributes that ArangoDB makes itself.

/// The column that is the key.
pub(super) const KEY: &str = "_key";
/// Those of a body are not written.
pub(super) const ID: &str = "_id";
pub(super) const REV: &str = "_rev";
