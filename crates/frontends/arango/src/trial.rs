//! Checks for arbitrary bytes: the fuzzer invents them (`./test fuzz`), and every test run repeats
//! the inputs that it kept.

use http::Method;

use crate::routes;

/// Checks that everything found in a path is a part of the path.
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
