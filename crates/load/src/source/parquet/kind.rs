//! What a value of Parquet is.

/// What a value is; its text, if it has one, was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Bool(bool),
    Number,
    Text,
    Json,
    /// See [`super::column::Column::bytes`].
    Bytes,
}
