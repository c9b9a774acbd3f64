//! Kinds of values in Parquet.

/// The kind of a value whose text, if there is one, was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Null,
    Bool(bool),
    Number,
    Text,
    Json,
    /// See [`super::column::Column::bytes`].
    Bytes,
}
