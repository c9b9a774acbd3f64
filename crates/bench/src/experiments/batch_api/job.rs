//! Documents in requests: one in each, or many in a batch.

use std::io::Write;

use crate::generator::{Call, Job, http};

/// The API whose requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    /// ArangoDB's envelope of requests, and its request for one document.
    Arango,
    /// Windrow's own batch of operations, and its own request for one row.
    Own,
}

impl Api {
    pub(super) const ALL: [Self; 2] = [Self::Arango, Self::Own];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Arango => "/_api/batch",
            Self::Own => "/v1/batch",
        }
    }
}

/// New documents. Each has a key and so many attributes, which are texts of ten characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Documents {
    pub(super) api: Api,
    pub(super) attributes: u32,
    /// Documents of a request; `None`: one, without a batch around it.
    pub(super) batch: Option<u32>,
    /// Keys of a connection begin here.
    pub(super) first: u64,
}

const BOUNDARY: &str = "windrow-bench";
const SINGLE: &str = "POST /_api/document/documents?silent=true";

impl Documents {
    /// Documents of a request.
    pub(super) fn rows(self) -> u64 {
        self.batch.unwrap_or(1).into()
    }

    /// One of them as JSON.
    fn document(self, key: u64, out: &mut Vec<u8>) {
        // Writing into a Vec cannot fail.
        write!(out, "{{\"_key\":\"k{key}\"").ok();
        for attribute in 0..self.attributes {
            write!(
                out,
                ",\"a{attribute}\":\"{:010}\"",
                (key + u64::from(attribute)) % 10_000_000_000
            )
            .ok();
        }
        out.push(b'}');
    }

    fn part(self, key: u64, out: &mut Vec<u8>) {
        write!(
            out,
            "--{BOUNDARY}\r\nContent-Type: application/x-arango-batchpart\r\n\r\n{SINGLE} HTTP/1.1\r\n\r\n"
        )
        .ok();
        self.document(key, out);
        out.extend_from_slice(b"\r\n");
    }

    fn operation(self, key: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"op\":\"insert\",\"table\":\"documents\",\"row\":");
        self.document(key, out);
        out.push(b'}');
    }

    fn target(self) -> (&'static str, &'static str) {
        let json = "application/json";
        match (self.api, self.batch) {
            (Api::Arango, None) => (SINGLE, json),
            (Api::Arango, Some(_)) => (
                "POST /_api/batch",
                "multipart/form-data; boundary=windrow-bench",
            ),
            (Api::Own, None) => ("POST /v1/tables/documents/rows", json),
            (Api::Own, Some(_)) => ("POST /v1/batch", json),
        }
    }

    fn body(self, call: Call<'_>, out: &mut Vec<u8>) {
        let n = self.first + call.n * self.rows();
        let first = Call::new(call.client, n).id();
        let keys = first..first + self.rows();
        match (self.api, self.batch) {
            (_, None) => self.document(first, out),
            (Api::Arango, Some(_)) => {
                keys.for_each(|key| self.part(key, out));
                write!(out, "--{BOUNDARY}--\r\n").ok();
            }
            (Api::Own, Some(_)) => {
                out.extend_from_slice(b"{\"operations\":[");
                for key in keys {
                    if key > first {
                        out.push(b',');
                    }
                    self.operation(key, out);
                }
                out.extend_from_slice(b"]}");
            }
        }
    }
}

impl Job for Documents {
    fn write(&self, call: Call<'_>, out: &mut Vec<u8>) {
        let (target, content_type) = self.target();
        http::request(out, target, content_type, "", |out| self.body(call, out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(api: Api, batch: Option<u32>) -> String {
        let job = Documents {
            api,
            attributes: 2,
            batch,
            first: 7,
        };
        let mut out = Vec::new();
        job.body(Call::new(0, 1), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn documents_are_numbered_through_their_batches() {
        let single = text(Api::Own, None);
        assert_eq!(
            single,
            r#"{"_key":"k100000008","a0":"0100000008","a1":"0100000009"}"#
        );
        assert_eq!(single, text(Api::Arango, None));

        let own: serde_json::Value = serde_json::from_str(&text(Api::Own, Some(3))).unwrap();
        let keys: Vec<_> = own["operations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|op| &op["row"]["_key"])
            .collect();
        assert_eq!(keys, ["k100000010", "k100000011", "k100000012"]);

        let envelope = text(Api::Arango, Some(3));
        assert_eq!(envelope.matches("--windrow-bench\r\n").count(), 3);
        assert!(
            envelope.ends_with("\r\n--windrow-bench--\r\n"),
            "{envelope}"
        );
        assert!(
            envelope.contains("HTTP/1.1\r\n\r\n{\"_key\":\"k100000011\""),
            "{envelope}"
        );
    }
}
