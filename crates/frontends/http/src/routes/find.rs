//! Finds the endpoint of a request. The routes are few, so they are matched by hand. The table also
//! gives the answers 404 and 405, and a test compares it with the OpenAPI description.

use http::Method;

use crate::endpoint::{Endpoint, NoRoute};

type Route<'a> = crate::endpoint::Route<'a, Endpoint>;

/// Finds the endpoint. HEAD counts as GET; the answer's body is not written.
pub(crate) fn find<'a>(method: &Method, path: &'a str) -> Result<Route<'a>, NoRoute> {
    let (table, key) = match path.strip_prefix("/v1/tables/").map(split_table) {
        Some(Some((table, None))) => return rows(method, table),
        Some(Some((table, Some(key)))) => (table, key),
        Some(None) => return Err(NoRoute::Path),
        None => return fixed(method, path),
    };
    let endpoint = match *method {
        Method::GET | Method::HEAD => Endpoint::GetRow,
        Method::PATCH => Endpoint::UpdateRow,
        Method::DELETE => Endpoint::DeleteRow,
        _ => return Err(NoRoute::Method("GET, HEAD, PATCH, DELETE")),
    };
    Ok(Route {
        endpoint,
        table,
        key,
    })
}

fn rows<'a>(method: &Method, table: &'a str) -> Result<Route<'a>, NoRoute> {
    let endpoint = match *method {
        Method::GET | Method::HEAD => Endpoint::ListRows,
        Method::POST => Endpoint::InsertRows,
        _ => return Err(NoRoute::Method("GET, HEAD, POST")),
    };
    Ok(without_key(endpoint, table))
}

fn without_key(endpoint: Endpoint, table: &str) -> Route<'_> {
    Route {
        endpoint,
        table,
        key: "",
    }
}

/// Splits `{table}/rows` or `{table}/rows/{key}`. A slash in a name or a key is written `%2F`.
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

fn fixed<'a>(method: &Method, path: &str) -> Result<Route<'a>, NoRoute> {
    let endpoint = match path {
        "/v1/tables" => Endpoint::ListTables,
        "/v1/batch" => Endpoint::Batch,
        "/v1/lanes" => Endpoint::Lanes,
        "/healthz" => Endpoint::Health,
        "/readyz" => Endpoint::Ready,
        "/metrics" => Endpoint::Metrics,
        "/openapi.json" => Endpoint::OpenApi,
        "/" => Endpoint::Index,
        _ => return Err(NoRoute::Path),
    };
    let (allowed, allow) = match endpoint {
        Endpoint::Batch => (*method == Method::POST, "POST"),
        _ => (
            *method == Method::GET || *method == Method::HEAD,
            "GET, HEAD",
        ),
    };
    if !allowed {
        return Err(NoRoute::Method(allow));
    }
    Ok(without_key(endpoint, ""))
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
    fn where_there_is_no_route_the_error_says_why() {
        for path in [
            "/v2/batch",
            "/v1/tables/t",
            "/v1/tables//rows",
            "/v1/tables/t/rows/",
            "/v1/tables/t/rowsx",
            "/v1/tables/t/rows/1/2",
            "/healthz/",
        ] {
            assert_eq!(find(&Method::GET, path), Err(NoRoute::Path), "{path}");
        }
        assert_eq!(
            find(&Method::PUT, "/v1/batch"),
            Err(NoRoute::Method("POST"))
        );
    }

    /// The description that is served and the router know the same paths and methods.
    #[test]
    fn openapi_and_router_agree() {
        let text = include_str!("../openapi.json");
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
