//! The bearer token.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use subtle::ConstantTimeEq;
use windrow_core::Secret;

/// True where the request shows the token. The comparison takes the same time whatever is shown,
/// but for its length.
pub(crate) fn allows(token: Option<&Secret>, headers: &HeaderMap) -> bool {
    let Some(token) = token else {
        return true;
    };
    headers
        .get(AUTHORIZATION)
        .and_then(|value| bearer(value.as_bytes()))
        .is_some_and(|shown| shown.ct_eq(token.reveal().as_bytes()).into())
}

/// The credentials behind the scheme, whose name has no case (RFC 9110, 11.1).
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| rest.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_let_in() {
        let token = Secret::from("abc");
        let shows = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            allows(Some(&token), &headers)
        };
        assert!(shows("Bearer abc") && shows("bearer  abc"));
        for bad in [
            "Bearer ab",
            "Bearer abcd",
            "Basic abc",
            "Bearer",
            "abc",
            "Bearer ",
        ] {
            assert!(!shows(bad), "{bad}");
        }
        assert!(!allows(Some(&token), &HeaderMap::new()));
        assert!(allows(None, &HeaderMap::new()));
    }
}
