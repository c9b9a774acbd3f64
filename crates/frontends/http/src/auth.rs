//! The bearer tokens that clients must show.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use parking_lot::RwLock;
use subtle::ConstantTimeEq;
use windrow_core::{Secret, TableName};

use crate::rights::Rights;

/// The accepted tokens; none if clients need none.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    /// The token that may do everything.
    pub all: Option<Secret>,
    /// Tokens with limited rights.
    pub named: Vec<(Secret, Arc<Rights>)>,
}

impl Tokens {
    /// Returns the tables into which named tokens may insert rows.
    pub fn written_tables(&self) -> impl Iterator<Item = &TableName> {
        let all = self.named.iter();
        all.flat_map(|(_, rights)| rights.written_tables())
    }

    /// True if there are no tokens, so that every client is accepted.
    pub fn is_empty(&self) -> bool {
        self.all.is_none() && self.named.is_empty()
    }
}

/// The tokens of a running server. Clones share them, so that they can be replaced while the server
/// runs.
#[derive(Clone, Debug)]
pub struct Admission(Arc<RwLock<Tokens>>);

impl Admission {
    pub(crate) fn new(tokens: Tokens) -> Self {
        Self(Arc::new(RwLock::new(tokens)))
    }

    /// True if clients must show a token.
    pub fn is_set(&self) -> bool {
        !self.0.read().is_empty()
    }

    /// Replaces the tokens for later requests. Returns false and changes nothing if that would add
    /// the first token or remove the last one: the check of the listening address has relied on
    /// that.
    pub fn replace(&self, tokens: Tokens) -> bool {
        let may = self.is_set() != tokens.is_empty();
        if may {
            *self.0.write() = tokens;
        }
        may
    }

    /// Returns the rights of a request by its header, as [`Admission::rights_of`] does.
    pub(crate) fn rights(&self, headers: &HeaderMap) -> Option<Option<Arc<Rights>>> {
        let value = headers.get(AUTHORIZATION);
        self.rights_of(value.and_then(|value| bearer(value.as_bytes())))
    }

    /// Returns the rights of a request that shows this token: `Some(None)` if it may do everything,
    /// `None` if the token is not accepted. The comparison takes the same time for all tokens of
    /// one length.
    pub(crate) fn rights_of(&self, shown: Option<&[u8]>) -> Option<Option<Arc<Rights>>> {
        let tokens = self.0.read();
        if tokens.is_empty() {
            return Some(None);
        }
        let shown = shown?;
        let is = |token: &Secret| -> bool { shown.ct_eq(token.reveal().as_bytes()).into() };
        if tokens.all.as_ref().is_some_and(is) {
            return Some(None);
        }
        let mut named = tokens.named.iter();
        let found = named.find(|(token, _)| is(token));
        found.map(|(_, rights)| Some(Arc::clone(rights)))
    }
}

/// Returns the credentials after the scheme, whose name is not case-sensitive (RFC 9110, 11.1).
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| rest.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rights::Right;

    fn all(token: &str) -> Tokens {
        Tokens {
            all: Some(Secret::from(token)),
            named: Vec::new(),
        }
    }

    fn shows(admission: &Admission, value: &str) -> Option<Option<Arc<Rights>>> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, value.parse().unwrap());
        admission.rights(&headers)
    }

    #[test]
    fn only_the_whole_token_is_let_in() {
        let admission = Admission::new(all("abc"));
        for good in ["Bearer abc", "bearer  abc"] {
            assert!(matches!(shows(&admission, good), Some(None)), "{good}");
        }
        for bad in [
            "Bearer ab",
            "Bearer abcd",
            "Basic abc",
            "Bearer",
            "abc",
            "Bearer ",
        ] {
            assert!(shows(&admission, bad).is_none(), "{bad}");
        }
        assert!(admission.rights(&HeaderMap::new()).is_none());
        let open = Admission::new(Tokens::default());
        assert!(matches!(open.rights(&HeaderMap::new()), Some(None)));
    }

    #[test]
    fn a_named_token_brings_its_own_rights() {
        let rights = Rights::new("meters", &[Right::Insert], Vec::new());
        let admission = Admission::new(Tokens {
            all: None,
            named: vec![("one".into(), Arc::new(rights))],
        });
        assert!(admission.is_set());
        let found = shows(&admission, "Bearer one").unwrap().unwrap();
        assert_eq!(found.name(), "meters");
        assert!(shows(&admission, "Bearer two").is_none());
        assert!(admission.rights(&HeaderMap::new()).is_none());
    }

    #[test]
    fn tokens_are_replaced_but_the_first_is_not_added_nor_the_last_taken_away() {
        let admission = Admission::new(all("abc"));
        assert!(shows(&admission, "Bearer new").is_none());
        assert!(admission.replace(all("new")));
        assert!(shows(&admission, "Bearer new").is_some());
        assert!(!admission.replace(Tokens::default()) && admission.is_set());
        let open = Admission::new(Tokens::default());
        assert!(!open.replace(all("new")) && !open.is_set());
        assert!(open.replace(Tokens::default()));
    }
}
