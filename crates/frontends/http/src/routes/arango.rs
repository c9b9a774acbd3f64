//! ArangoDB's paths: the batch envelope and documents, with or without a database before them.

use http::Method;

use crate::endpoint::{Endpoint, NoRoute, Route, SYSTEM_DATABASE};

/// True where a request is answered in ArangoDB's form: also one that has no endpoint.
pub(crate) fn is_arango(path: &str) -> bool {
    path.starts_with("/_api/") || path.starts_with("/_db/")
}

pub(super) fn find<'a>(method: &Method, path: &'a str) -> Result<Route<'a>, NoRoute> {
    let (database, rest) = match path.strip_prefix("/_db/") {
        None => (SYSTEM_DATABASE, path),
        Some(behind) => {
            let place = behind.find('/').filter(|place| *place > 0);
            behind.split_at(place.ok_or(NoRoute::Path)?)
        }
    };
    let route = api(method, rest.strip_prefix("/_api/").ok_or(NoRoute::Path)?)?;
    Ok(Route { database, ..route })
}

fn api<'a>(method: &Method, rest: &'a str) -> Result<Route<'a>, NoRoute> {
    match rest {
        "batch" => batch(method),
        "document" if *method == Method::POST => Ok(Route::to(Endpoint::CreateIn, "")),
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

fn batch<'a>(method: &Method) -> Result<Route<'a>, NoRoute> {
    match *method {
        Method::POST => Ok(Route::to(Endpoint::Envelope, "")),
        Method::PUT => Ok(Route::to(Endpoint::PutEnvelope, "")),
        _ => Err(NoRoute::Method("POST, PUT")),
    }
}

fn documents<'a>(method: &Method, collection: &'a str) -> Result<Route<'a>, NoRoute> {
    let endpoint = match *method {
        Method::POST => Endpoint::CreateDocuments,
        Method::PUT => Endpoint::ReplaceDocuments,
        Method::PATCH => Endpoint::UpdateDocuments,
        Method::DELETE => Endpoint::RemoveDocuments,
        _ => return Err(NoRoute::Method("POST, PUT, PATCH, DELETE")),
    };
    Ok(Route::to(endpoint, collection))
}

fn document<'a>(method: &Method, collection: &'a str, key: &'a str) -> Result<Route<'a>, NoRoute> {
    let endpoint = match *method {
        Method::GET | Method::HEAD => Endpoint::GetDocument,
        Method::PUT => Endpoint::ReplaceDocument,
        Method::PATCH => Endpoint::UpdateDocument,
        Method::DELETE => Endpoint::RemoveDocument,
        _ => return Err(NoRoute::Method("GET, HEAD, PUT, PATCH, DELETE")),
    };
    Ok(Route {
        key,
        ..Route::to(endpoint, collection)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_may_stand_before_everything() {
        for (path, database) in [("", SYSTEM_DATABASE), ("/_db/my%2Fdb", "my%2Fdb")] {
            let path = format!("{path}/_api/document/c%20c/k");
            let route = crate::routes::find(&Method::HEAD, &path).unwrap();
            assert_eq!(
                (route.endpoint, route.table, route.key, route.database),
                (Endpoint::GetDocument, "c%20c", "k", database)
            );
        }
        let route = find(&Method::PUT, "/_db/x/_api/batch").unwrap();
        assert_eq!(
            (route.endpoint, route.database),
            (Endpoint::PutEnvelope, "x")
        );
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
}
