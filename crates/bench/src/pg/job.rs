//! The calls of a load.

use std::fmt::Display;
use std::io::Write;

use windrow_testkit::pgclient::frontend;

use super::report::CallOutcome;
use crate::http::job::id_of;
use crate::reading::{AT, NOTE, Reading};

/// The name under which a connection has its statement.
const NAME: &str = "w";

/// The protocol of a client's calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Parse once, then Bind and Execute.
    #[default]
    Prepared,
    /// Parse, Bind and Execute each time.
    Extended,
    /// Query, with the values in the text.
    Simple,
}

impl Mode {
    /// Returns the name of the mode.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::Extended => "extended",
            Self::Simple => "simple",
        }
    }

    /// The name under which a connection has its statement.
    fn statement(self) -> &'static str {
        match self {
            Self::Prepared => NAME,
            Self::Extended | Self::Simple => "",
        }
    }
}

/// Gives the values of calls and may look at the answers. Called from the generator's threads: must
/// be quick.
pub trait Job: Send + Sync {
    /// Returns the protocol of the clients' calls.
    fn mode(&self) -> Mode {
        Mode::Prepared
    }

    /// The statement of clients that send the values beside it.
    fn insert(&self) -> &str {
        INSERT
    }

    /// Appends the messages that prepare the statements of a connection.
    fn prepare(&self, out: &mut Vec<u8>) {
        if self.mode() == Mode::Prepared {
            frontend::parse(out, NAME, self.insert(), &[]);
        }
    }

    /// Appends the messages of a step of a call, which is the `n`th of its connection: what is sent
    /// before the client waits for an answer. `returned`: the first value of the last row that the
    /// steps before returned. Returns false if the call has no such step.
    fn messages(&self, step: u64, call: (usize, u64), returned: &str, out: &mut Vec<u8>) -> bool {
        let _ = returned;
        if step == 0 {
            single(self, call.0, call.1, out);
        }
        step == 0
    }

    /// The values of the `n`th call of a connection.
    fn values(&self, connection: usize, n: u64, out: &mut Values<'_>);

    /// Notes the outcome of a call.
    fn seen(&self, connection: usize, n: u64, outcome: CallOutcome) {
        let _ = (connection, n, outcome);
    }
}

/// The rows that all experiments write.
const INSERT: &str =
    "insert into readings (id, device, at, temperature, note) values ($1, $2, $3, $4, $5)";

/// The same up to its values.
const INTO: &str = "insert into readings (id, device, at, temperature, note) values (";

/// One new reading a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inserts {
    /// The number of the first one: for a second load on the same table.
    pub first: u64,
    /// The protocol of the calls.
    pub mode: Mode,
}

impl Job for Inserts {
    fn mode(&self) -> Mode {
        self.mode
    }

    fn values(&self, connection: usize, n: u64, out: &mut Values<'_>) {
        out.reading(Reading::new(id_of(connection, self.first + n)));
    }
}

/// Values of a Bind message, all as text; or of a statement's text, all as literals.
#[derive(Debug)]
pub struct Values<'a> {
    out: &'a mut Vec<u8>,
    count: u16,
    literal: bool,
}

impl<'a> Values<'a> {
    fn new(out: &'a mut Vec<u8>, literal: bool) -> Self {
        Self {
            out,
            count: 0,
            literal,
        }
    }

    /// Appends one, which has no quotation mark in it.
    pub fn add(&mut self, value: impl Display) {
        match self.literal {
            true => self.say(value),
            false => self.bind(value),
        }
        self.count += 1;
    }

    fn say(&mut self, value: impl Display) {
        let comma = if self.count > 0 { ", " } else { "" };
        // Writing into a Vec cannot fail.
        write!(self.out, "{comma}'{value}'").ok();
    }

    fn bind(&mut self, value: impl Display) {
        let at = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        write!(self.out, "{value}").ok();
        let length = u32::try_from(self.out.len() - at - 4).unwrap_or(u32::MAX);
        if let Some(place) = self.out.get_mut(at..at + 4) {
            place.copy_from_slice(&length.to_be_bytes());
        }
    }

    /// Appends the five columns of a reading.
    pub fn reading(&mut self, reading: Reading) {
        self.add(reading.id());
        self.add(reading.device());
        self.add(AT);
        self.add(reading.temperature());
        self.add(NOTE);
    }
}

/// Returns the messages that prepare a job's statements.
pub fn prepare(job: &dyn Job) -> Vec<u8> {
    let mut out = Vec::new();
    job.prepare(&mut out);
    frontend::sync(&mut out);
    out
}

/// Writes all messages of the `n`th call of a connection, which has one step.
pub fn call(job: &dyn Job, connection: usize, n: u64, out: &mut Vec<u8>) {
    out.clear();
    job.messages(0, (connection, n), "", out);
}

/// Appends the messages that insert one row.
fn single<J: Job + ?Sized>(job: &J, connection: usize, n: u64, out: &mut Vec<u8>) {
    if job.mode() == Mode::Simple {
        return frontend::message(out, b'Q', |out| {
            out.extend_from_slice(INTO.as_bytes());
            job.values(connection, n, &mut Values::new(out, true));
            out.extend_from_slice(b")\0");
        });
    }
    let statement = job.mode().statement();
    if job.mode() == Mode::Extended {
        frontend::parse(out, statement, job.insert(), &[]);
    }
    execute(out, statement, |out| job.values(connection, n, out));
}

/// Appends the messages that execute a prepared statement with some values.
pub fn execute(out: &mut Vec<u8>, statement: &str, values: impl FnOnce(&mut Values<'_>)) {
    frontend::message(out, b'B', |out| {
        // The unnamed portal, the statement, no formats: all text.
        out.extend_from_slice(&[0]);
        out.extend_from_slice(statement.as_bytes());
        out.extend_from_slice(&[0, 0, 0]);
        let at = out.len();
        out.extend_from_slice(&[0, 0]);
        let mut bound = Values::new(out, false);
        values(&mut bound);
        let count = bound.count.to_be_bytes();
        if let Some(place) = out.get_mut(at..at + 2) {
            place.copy_from_slice(&count);
        }
        out.extend_from_slice(&[0, 0]);
    });
    frontend::execute(out, "", 0);
    frontend::sync(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_what_the_protocol_says() {
        let (mut lean, mut plain) = (Vec::new(), Vec::new());
        call(&Inserts::default(), 0, 7, &mut lean);
        let values = ["100000007", "7", AT, "15.7", NOTE].map(Some);
        frontend::bind(&mut plain, ("", NAME), &[], &values, &[]);
        frontend::execute(&mut plain, "", 0);
        frontend::sync(&mut plain);
        assert_eq!(lean, plain);
        let mode = Mode::Simple;
        call(&Inserts { first: 0, mode }, 0, 7, &mut lean);
        plain.clear();
        let text = format!("{INTO}'100000007', '7', '{AT}', '15.7', '{NOTE}')");
        frontend::query(&mut plain, &text);
        assert_eq!(lean, plain);
    }
}
