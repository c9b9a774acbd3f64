//! Collections and documents, in memory.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A document, without `_id`.
pub(super) type Document = Map<String, Value>;

/// An error of one document: number and message.
#[derive(Debug)]
pub(super) struct DocumentError(pub(super) u16, pub(super) String);

/// All there is.
#[derive(Debug, Default)]
pub(super) struct Collections {
    pub(super) collections: BTreeMap<String, Collection>,
    pub(super) login: Option<(String, String)>,
    /// The generation of tokens that is valid.
    pub(super) tokens: u64,
    pub(super) conflicts: Vec<String>,
    pub(super) revision: u64,
}

/// A collection.
#[derive(Debug, Default)]
pub(super) struct Collection {
    pub(super) documents: BTreeMap<String, Document>,
    pub(super) unique: Vec<String>,
}

impl Collection {
    /// Returns the document of a key.
    pub(super) fn get(&self, key: &str) -> Result<&Document, DocumentError> {
        let missing = || DocumentError(1202, "document not found".to_owned());
        self.documents.get(key).ok_or_else(missing)
    }

    /// Checks that a document may have these values.
    pub(super) fn check(&self, key: &str, document: &Document) -> Result<(), DocumentError> {
        for attribute in &self.unique {
            let value = document.get(attribute);
            let same = |(other, known): (&String, &Document)| {
                *other != *key && value.is_some() && known.get(attribute) == value
            };
            if let Some((other, _)) = self.documents.iter().find(|entry| same(*entry)) {
                return Err(taken(
                    &format!("{attribute}_1 of type persistent over '{attribute}'"),
                    other,
                ));
            }
        }
        Ok(())
    }
}

/// Returns a unique violation.
pub(super) fn taken(index: &str, key: &str) -> DocumentError {
    DocumentError(
        1210,
        format!("unique constraint violated - in index {index}; conflicting key: {key}"),
    )
}

/// The primary index, as messages have it.
pub(super) const PRIMARY: &str = "primary of type primary over '_key'";

/// Returns true if a text can be a key.
pub(super) fn is_key(key: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-:.@()+,=;$!*'%".contains(c);
    !key.is_empty() && key.len() <= 254 && key.chars().all(allowed)
}
