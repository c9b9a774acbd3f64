//! ArangoDB's paths: the batch envelope and documents, with or without a database before them.

use http::Method;
use windrow_http::extension::{NoRoute, Route};

use crate::endpoint::Endpoint;

/// The database of paths that name none.
const SYSTEM_DATABASE: &str = "_system";

type Found<'a> = Result<Route<'a, Endpoint>, NoRoute>;

/// Finds the endpoint of a path. The route's table is the collection.
pub(crate) fn find<'a>(method: &Method, path: &'a str) -> Found<'a> {
    let (_, rest) = split_database(path).ok_or(NoRoute::Path)?;
    api(method, rest.strip_prefix("/_api/").ok_or(NoRoute::Path)?)
}

/// Returns the database of a path, percent-encoded; [`SYSTEM_DATABASE`] if the path names none.
pub(crate) fn database(path: &str) -> &str {
    split_database(path).map_or(SYSTEM_DATABASE, |(database, _)| database)
}

fn split_database(path: &str) -> Option<(&str, &str)> {
    match path.strip_prefix("/_db/") {
        None => Some((SYSTEM_DATABASE, path)),
        Some(behind) => {
            let place = behind.find('/').filter(|place| *place > 0);
            Some(behind.split_at(place?))
        }
    }
}

fn api<'a>(method: &Method, rest: &'a str) -> Found<'a> {
    match rest {
        "batch" => batch(method),
        "document" if *method == Method::POST => Ok(without_key(Endpoint::CreateIn, "")),
        "document" => Err(NoRoute::Method("POST")),
        _ => {
            let names = rest.strip_prefix("document/").ok_or(NoRoute::Path)?;
            match names.split_once('/') {
                None if !names.is_empty() => documents(method, names),
                Some((collection, key))
                    if !collection.is_empty() && !key.is_empty() && !key.contains('/') =>
                {
                    document(method, collection, key)
                }
                _ => Err(NoRoute::Path),
            }
        }
    }
}

fn without_key(endpoint: Endpoint, table: &str) -> Route<'_, Endpoint> {
    Route {
        endpoint,
        table,
        key: "",
    }
}

fn batch<'a>(method: &Method) -> Found<'a> {
    match *method {
        Method::POST => Ok(without_key(Endpoint::Envelope, "")),
        Method::PUT => Ok(without_key(Endpoint::PutEnvelope, "")),
        _ => Err(NoRoute::Method("POST, PUT")),
    }
}

fn documents<'a>(method: &Method, collection: &'a str) -> Found<'a> {
    let endpoint = match *method {
        Method::POST => Endpoint::CreateDocuments,
        Method::PUT => Endpoint::ReplaceDocuments,
        Method::PATCH => Endpoint::UpdateDocuments,
        Method::DELETE => Endpoint::RemoveDocuments,
        _ => return Err(NoRoute::Method("POST, PUT, PATCH, DELETE")),
    };
    Ok(without_key(endpoint, collection))
}

fn document<'a>(method: &Method, table: &'a str, key: &'a str) -> Found<'a> {
    let endpoint = match *method {
        Method::GET | Method::HEAD => Endpoint::GetDocument,
        Method::PUT => Endpoint::ReplaceDocument,
        Method::PATCH => Endpoint::UpdateDocument,
        Method::DELETE => Endpoint::RemoveDocument,
        _ => return Err(NoRoute::Method("GET, HEAD, PUT, PATCH, DELETE")),
    };
    Ok(Route {
        endpoint,
        table,
        key,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::ENDPOINTS;

    #[test]
    fn a_database_may_stand_before_everything() {
        for (path, named) in [("", SYSTEM_DATABASE), ("/_db/my%2Fdb", "my%2Fdb")] {
            let path = format!("{path}/_api/document/c%20c/k");
            let route = find(&Method::HEAD, &path).unwrap();
            assert_eq!(
                (route.endpoint, route.table, route.key, database(&path)),
                (Endpoint::GetDocument, "c%20c", "k", named)
            );
        }
        let route = find(&Method::PUT, "/_db/x/_api/batch").unwrap();
        assert_eq!(route.endpoint, Endpoint::PutEnvelope);
    }

    #[test]
    fn where_there_is_no_route_the_error_says_why() {
        for path in [
            "/_api/",
            "/_api/collection",
            "/_api/document/",
            "/_api/document//k",
            "/_api/document/c/",
            "/_api/document/c/k/x",
            "/_db/",
            "/_db//_api/batch",
            "/_db/x/v1/batch",
        ] {
            assert_eq!(find(&Method::POST, path), Err(NoRoute::Path), "{path}");
        }
        for (path, allowed) in [
            ("/_api/batch", "POST, PUT"),
            ("/_api/document", "POST"),
            ("/_api/document/c", "POST, PUT, PATCH, DELETE"),
        ] {
            assert_eq!(find(&Method::GET, path), Err(NoRoute::Method(allowed)));
        }
    }

    #[test]
    fn every_endpoint_is_found_by_its_own_template() {
        for (index, told) in ENDPOINTS.iter().enumerate() {
            let route = find(&told.method.parse().unwrap(), told.template).unwrap();
            assert_eq!(route.endpoint, Endpoint::ALL[index]);
            assert_eq!(route.endpoint.index(), index);
        }
    }

    /// The description that is served and the router know the same paths and methods.
    #[test]
    fn openapi_and_router_agree() {
        let doc: serde_json::Value = serde_json::from_str(include_str!("openapi.json")).unwrap();
        let paths = doc["paths"].as_object().unwrap();
        let mut described: Vec<(&str, String)> = paths
            .iter()
            .flat_map(|(path, item)| {
                let methods = item.as_object().unwrap().keys();
                methods.map(|method| (path.as_str(), method.to_uppercase()))
            })
            .filter(|(_, method)| method != "PARAMETERS")
            .collect();
        let mut known: Vec<_> = ENDPOINTS
            .iter()
            .map(|told| (told.template, told.method.to_owned()))
            .collect();
        described.sort_unstable();
        known.sort_unstable();
        assert_eq!(described, known);
    }
}
