//! The bearer token.

use std::sync::{Arc, PoisonError, RwLock};

use http::HeaderMap;
use http::header::AUTHORIZATION;
use subtle::ConstantTimeEq;
use windrow_core::Secret;

/// The token that clients must show, if they must. Clones share it, so that it can be replaced
/// while clients are served.
#[derive(Clone, Debug)]
pub struct Token(Arc<RwLock<Option<Secret>>>);

impl Token {
    pub(crate) fn new(token: Option<Secret>) -> Self {
        Self(Arc::new(RwLock::new(token)))
    }

    /// True if clients must show one.
    pub fn is_set(&self) -> bool {
        self.current().is_some()
    }

    /// Puts another one in its place, for requests from now on. False, and nothing is changed,
    /// where one would be added or taken away: who is let in without a token was decided when the
    /// server began to listen.
    pub fn replace(&self, token: Option<Secret>) -> bool {
        let may = self.is_set() == token.is_some();
        if may {
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = token;
        }
        may
    }

    /// True if the request shows the token. The comparison takes the same time whatever is
    /// shown, but for its length.
    pub(crate) fn allows(&self, headers: &HeaderMap) -> bool {
        let token = self.current();
        let Some(token) = token.as_ref() else {
            return true;
        };
        headers
            .get(AUTHORIZATION)
            .and_then(|value| bearer(value.as_bytes()))
            .is_some_and(|shown| shown.ct_eq(token.reveal().as_bytes()).into())
    }

    fn current(&self) -> std::sync::RwLockReadGuard<'_, Option<Secret>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the credentials behind the scheme, whose name has no case (RFC 9110, 11.1).
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
        let token = Token::new(Some(Secret::from("abc")));
        let shows = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            token.allows(&headers)
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
        assert!(!token.allows(&HeaderMap::new()));
        assert!(Token::new(None).allows(&HeaderMap::new()));
    }

    #[test]
    fn a_token_is_replaced_but_not_added_nor_taken_away() {
        let token = Token::new(Some("abc".into()));
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, "Bearer new".parse().unwrap());
        assert!(!token.allows(&headers));
        assert!(token.replace(Some("new".into())) && token.allows(&headers));
        assert!(!token.replace(None) && token.is_set());
        let open = Token::new(None);
        assert!(!open.replace(Some("new".into())) && !open.is_set());
        assert!(open.replace(None));
    }
}
