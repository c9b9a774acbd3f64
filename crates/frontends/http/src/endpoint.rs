//! The endpoints of the API, and a request's way to one of them.

/// One method of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    InsertRows,
    UpdateRow,
    DeleteRow,
    GetRow,
    Batch,
    Lanes,
    Health,
    Ready,
    Metrics,
    OpenApi,
    Index,
    /// ArangoDB's batch envelope, which takes two methods.
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
    /// Whatever is answered without reaching an endpoint.
    None,
}

/// The methods that occur, and the word for those that do not.
pub(crate) const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "other"];

/// The database that ArangoDB takes where none is named.
pub(crate) const SYSTEM_DATABASE: &str = "_system";

const ROWS: &str = "/v1/tables/{table}/rows";
const ROW: &str = "/v1/tables/{table}/rows/{key}";
const DOCUMENTS: &str = "/_api/document/{collection}";
const DOCUMENT: &str = "/_api/document/{collection}/{key}";

impl Endpoint {
    pub(crate) const ALL: [Self; 23] = [
        Self::InsertRows,
        Self::UpdateRow,
        Self::DeleteRow,
        Self::GetRow,
        Self::Batch,
        Self::Lanes,
        Self::Health,
        Self::Ready,
        Self::Metrics,
        Self::OpenApi,
        Self::Index,
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
        Self::None,
    ];

    /// The place in [`Endpoint::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    pub(crate) fn template(self) -> &'static str {
        match self {
            Self::InsertRows => ROWS,
            Self::UpdateRow | Self::DeleteRow | Self::GetRow => ROW,
            Self::Batch => "/v1/batch",
            Self::Lanes => "/v1/lanes",
            Self::Health => "/healthz",
            Self::Ready => "/readyz",
            Self::Metrics => "/metrics",
            Self::OpenApi => "/openapi.json",
            Self::Index => "/",
            Self::Envelope | Self::PutEnvelope => "/_api/batch",
            Self::CreateIn => "/_api/document",
            Self::CreateDocuments
            | Self::ReplaceDocuments
            | Self::UpdateDocuments
            | Self::RemoveDocuments => DOCUMENTS,
            Self::GetDocument
            | Self::ReplaceDocument
            | Self::UpdateDocument
            | Self::RemoveDocument => DOCUMENT,
            Self::None => "other",
        }
    }

    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::InsertRows
            | Self::Batch
            | Self::Envelope
            | Self::CreateIn
            | Self::CreateDocuments => "POST",
            Self::PutEnvelope | Self::ReplaceDocuments | Self::ReplaceDocument => "PUT",
            Self::UpdateRow | Self::UpdateDocuments | Self::UpdateDocument => "PATCH",
            Self::DeleteRow | Self::RemoveDocuments | Self::RemoveDocument => "DELETE",
            Self::None => "other",
            _ => "GET",
        }
    }

    /// True where the request may have parameters, which its handler reads.
    pub(crate) fn takes_parameters(self) -> bool {
        matches!(
            self,
            Self::InsertRows | Self::UpdateRow | Self::DeleteRow | Self::GetRow
        ) || self.is_document()
    }

    /// True for a request about documents.
    pub(crate) fn is_document(self) -> bool {
        matches!(
            self,
            Self::CreateIn
                | Self::CreateDocuments
                | Self::ReplaceDocuments
                | Self::UpdateDocuments
                | Self::RemoveDocuments
                | Self::GetDocument
                | Self::ReplaceDocument
                | Self::UpdateDocument
                | Self::RemoveDocument
        )
    }
}

/// The endpoint of a request, with the raw (still percent-encoded) parts of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route<'a> {
    pub(crate) endpoint: Endpoint,
    /// The table, or the collection.
    pub(crate) table: &'a str,
    pub(crate) key: &'a str,
    /// The database that an ArangoDB path names, or would mean by naming none.
    pub(crate) database: &'a str,
}

impl<'a> Route<'a> {
    /// The way to an endpoint without a key, of the database that is meant where none is named.
    pub(crate) fn to(endpoint: Endpoint, table: &'a str) -> Self {
        Self {
            endpoint,
            table,
            key: "",
            database: SYSTEM_DATABASE,
        }
    }
}

/// Why a request has no endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// No such path.
    Path,
    /// The path is there, the method is not: those that are, as in `Allow`.
    Method(&'static str),
}
