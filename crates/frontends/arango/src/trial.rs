//! What bytes of any kind are tried with: chance makes them up (`./test fuzz`), and every test run
//! takes those that it kept.

use http::Method;

use crate::routes;

/// A path: what is found in it stands in it.
pub fn path(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let path = text.split_once('?').map_or(text, |(path, _)| path);
    for method in [Method::POST, Method::PATCH, Method::DELETE, Method::GET] {
        if let Ok(found) = routes::find(&method, path) {
            assert!(path.contains(found.table) && path.contains(found.key));
            assert!(!routes::database(path).is_empty());
        }
    }
}

#[cfg(test)]
#[path = "../../../../fuzz/corpus.rs"]
mod corpus;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chance_has_found() {
        corpus::each("path", path);
    }
}
