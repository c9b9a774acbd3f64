//! Encodes answers to requests about documents.

use http::StatusCode;
use http::header::{ETAG, HeaderName, HeaderValue, LOCATION};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use windrow_core::{Returned, Value, WriteDone};
use windrow_http::extension::{WholeAnswer, json, whole_json};

use crate::attributes::{ID, KEY, REV};
use crate::request::DocumentRequest;
use crate::revision;
use crate::routes;

/// A returned row, with the attributes that ArangoDB adds to a document.
pub(crate) struct Row<'r> {
    returned: &'r Returned,
    row: &'r [Value],
    pub(crate) revision: String,
}

impl<'r> Row<'r> {
    /// Returns the row of a write or a read, if the database returned one.
    pub(crate) fn of(done: &'r WriteDone) -> Option<Self> {
        let returned = done.returned.as_deref()?;
        let row = returned.rows.first()?;
        Some(Self {
            returned,
            row,
            revision: revision::of(returned, row),
        })
    }

    /// Returns `_key` as stored in the database.
    fn key(&self) -> Option<String> {
        let key = revision::cell(self.returned, self.row, KEY)?;
        Some(revision::text_of(key).into_owned())
    }

    /// Writes the whole document: ArangoDB's attributes first, then the other columns in their
    /// order.
    pub(crate) fn write(&self, out: &mut Vec<u8>, request: &DocumentRequest<'_>, asked: &str) {
        let key = self.key().unwrap_or_else(|| asked.to_owned());
        out.push(b'{');
        identity(out, request, &key, Some(&self.revision));
        for (name, value) in self.returned.columns.iter().zip(self.row) {
            if ![ID, KEY, REV].contains(&&**name) {
                json::field(out, name);
                json::value(out, value);
            }
        }
        out.push(b'}');
    }
}

/// Writes `"_id":..,"_key":..` and, if known, `,"_rev":..`.
pub(crate) fn identity(
    out: &mut Vec<u8>,
    request: &DocumentRequest<'_>,
    key: &str,
    revision: Option<&str>,
) {
    json::string(out, ID);
    out.push(b':');
    json::string(out, &format!("{}/{key}", request.collection.name));
    json::field(out, KEY);
    json::string(out, key);
    if let Some(revision) = revision {
        json::field(out, REV);
        json::string(out, revision);
    }
}

/// Writes the result for a written document: its identity, and the document itself if requested.
pub(crate) fn written(
    out: &mut Vec<u8>,
    request: &DocumentRequest<'_>,
    asked: &str,
    done: &WriteDone,
) {
    let row = Row::of(done);
    let key = row.as_ref().and_then(Row::key);
    out.push(b'{');
    let revision = row.as_ref().map(|row| &*row.revision);
    identity(out, request, key.as_deref().unwrap_or(asked), revision);
    for (wanted, name) in [
        (request.options.return_new, "new"),
        (request.options.return_old, "old"),
    ] {
        if wanted {
            json::field(out, name);
            match &row {
                Some(row) => row.write(out, request, asked),
                None => out.extend_from_slice(b"null"),
            }
        }
    }
    out.push(b'}');
}

/// Returns the answer to a request that wrote one document.
pub(crate) fn one(
    request: &DocumentRequest<'_>,
    status: StatusCode,
    asked: &str,
    done: &WriteDone,
) -> WholeAnswer {
    if request.options.silent {
        return whole_json(status, &b"{}"[..]);
    }
    let mut body = Vec::with_capacity(128);
    written(&mut body, request, asked, done);
    let mut answer = whole_json(status, body);
    if let Some(row) = Row::of(done) {
        set(&mut answer, ETAG, &format!("\"{}\"", row.revision));
    }
    set(&mut answer, LOCATION, &location(request, asked));
    answer
}

/// Returns the path of a document. Names are as in the request; the key is percent-encoded again.
fn location(request: &DocumentRequest<'_>, key: &str) -> String {
    let key = utf8_percent_encode(key, NON_ALPHANUMERIC).to_string();
    // ArangoDB does not encode these characters in keys.
    let key = ["-", "_", ".", "~"].iter().fold(key, |key, plain| {
        let coded = utf8_percent_encode(plain, NON_ALPHANUMERIC).to_string();
        key.replace(&coded, plain)
    });
    let database = routes::database(request.context.head.uri.path());
    let raw = request.collection.raw;
    format!("/_db/{database}/_api/document/{raw}/{key}")
}

/// Sets a header, unless the text has characters that a header cannot have.
pub(crate) fn set(answer: &mut WholeAnswer, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        answer.headers_mut().insert(name, value);
    }
}
