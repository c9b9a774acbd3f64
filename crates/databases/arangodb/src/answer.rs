//! Parses the server's answers.

use serde::Deserialize;
use serde_json::value::RawValue;

use windrow_database::web::Answer;

/// An entry of the array that answers a write.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry<'a> {
    #[serde(default)]
    pub(crate) error: bool,
    #[serde(default, rename = "errorNum")]
    pub(crate) number: i64,
    #[serde(default, rename = "errorMessage")]
    pub(crate) message: String,
    /// The document after the write, if requested.
    #[serde(borrow)]
    pub(crate) new: Option<&'a RawValue>,
    /// The document before the write, if requested.
    #[serde(borrow)]
    pub(crate) old: Option<&'a RawValue>,
}

/// The failure of a whole request, or of one entry of its array.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The HTTP status; 0 for an entry.
    pub(crate) status: u16,
    /// ArangoDB's error number; 0 if another program, such as a proxy, answered.
    pub(crate) number: i64,
    pub(crate) message: String,
}

#[derive(Deserialize)]
struct Failed {
    #[serde(rename = "errorNum")]
    number: i64,
    #[serde(default, rename = "errorMessage")]
    message: String,
}

impl Failure {
    /// Parses an answer with an error status.
    pub(crate) fn of(answer: &Answer) -> Self {
        let status = answer.status.as_u16();
        match serde_json::from_slice::<Failed>(&answer.body) {
            Ok(Failed { number, message }) => Self {
                status,
                number,
                message,
            },
            Err(_) => Self {
                status,
                number: 0,
                message: String::from_utf8_lossy(&answer.body)
                    .chars()
                    .take(200)
                    .collect(),
            },
        }
    }

    /// Returns the error of an entry.
    pub(crate) fn of_entry(entry: &Entry<'_>) -> Self {
        Self {
            status: 0,
            number: entry.number,
            message: entry.message.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use windrow_database::members::Members;

    use super::*;

    #[test]
    fn entries_are_read() {
        let body = r#"[{"_id":"t/a","_key":"a","_rev":"_x","new":{"_key":"a","n":1.50}},{"error":true,"errorNum":1210,"errorMessage":"unique constraint violated"}]"#;
        let entries: Vec<Entry<'_>> = serde_json::from_str(body).unwrap();
        assert_eq!((entries[0].error, entries[1].number), (false, 1210));
        let new: Members<'_> = serde_json::from_str(entries[0].new.unwrap().get()).unwrap();
        assert_eq!(new.get("n").map(RawValue::get), Some("1.50"));
        assert!(new.get("m").is_none());
    }
}
