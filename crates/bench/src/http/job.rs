//! The requests of a load.

use super::report::Outcome;
use crate::reading::Reading;

/// Makes requests and may look at the outcomes. Called from the generator's thread: must be quick.
pub trait Job: Send + Sync {
    /// The method and target, such as `POST /v1/tables/readings/rows`.
    fn target(&self) -> &str;

    /// Appends the body of the `n`th request of a connection.
    fn body(&self, connection: usize, n: u64, out: &mut Vec<u8>);

    /// Returns the content type of the bodies.
    fn content_type(&self) -> &str {
        "application/json"
    }

    /// Appends headers of the `n`th request of a connection, each with CR LF behind it.
    fn headers(&self, connection: usize, n: u64, out: &mut Vec<u8>) {
        let _ = (connection, n, out);
    }

    /// True once a connection has sent all that it has: before its `n`th request.
    fn ends(&self, connection: usize, n: u64) -> bool {
        let _ = (connection, n);
        false
    }

    /// Notes the outcome of a request, with the body of the answer (empty if there was none).
    fn seen(&self, connection: usize, n: u64, outcome: Outcome, answer: &[u8]) {
        let _ = (connection, n, outcome, answer);
    }
}

/// Ids of one connection begin here times its number: every row of a run has its own.
pub const IDS: u64 = 100_000_000;

/// The id of the `n`th row of a connection.
pub fn id_of(connection: usize, n: u64) -> u64 {
    (connection as u64 + 1) * IDS + n
}

/// One new reading a request.
#[derive(Clone, Debug)]
pub struct Inserts {
    first: u64,
    keyed: bool,
}

impl Inserts {
    /// Readings numbered from 0.
    pub fn new() -> Self {
        Self::from(0)
    }

    /// Readings numbered from `first`, for a second load on the same table.
    pub fn from(first: u64) -> Self {
        let keyed = false;
        Self { first, keyed }
    }

    /// The same, each with an `Idempotency-Key`.
    #[must_use]
    pub fn keyed(self, keyed: bool) -> Self {
        Self { keyed, ..self }
    }
}

impl Default for Inserts {
    fn default() -> Self {
        Self::new()
    }
}

/// Where single readings go.
pub const ROWS: &str = "POST /v1/tables/readings/rows";

impl Job for Inserts {
    fn target(&self) -> &str {
        ROWS
    }

    fn body(&self, connection: usize, n: u64, out: &mut Vec<u8>) {
        Reading::new(id_of(connection, self.first + n)).json(out);
    }

    fn headers(&self, connection: usize, n: u64, out: &mut Vec<u8>) {
        if self.keyed {
            let mut digits = itoa::Buffer::new();
            out.extend_from_slice(b"Idempotency-Key: ");
            let key = id_of(connection, self.first + n);
            out.extend_from_slice(digits.format(key).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Asks whether the server is there: a request that writes nothing.
#[derive(Clone, Copy, Debug)]
pub struct Health;

impl Job for Health {
    fn target(&self) -> &str {
        "GET /healthz"
    }

    fn body(&self, _connection: usize, _n: u64, _out: &mut Vec<u8>) {}
}

/// Puts a whole request together; the buffers are used again and again.
#[derive(Debug)]
pub struct Writer {
    head: Vec<u8>,
    body: Vec<u8>,
    out: Vec<u8>,
}

impl Writer {
    /// A writer of a job's requests.
    pub fn new(job: &dyn Job) -> Self {
        let head = format!(
            "{} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {}\r\nContent-Length: ",
            job.target(),
            job.content_type()
        );
        Self {
            head: head.into_bytes(),
            body: Vec::new(),
            out: Vec::new(),
        }
    }

    /// The bytes of a request.
    pub fn write(&mut self, job: &dyn Job, connection: usize, n: u64) -> &[u8] {
        self.body.clear();
        job.body(connection, n, &mut self.body);
        self.out.clear();
        self.out.extend_from_slice(&self.head);
        let mut digits = itoa::Buffer::new();
        self.out
            .extend_from_slice(digits.format(self.body.len()).as_bytes());
        self.out.extend_from_slice(b"\r\n");
        job.headers(connection, n, &mut self.out);
        self.out.extend_from_slice(b"\r\n");
        self.out.extend_from_slice(&self.body);
        &self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_whole_and_differ_by_connection_and_number() {
        let job = Inserts::new();
        let mut writer = Writer::new(&job);
        let first = String::from_utf8(writer.write(&job, 0, 0).to_vec()).unwrap();
        let (head, body) = first.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /v1/tables/readings/rows HTTP/1.1\r\n"));
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
        let other = writer.write(&job, 1, 0).to_vec();
        assert_ne!(first.as_bytes(), other);
        assert_ne!(writer.write(&job, 1, 1), other);
    }
}
