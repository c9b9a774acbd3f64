//! What is called.

use std::fmt::Display;
use std::io::Write;

use windrow_testkit::pgclient::frontend;

use super::report::Told;
use crate::http::job::id_of;
use crate::reading::{AT, NOTE, Reading};

/// The name under which a connection has its statement.
const NAME: &str = "w";

/// Gives the values of calls and may look at the answers. Called from the generator's threads: must
/// be quick.
pub trait Job: Send + Sync {
    /// The statement that each connection prepares.
    fn sql(&self) -> &str {
        INSERT
    }

    /// The values of the `n`th call of a connection.
    fn values(&self, connection: usize, n: u64, out: &mut Values<'_>);

    /// What came back.
    fn told(&self, connection: usize, n: u64, told: Told) {
        let _ = (connection, n, told);
    }
}

/// The rows that all experiments write.
const INSERT: &str =
    "insert into readings (id, device, at, temperature, note) values ($1, $2, $3, $4, $5)";

/// One new reading a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inserts {
    /// The number of the first one: for a second load on the same table.
    pub first: u64,
}

impl Job for Inserts {
    fn values(&self, connection: usize, n: u64, out: &mut Values<'_>) {
        out.reading(Reading::new(id_of(connection, self.first + n)));
    }
}

/// Values of a Bind message, all as text.
#[derive(Debug)]
pub struct Values<'a> {
    out: &'a mut Vec<u8>,
    count: u16,
}

impl Values<'_> {
    /// Appends one.
    pub fn add(&mut self, value: impl Display) {
        let at = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        // Writing into a Vec cannot fail.
        write!(self.out, "{value}").ok();
        let length = u32::try_from(self.out.len() - at - 4).unwrap_or(u32::MAX);
        if let Some(place) = self.out.get_mut(at..at + 4) {
            place.copy_from_slice(&length.to_be_bytes());
        }
        self.count += 1;
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

/// What prepares a job's statement.
pub fn prepare(job: &dyn Job) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::parse(&mut out, NAME, job.sql(), &[]);
    frontend::sync(&mut out);
    out
}

/// Bind, Execute and Sync of the `n`th call of a connection. `out` is used again and again.
pub fn call(job: &dyn Job, connection: usize, n: u64, out: &mut Vec<u8>) {
    out.clear();
    frontend::message(out, b'B', |out| {
        // The unnamed portal, the statement, no formats: all text.
        out.extend_from_slice(&[0]);
        out.extend_from_slice(NAME.as_bytes());
        out.extend_from_slice(&[0, 0, 0]);
        let at = out.len();
        out.extend_from_slice(&[0, 0]);
        let mut values = Values { out, count: 0 };
        job.values(connection, n, &mut values);
        let count = values.count.to_be_bytes();
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
    }
}
