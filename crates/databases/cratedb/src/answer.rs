//! Parses the server's answers.

use serde::Deserialize;
use serde_json::value::RawValue;

use windrow_database::web::Answer;

/// The body of an answer that is not an error.
#[derive(Debug, Deserialize)]
pub(crate) struct Reply<'a> {
    /// The number of rows that one statement wrote or found.
    pub(crate) rowcount: Option<i64>,
    /// The rows of one statement that returns rows: their values as JSON texts.
    #[serde(borrow)]
    pub(crate) rows: Option<Vec<Vec<&'a RawValue>>>,
    /// The results of a bulk: one for each row, in order.
    pub(crate) results: Option<Vec<Entry>>,
}

/// The result of one row of a bulk.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    /// The number of changed rows; -2 if the row failed.
    pub(crate) rowcount: i64,
    /// The reason why the row failed. The server reports it only for the first ten rows of each
    /// shard.
    pub(crate) error: Option<ServerError>,
}

/// An error as the server reports it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ServerError {
    pub(crate) code: i64,
    pub(crate) message: String,
}

#[derive(Deserialize)]
struct Failed {
    error: ServerError,
}

/// A request that failed as a whole, or a row of a bulk.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The HTTP status; 0 for the error of a row.
    pub(crate) status: u16,
    /// The server's own code; `None` if another program answered.
    pub(crate) code: Option<i64>,
    pub(crate) message: String,
}

/// The most of a message that is kept, in bytes.
const MESSAGE: usize = 8 << 10;

impl Entry {
    /// Returns true if the row failed.
    pub(crate) fn failed(&self) -> bool {
        self.rowcount < 0 || self.error.is_some()
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        Self {
            status: 0,
            code: Some(error.code),
            message: cut(&error.message, MESSAGE),
        }
    }
}

impl Failure {
    /// Parses an answer with an error status.
    pub(crate) fn of(answer: &Answer) -> Self {
        let status = answer.status.as_u16();
        match serde_json::from_slice::<Failed>(&answer.body) {
            Ok(Failed { error }) => Self {
                status,
                ..Self::from(error)
            },
            Err(_) => Self {
                status,
                code: None,
                message: cut(&String::from_utf8_lossy(&answer.body), 200),
            },
        }
    }
}

/// Returns the beginning of a text.
fn cut(text: &str, most: usize) -> String {
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or_default())
        .unwrap_or(text)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};

    use super::*;

    #[test]
    fn real_answers_are_read() {
        let bulk = r#"{"cols":[],"duration":8.781176,"results":[{"rowcount":-2,"error":{"code":4091,"message":"DuplicateKeyException[A document with the same primary key exists already]"}},{"rowcount":1},{"rowcount":-2}]}"#;
        let reply: Reply<'_> = serde_json::from_str(bulk).unwrap();
        let results = reply.results.unwrap();
        assert_eq!(results[0].error.as_ref().map(|e| e.code), Some(4091));
        let failed: Vec<_> = results.iter().map(Entry::failed).collect();
        assert_eq!(failed, [true, false, true]);
        let rows =
            r#"{"cols":["id","n"],"rows":[[1,1.50],["a",null]],"rowcount":2,"duration":0.5}"#;
        let reply: Reply<'_> = serde_json::from_str(rows).unwrap();
        let raw = reply.rows.unwrap();
        assert_eq!((raw[0][1].get(), raw[1][0].get()), ("1.50", "\"a\""));
    }

    #[test]
    fn failures_are_read_whoever_wrote_them() {
        let answer = |status, body: &'static str| Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
        };
        let own = Failure::of(&answer(
            400,
            r#"{"error":{"message":"SQLParseException[x]","code":4000}}"#,
        ));
        assert_eq!(
            (own.status, own.code, &*own.message),
            (400, Some(4000), "SQLParseException[x]")
        );
        let proxy = Failure::of(&answer(503, "<html>no upstream</html>"));
        assert_eq!((proxy.status, proxy.code), (503, None));
        assert_eq!(cut("\u{e9}\u{e9}", 3), "\u{e9}");
        assert_eq!(cut("ab", 9), "ab");
    }
}
