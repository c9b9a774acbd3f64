//! Refuses requests of web pages. A browser lets any page send requests to any server that it
//! reaches, also to one on loopback. If the page's host name is then pointed to this server (DNS
//! rebinding), the page can read the answers too. So if no token is required, a request is answered
//! only if it calls this server by a known name, and if no page of another origin sent it. If a
//! token is required, a page would have to know the token.

use std::net::{Ipv4Addr, Ipv6Addr};

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, ORIGIN, TRANSFER_ENCODING};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, Method, StatusCode, Version};

use crate::answers::Refusal;
use crate::bodies::kind;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses a request that a page of another origin may have sent. `names`: further names of this
/// server, besides its addresses and `localhost`.
///
/// # Errors
/// 403, with the remedy.
pub(crate) fn check(
    head: &Parts,
    host: Option<&Authority>,
    names: &[Box<str>],
) -> Result<(), Refusal> {
    if let Some(host) = host
        && !is_known(host.host(), names)
    {
        return Err(forbidden(format!(
            "this server is not known as {:?}; if that is a name of its own, add it to http.hosts (or have clients show a token)",
            host.host()
        )));
    }
    let site = head.headers.get_all(FETCH_SITE).iter();
    let is_foreign = |site: &[u8]| site != b"same-origin" && site != b"none";
    if site.map(http::HeaderValue::as_bytes).any(is_foreign) {
        return Err(forbidden(
            "web pages of other origins are not answered: the header Sec-Fetch-Site says that one asks".to_owned(),
        ));
    }
    for origin in head.headers.get_all(ORIGIN) {
        if !is_own(origin.as_bytes(), host) {
            return Err(forbidden(format!(
                "web pages of other origins are not answered: the header Origin is {:?}",
                String::from_utf8_lossy(origin.as_bytes())
            )));
        }
    }
    Ok(())
}

/// Returns the name and port by which a request calls this server, which HTTP/1.1 requires exactly
/// once (RFC 9112, 3.2).
///
/// # Errors
/// 400 if there is none, more than one, or an invalid one.
pub(crate) fn host(head: &Parts) -> Result<Option<Authority>, Refusal> {
    let mut given = head.headers.get_all(HOST).iter();
    let (first, more) = (given.next(), given.next().is_some());
    if more {
        return Err(bad_host("it is there more than once"));
    }
    let Some(value) = first else {
        return match head.version {
            Version::HTTP_10 => Ok(head.uri.authority().cloned()),
            _ => Err(bad_host("it is missing")),
        };
    };
    let named =
        Authority::try_from(value.as_bytes()).map_err(|_| bad_host("it is no name and port"))?;
    // Without a user, the host comes first.
    if value.as_bytes().contains(&b'@') || value.as_bytes().starts_with(b":") {
        return Err(bad_host("it is no name and port"));
    }
    // A request line with a whole URL names the server itself.
    Ok(Some(head.uri.authority().cloned().unwrap_or(named)))
}

/// Refuses a body without a content type, or with one that a page's form can send.
///
/// # Errors
/// 415 with the accepted types.
pub(crate) fn check_kind(head: &Parts) -> Result<(), Refusal> {
    let writes = [Method::POST, Method::PUT, Method::PATCH].contains(&head.method);
    if writes && !head.headers.contains_key(CONTENT_TYPE) && has_body(&head.headers) {
        return Err(kind::missing());
    }
    Ok(())
}

fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(CONTENT_LENGTH);
    headers.contains_key(TRANSFER_ENCODING)
        || length.is_some_and(|length| length.as_bytes() != b"0")
}

/// True for an address (which no other party can redirect), for `localhost`, and for listed names.
fn is_known(host: &str, names: &[Box<str>]) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_address = match bare {
        Some(inside) => inside.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<Ipv4Addr>().is_ok(),
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    is_address
        || host.eq_ignore_ascii_case("localhost")
        || names.iter().any(|name| name.eq_ignore_ascii_case(host))
}

/// True if an origin is this server, by the name in the request.
fn is_own(origin: &[u8], host: Option<&Authority>) -> bool {
    let Some(host) = host else { return false };
    let origin = std::str::from_utf8(origin).unwrap_or_default();
    let own = origin.split_once("://").map(|(_, authority)| authority);
    own.is_some_and(|own| own.eq_ignore_ascii_case(host.as_str()))
}

fn forbidden(message: String) -> Refusal {
    Refusal::protocol(StatusCode::FORBIDDEN, message)
}

fn bad_host(why: &str) -> Refusal {
    Refusal::protocol(
        StatusCode::BAD_REQUEST,
        format!("the header Host must name this server once: {why}"),
    )
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn head(headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::post("/v1/batch");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn status(headers: &[(&str, &str)]) -> u16 {
        let head = head(headers);
        let admitted = host(&head).and_then(|host| check(&head, host.as_ref(), &["db.lan".into()]));
        admitted.map_or_else(|refusal| refusal.status().as_u16(), |()| 200)
    }

    #[test]
    fn only_known_names_are_answered() {
        for known in [
            "localhost",
            "LOCALHOST:8420",
            "127.0.0.1:1",
            "192.168.1.9",
            "[::1]:8420",
            "db.lan:80",
            "localhost.",
        ] {
            assert_eq!(status(&[("host", known)]), 200, "{known}");
        }
        for stranger in [
            "evil.example",
            "127.0.0.1.evil.example:8420",
            "localhost.evil.example",
            "lan",
        ] {
            assert_eq!(status(&[("host", stranger)]), 403, "{stranger}");
        }
    }

    #[test]
    fn a_host_is_named_once_and_well() {
        assert_eq!(status(&[]), 400);
        assert_eq!(status(&[("host", "localhost"), ("host", "localhost")]), 400);
        for bad in ["", "a b", "user@localhost", "localhost:8420/x", ":80"] {
            assert_eq!(status(&[("host", bad)]), 400, "{bad}");
        }
    }

    #[test]
    fn pages_of_other_origins_are_kept_out() {
        let with = |name, value| status(&[("host", "localhost:8420"), (name, value)]);
        for foreign in [
            "https://evil.example",
            "null",
            "http://localhost:3000",
            "http://localhost",
            "localhost:8420",
        ] {
            assert_eq!(with("origin", foreign), 403, "{foreign}");
        }
        assert_eq!(with("origin", "http://localhost:8420"), 200);
        for (site, expected) in [
            ("cross-site", 403),
            ("same-site", 403),
            ("same-origin", 200),
            ("none", 200),
        ] {
            assert_eq!(with("sec-fetch-site", site), expected, "{site}");
        }
    }
}
