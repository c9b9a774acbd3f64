//! The tables that a move keeps in the database of its source.

/// The table of batches that were taken out of the source for another database, and whose markers
/// may still be there. It lies in the database of the source. Its columns: `batch` (text, its key)
/// and `moved_at` (when, in UTC).
pub const BATCHES: &str = "windrow_batches";
