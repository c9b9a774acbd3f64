//! The endpoints of the API, and the endpoint of a request.

/// One method of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    ListTables,
    ListRows,
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
    /// No endpoint, for requests that are answered before they reach one.
    None,
}

const ROWS: &str = "/v1/tables/{table}/rows";
const ROW: &str = "/v1/tables/{table}/rows/{key}";

impl Endpoint {
    pub(crate) const ALL: [Self; 14] = [
        Self::ListTables,
        Self::ListRows,
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
        Self::None,
    ];

    /// Returns the index in [`Endpoint::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    pub(crate) fn template(self) -> &'static str {
        match self {
            Self::ListTables => "/v1/tables",
            Self::InsertRows | Self::ListRows => ROWS,
            Self::UpdateRow | Self::DeleteRow | Self::GetRow => ROW,
            Self::Batch => "/v1/batch",
            Self::Lanes => "/v1/lanes",
            Self::Health => "/healthz",
            Self::Ready => "/readyz",
            Self::Metrics => "/metrics",
            Self::OpenApi => "/openapi.json",
            Self::Index => "/",
            Self::None => "other",
        }
    }

    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::InsertRows | Self::Batch => "POST",
            Self::UpdateRow => "PATCH",
            Self::DeleteRow => "DELETE",
            Self::None => "other",
            _ => "GET",
        }
    }

    /// True if the request may have parameters, which its handler reads.
    pub(crate) fn takes_parameters(self) -> bool {
        self.is_about_rows()
    }

    /// True if rows are written or read. False if the request is about the gateway itself.
    pub(crate) fn is_about_rows(self) -> bool {
        matches!(
            self,
            Self::ListRows
                | Self::InsertRows
                | Self::UpdateRow
                | Self::DeleteRow
                | Self::GetRow
                | Self::Batch
        )
    }
}

/// One method of one path that an extension answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtraEndpoint {
    /// The method, in capitals.
    pub method: &'static str,
    /// The path, with names in braces where it varies.
    pub template: &'static str,
    /// The way in which the endpoint is answered.
    pub kind: ExtraKind,
}

impl ExtraEndpoint {
    /// Returns an endpoint.
    pub const fn new(method: &'static str, template: &'static str, kind: ExtraKind) -> Self {
        Self {
            method,
            template,
            kind,
        }
    }
}

/// The way in which an endpoint of an extension is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtraKind {
    /// By [`Extension::run`](crate::extension::Extension::run), for clients with the token.
    Plain,
    /// As [`ExtraKind::Plain`]; a body needs no content type.
    Untyped,
    /// As [`ExtraKind::Plain`], also without the token: the answer holds no data of this gateway.
    Open,
    /// As [`ExtraKind::Plain`], about the gateway itself: a token needs the right to metrics.
    Gateway,
    /// The body is an envelope of whole requests, which the frontend has answered one by one.
    Envelope,
    /// The answer goes on until the client leaves, by
    /// [`Extension::follow`](crate::extension::Extension::follow).
    Live,
}

/// The endpoint of a request, with the raw (still percent-encoded) parts of its path. `E`: one of
/// the frontend's own endpoints, or the index of an extension's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route<'a, E> {
    /// The endpoint.
    pub endpoint: E,
    /// The table; empty if the path names none.
    pub table: &'a str,
    /// The key of a row; empty if the path names none.
    pub key: &'a str,
}

/// The reason why a request has no endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// The path does not exist.
    Path,
    /// The path does not have the method. Contains its methods, as in `Allow`.
    Method(&'static str),
}
