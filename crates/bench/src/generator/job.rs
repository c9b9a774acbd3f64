//! The calls of a load.

use super::http::{self, ROWS};
use super::mysql;
use super::pg::{self, Mode};
use super::report::Outcome;
use crate::reading::{AT, MYSQL_AT, Reading, Value};

/// Ids of one client begin here times its number: every row of a run has its own.
const IDS: u64 = 100_000_000;

/// One step of a client's call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The number of the client.
    pub client: usize,
    /// The number of the call among the client's.
    pub n: u64,
    /// The number of the step in the call.
    pub step: u64,
    /// The first value of the last row that the steps before returned.
    pub returned: &'a str,
}

impl Call<'_> {
    /// Returns the first step of a call.
    pub fn new(client: usize, n: u64) -> Self {
        Self {
            client,
            n,
            step: 0,
            returned: "",
        }
    }

    /// Returns the id of the call's row.
    pub fn id(self) -> u64 {
        (self.client as u64 + 1) * IDS + self.n
    }
}

/// Makes calls and may look at the outcomes. Called from the generator's threads: must be quick.
pub trait Job: Send + Sync {
    /// Appends what a client sends once after it has connected.
    fn prepare(&self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// Returns the number of steps of a call. Each is sent when the one before is answered.
    fn steps(&self) -> u64 {
        1
    }

    /// Appends the messages of one step.
    fn write(&self, call: Call<'_>, out: &mut Vec<u8>);

    /// True once a client has made all calls that it has: before this one.
    fn ends(&self, call: Call<'_>) -> bool {
        let _ = call;
        false
    }

    /// Notes the outcome of a call, with the body of the answer (empty if there was none).
    fn seen(&self, call: Call<'_>, outcome: Outcome, answer: &[u8]) {
        let _ = (call, outcome, answer);
    }
}

/// The form in which a client states a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A JSON object in an HTTP request.
    Http,
    /// The same with an `Idempotency-Key`, which is the row's id.
    HttpWithKey,
    /// An INSERT over PostgreSQL's protocol.
    Pg(Mode),
    /// An INSERT over MySQL's protocol, where `Extended` is the same as `Simple`.
    MySql(Mode),
}

/// An INSERT of a reading up to its values.
fn into(table: &str) -> String {
    format!("insert into {table} (id, device, at, temperature, note) values ")
}

impl Style {
    /// Appends what a client sends once before it inserts into a table.
    pub fn prepare(self, table: &str, out: &mut Vec<u8>) {
        self.prepare_statement(&into(table), 5, out);
    }

    /// Appends what a client sends once before its statements with a list of values behind a text.
    pub(super) fn prepare_statement(self, text: &str, values: usize, out: &mut Vec<u8>) {
        match self {
            Self::Pg(Mode::Prepared) => {
                let text = pg::with_parameters(text, values);
                pg::prepare(out, &[(pg::PREPARED_NAME, &text)]);
            }
            Self::MySql(Mode::Prepared) => mysql::prepare(out, text, values),
            _ => {}
        }
    }

    /// Appends the messages that insert a reading.
    pub fn write(self, table: &str, reading: &Reading<'_>, out: &mut Vec<u8>) {
        let text = || into(table);
        let headers = match self {
            Self::Pg(mode) => return pg::statement(mode, text, &reading.values(AT), out),
            Self::MySql(mode) => {
                return mysql::statement(mode, text, &reading.values(MYSQL_AT), out);
            }
            Self::Http => String::new(),
            Self::HttpWithKey => format!("Idempotency-Key: {}\r\n", reading.id),
        };
        http::request(out, ROWS, "application/json", &headers, |out| {
            reading.json(out);
        });
    }
}

/// One new reading a call.
#[derive(Clone, Copy, Debug)]
pub struct Inserts {
    /// The form of a row.
    pub style: Style,
    /// The number of each client's first row: for a second load on the same table.
    pub first: u64,
    /// The number of the first client: for a second load at the same time.
    pub first_client: usize,
}

impl Inserts {
    /// Returns inserts of readings numbered from `first`.
    pub fn from(style: Style, first: u64) -> Self {
        Self {
            style,
            first,
            first_client: 0,
        }
    }

    /// Returns the reading of a call.
    pub fn reading(&self, call: Call<'_>) -> Reading<'static> {
        Reading::new(Call::new(self.first_client + call.client, self.first + call.n).id())
    }
}

impl Job for Inserts {
    fn prepare(&self, out: &mut Vec<u8>) {
        self.style.prepare("readings", out);
    }

    fn write(&self, call: Call<'_>, out: &mut Vec<u8>) {
        self.style.write("readings", &self.reading(call), out);
    }
}

/// Reads one reading a call, by its key.
#[derive(Clone, Copy, Debug)]
pub struct Lookups {
    /// The form of a statement.
    pub style: Style,
}

impl Lookups {
    /// The number of readings that must be there, with ids from 1 on.
    pub const ROWS: u64 = 1000;

    const TEXT: &str = "select device, at, temperature, note from readings where id = ";

    /// Returns the statement that inserts all readings.
    pub fn rows() -> String {
        let row = |id| {
            let [id, device, at, temperature, note] = Reading::new(id)
                .values(MYSQL_AT)
                .map(|value| value.to_string());
            format!("({id}, {device}, '{at}', {temperature}, '{note}')")
        };
        let rows: Vec<_> = (1..=Self::ROWS).map(row).collect();
        into("readings") + &rows.join(", ")
    }
}

impl Job for Lookups {
    fn prepare(&self, out: &mut Vec<u8>) {
        self.style.prepare_statement(Self::TEXT, 1, out);
    }

    fn write(&self, call: Call<'_>, out: &mut Vec<u8>) {
        // All rows in turn, each client from another one on.
        let id = Value::Int((call.n * 7919 + call.client as u64 * 37) % Self::ROWS + 1);
        let text = || Self::TEXT.to_owned();
        match self.style {
            Style::Pg(mode) => pg::statement(mode, text, &[id], out),
            Style::MySql(mode) => mysql::statement(mode, text, &[id], out),
            Style::Http | Style::HttpWithKey => {}
        }
    }
}

/// Asks whether the server is there: a request that writes nothing.
#[derive(Clone, Copy, Debug)]
pub struct Health;

impl Job for Health {
    fn write(&self, _: Call<'_>, out: &mut Vec<u8>) {
        http::request(out, "GET /healthz", "application/json", "", |_| ());
    }
}

#[cfg(test)]
mod tests {
    use windrow_testkit::pgclient::frontend;

    use super::*;
    use crate::reading::NOTE;

    fn written(style: Style, client: usize, n: u64) -> Vec<u8> {
        let mut out = Vec::new();
        Inserts::from(style, 0).write(Call::new(client, n), &mut out);
        out
    }

    #[test]
    fn requests_are_whole_and_differ_by_client_and_number() {
        let text = String::from_utf8(written(Style::Http, 0, 0)).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /v1/tables/readings/rows HTTP/1.1\r\n"));
        assert!(head.ends_with(&format!("Content-Length: {:08}", body.len())));
        let other = written(Style::Http, 1, 0);
        assert_ne!(text.as_bytes(), other);
        assert_ne!(written(Style::Http, 1, 1), other);
        let keyed = String::from_utf8(written(Style::HttpWithKey, 0, 7)).unwrap();
        assert!(keyed.contains("Idempotency-Key: 100000007\r\n"), "{keyed}");
    }

    #[test]
    fn a_statement_is_what_the_protocol_says() {
        let mut plain = Vec::new();
        let values = ["100000007", "7", AT, "15.7", NOTE].map(Some);
        frontend::bind(&mut plain, ("", pg::PREPARED_NAME), &[], &values, &[]);
        frontend::execute(&mut plain, "", 0);
        frontend::sync(&mut plain);
        assert_eq!(written(Style::Pg(Mode::Prepared), 0, 7), plain);
        plain.clear();
        let text = format!(
            "insert into readings (id, device, at, temperature, note) values \
             ('100000007', '7', '{AT}', '15.7', '{NOTE}')"
        );
        frontend::query(&mut plain, &text);
        assert_eq!(written(Style::Pg(Mode::Simple), 0, 7), plain);
    }
}
