//! The endpoints of the API.

use windrow_http::extension::{ExtraEndpoint, ExtraKind};

/// One method of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// The batch envelope, which takes two methods.
    Envelope,
    PutEnvelope,
    /// Documents of the collection that `?collection=` names.
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

/// [`Endpoint::ALL`], in that order, as the HTTP frontend sees them.
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
    ExtraEndpoint {
        method,
        template: BATCH,
        kind: ExtraKind::Envelope,
    }
}

const fn documents(method: &'static str, template: &'static str) -> ExtraEndpoint {
    ExtraEndpoint {
        method,
        template,
        kind: ExtraKind::Plain,
    }
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

    /// The place in [`Endpoint::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}
