//! The endpoints of the API.

use windrow_http::extension::{ExtraEndpoint, ExtraKind};

/// A method of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// The batch envelope, by POST or PUT.
    Envelope,
    PutEnvelope,
    /// Creates documents in the collection that `?collection=` names.
    CreateIn,
    CreateDocuments,
    ReplaceDocuments,
    UpdateDocuments,
    RemoveDocuments,
    GetDocument,
    ReplaceDocument,
    UpdateDocument,
    RemoveDocument,
}

const BATCH: &str = "/_api/batch";
const DOCUMENTS: &str = "/_api/document/{collection}";
const DOCUMENT: &str = "/_api/document/{collection}/{key}";

/// The description of each of [`Endpoint::ALL`], in the same order, for the HTTP frontend.
pub(crate) const ENDPOINTS: [ExtraEndpoint; 11] = [
    batch("POST"),
    batch("PUT"),
    documents("POST", "/_api/document"),
    documents("POST", DOCUMENTS),
    documents("PUT", DOCUMENTS),
    documents("PATCH", DOCUMENTS),
    documents("DELETE", DOCUMENTS),
    documents("GET", DOCUMENT),
    documents("PUT", DOCUMENT),
    documents("PATCH", DOCUMENT),
    documents("DELETE", DOCUMENT),
];

const fn batch(method: &'static str) -> ExtraEndpoint {
    ExtraEndpoint::new(method, BATCH, ExtraKind::Envelope)
}

const fn documents(method: &'static str, template: &'static str) -> ExtraEndpoint {
    ExtraEndpoint::new(method, template, ExtraKind::Plain)
}

impl Endpoint {
    pub(crate) const ALL: [Self; 11] = [
        Self::Envelope,
        Self::PutEnvelope,
        Self::CreateIn,
        Self::CreateDocuments,
        Self::ReplaceDocuments,
        Self::UpdateDocuments,
        Self::RemoveDocuments,
        Self::GetDocument,
        Self::ReplaceDocument,
        Self::UpdateDocument,
        Self::RemoveDocument,
    ];

    /// Returns the position in [`Endpoint::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}
