//! The HTML page, and a content security policy that forbids it to load anything from elsewhere.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_SECURITY_POLICY, VARY, X_CONTENT_TYPE_OPTIONS};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY};
use http::{HeaderMap, Response};
use sha2::{Digest, Sha256};
use windrow_http::extension::{INDEX, WholeAnswer};

const PAGE: &str = include_str!("page.html");

/// The HTML page with its content security policy.
#[derive(Debug)]
pub(crate) struct Page(HeaderValue);

impl Page {
    pub(crate) fn new() -> Self {
        // The policy has only characters that a header may have.
        let policy = HeaderValue::try_from(policy());
        Self(policy.unwrap_or(HeaderValue::from_static("default-src 'none'")))
    }

    /// Returns the page to clients that accept HTML, and a short text to others.
    pub(crate) fn answer(&self, headers: &HeaderMap) -> WholeAnswer {
        let accepted = headers.get_all(ACCEPT).iter();
        let is_browser = |value: &HeaderValue| {
            let value = value.as_bytes();
            value
                .windows(9)
                .any(|part| part.eq_ignore_ascii_case(b"text/html"))
        };
        let is_browser = accepted.into_iter().any(is_browser);
        let (body, kind) = match is_browser {
            true => (PAGE, "text/html; charset=utf-8"),
            false => (INDEX, "text/plain; charset=utf-8"),
        };
        let mut answer = Response::new(Bytes::from_static(body.as_bytes()));
        let fixed = [
            (CONTENT_TYPE, kind),
            (VARY, "accept"),
            (CACHE_CONTROL, "no-cache"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "no-referrer"),
            (
                HeaderName::from_static("cross-origin-opener-policy"),
                "same-origin",
            ),
            (
                HeaderName::from_static("cross-origin-resource-policy"),
                "same-origin",
            ),
        ];
        for (name, value) in fixed {
            answer
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
        answer
            .headers_mut()
            .insert(CONTENT_SECURITY_POLICY, self.0.clone());
        answer
    }
}

/// Returns a policy that allows the page's own style and script, by their hashes, and requests to
/// this server.
fn policy() -> String {
    format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        hash("style"),
        hash("script"),
    )
}

/// Returns the hash of an element's content, in the form of a content security policy.
fn hash(element: &str) -> String {
    let inside = PAGE.split_once(&format!("<{element}>"));
    let inside = inside.and_then(|(_, rest)| rest.split_once(&format!("</{element}>")));
    let (text, _) = inside.unwrap_or_default();
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_comes_from_outside() {
        for outside in [
            "http://",
            "https://",
            "src=",
            "@import",
            "url(",
            " style=",
            "onclick",
            "innerHTML",
        ] {
            assert!(!PAGE.contains(outside), "{outside}");
        }
        assert_eq!(PAGE.matches("<script>").count(), 1);
        assert_eq!(PAGE.matches("<style>").count(), 1);
    }

    #[test]
    fn the_token_is_kept_where_its_owner_asks_for_it_alone() {
        assert_eq!(PAGE.matches("setItem").count(), 1);
        assert!(PAGE.contains("if ($('keep').checked) kept(store => store.setItem(KEPT, token));"));
        for place in ["sessionStorage", "cookie", "indexedDB", "location"] {
            assert!(!PAGE.contains(place), "{place}");
        }
    }
}
