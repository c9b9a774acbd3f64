//! The tables that a move keeps in the database of its source.

/// The table of dead letters, in the database of the source, where the connection's own tables lie.
///
/// Its columns: `id` (its key, counted up by the database), `moved_at` (when, in UTC), `source` and
/// `destination` (tables, as text), `key` and `row` (JSON: an array of the key's values, an object
/// of all columns), `code`, `message` and `constraint` (of the fault; the last may be NULL).
pub const REJECTED: &str = "windrow_rejected";

/// The table of batches that were taken out of the source for another database, and whose markers
/// may still be there. It lies in the database of the source. Its columns: `batch` (text, its key)
/// and `moved_at` (when, in UTC).
pub const BATCHES: &str = "windrow_batches";
