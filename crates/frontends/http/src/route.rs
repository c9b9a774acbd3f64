//! Which request it is. The routes are few, so they are matched by hand; the table also makes the
//! answers of 404 and 405, and a test holds it against the OpenAPI description.

mod arango;

use http::Method;

pub(crate) use arango::is_arango;

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

/// A request that has a place to go, with the raw (still percent-encoded) parts of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route<'a> {
    pub(crate) endpoint: Endpoint,
    /// The table, or the collection.
    pub(crate) table: &'a str,
    pub(crate) key: &'a str,
    /// The database that an ArangoDB path names, or would mean by naming none.
    pub(crate) database: &'a str,
}

/// A request that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// No such path.
    Path,
    /// The path is there, the method is not: those that are, as in `Allow`.
    Method(&'static str),
}

/// Finds the endpoint. HEAD is taken as GET; the answer's body is left out when it is written.
pub(crate) fn find<'a>(method: &Method, path: &'a str) -> Result<Route<'a>, Lost> {
    if is_arango(path) {
        return arango::find(method, path);
    }
    let (table, key) = match path.strip_prefix("/v1/tables/").map(split_table) {
        Some(Some((table, None))) => return rows(method, table),
        Some(Some((table, Some(key)))) => (table, key),
        Some(None) => return Err(Lost::Path),
        None => return fixed(method, path),
    };
    let endpoint = match *method {
        Method::GET | Method::HEAD => Endpoint::GetRow,
        Method::PATCH => Endpoint::UpdateRow,
        Method::DELETE => Endpoint::DeleteRow,
        _ => return Err(Lost::Method("GET, HEAD, PATCH, DELETE")),
    };
    Ok(Route {
        key,
        ..Route::to(endpoint, table)
    })
}

impl<'a> Route<'a> {
    fn to(endpoint: Endpoint, table: &'a str) -> Self {
        Self {
            endpoint,
            table,
            key: "",
            database: arango::SYSTEM,
        }
    }
}

fn rows<'a>(method: &Method, table: &'a str) -> Result<Route<'a>, Lost> {
    if *method != Method::POST {
        return Err(Lost::Method("POST"));
    }
    Ok(Route::to(Endpoint::InsertRows, table))
}

/// `{table}/rows` or `{table}/rows/{key}`. A slash in a name or a key is written `%2F`.
fn split_table(rest: &str) -> Option<(&str, Option<&str>)> {
    let (table, rest) = rest.split_once('/')?;
    if table.is_empty() {
        return None;
    }
    match rest.strip_prefix("rows")? {
        "" => Some((table, None)),
        key => key
            .strip_prefix('/')
            .filter(|key| !key.is_empty() && !key.contains('/'))
            .map(|key| (table, Some(key))),
    }
}

fn fixed<'a>(method: &Method, path: &str) -> Result<Route<'a>, Lost> {
    let endpoint = match path {
        "/v1/batch" => Endpoint::Batch,
        "/v1/lanes" => Endpoint::Lanes,
        "/healthz" => Endpoint::Health,
        "/readyz" => Endpoint::Ready,
        "/metrics" => Endpoint::Metrics,
        "/openapi.json" => Endpoint::OpenApi,
        "/" => Endpoint::Index,
        _ => return Err(Lost::Path),
    };
    let (allowed, allow) = match endpoint {
        Endpoint::Batch => (*method == Method::POST, "POST"),
        _ => (
            *method == Method::GET || *method == Method::HEAD,
            "GET, HEAD",
        ),
    };
    if !allowed {
        return Err(Lost::Method(allow));
    }
    Ok(Route::to(endpoint, ""))
}

/// All routes, one a line, for those who got lost.
pub(crate) fn list() -> String {
    Endpoint::ALL
        .iter()
        .filter(|e| **e != Endpoint::None)
        .map(|e| format!("{} {}", e.method(), e.template()))
        .collect::<Vec<_>>()
        .join(", ")
        + " (those under /_api also under /_db/{database})"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(method: &Method, path: &'static str) -> (Endpoint, &'static str, &'static str) {
        let route = find(method, path).unwrap();
        (route.endpoint, route.table, route.key)
    }

    #[test]
    fn every_endpoint_is_found_by_its_own_template() {
        for (index, endpoint) in Endpoint::ALL.into_iter().enumerate() {
            assert_eq!(endpoint.index(), index);
            if endpoint != Endpoint::None {
                let method = endpoint.method().parse().unwrap();
                let route = find(&method, endpoint.template()).unwrap();
                assert_eq!(route.endpoint, endpoint);
            }
        }
    }

    #[test]
    fn parts_stay_raw() {
        assert_eq!(
            found(&Method::GET, "/v1/tables/a%2Fb/rows/1,x%2Cy"),
            (Endpoint::GetRow, "a%2Fb", "1,x%2Cy")
        );
        assert_eq!(
            found(&Method::HEAD, "/v1/tables/t/rows/1").0,
            Endpoint::GetRow
        );
    }

    #[test]
    fn the_lost_are_told_why() {
        for path in [
            "/v2/batch",
            "/v1/tables/t",
            "/v1/tables//rows",
            "/v1/tables/t/rows/",
            "/v1/tables/t/rowsx",
            "/v1/tables/t/rows/1/2",
            "/healthz/",
        ] {
            assert_eq!(find(&Method::GET, path), Err(Lost::Path), "{path}");
        }
        assert_eq!(find(&Method::PUT, "/v1/batch"), Err(Lost::Method("POST")));
    }

    /// The description that is served and the router know the same paths and methods.
    #[test]
    fn openapi_and_router_agree() {
        let text = include_str!("openapi.json");
        let doc: serde_json::Value = serde_json::from_str(text).unwrap();
        let mut described = Vec::new();
        for (path, item) in doc["paths"].as_object().unwrap() {
            for method in item.as_object().unwrap().keys() {
                if method != "parameters" {
                    described.push((path.clone(), method.to_uppercase()));
                }
            }
        }
        for (path, method) in &described {
            let route = find(&method.parse().unwrap(), path).unwrap();
            assert_eq!(
                (route.endpoint.template(), route.endpoint.method()),
                (path.as_str(), method.as_str())
            );
        }
        for endpoint in Endpoint::ALL.into_iter().filter(|e| *e != Endpoint::None) {
            let entry = (endpoint.template().to_owned(), endpoint.method().to_owned());
            assert!(described.contains(&entry), "{entry:?} is not described");
        }
    }
}
