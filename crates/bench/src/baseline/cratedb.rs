//! Clients that insert single rows into CrateDB over its own HTTP endpoint.

use std::io::Write;

use crate::generator::{Call, Inserts, Job, Style, http};
use crate::reading::{AT, Reading};

/// One row a request, as CrateDB's own clients send it.
#[derive(Clone, Debug)]
pub struct CrateInsert {
    statement: String,
    inserts: Inserts,
}

impl CrateInsert {
    /// Returns inserts of readings into a table.
    pub fn new(table: &str) -> Self {
        let statement = format!(
            "insert into {table} (id, device, at, temperature, note) values (?, ?, ?, ?, ?)"
        );
        let inserts = Inserts::from(Style::Http, 0);
        Self { statement, inserts }
    }

    /// Returns the same with readings numbered from `first`.
    #[must_use]
    pub fn from(&self, first: u64) -> Self {
        let mut job = self.clone();
        job.inserts.first = first;
        job
    }
}

impl Job for CrateInsert {
    fn write(&self, call: Call<'_>, out: &mut Vec<u8>) {
        let Reading {
            id,
            device,
            temperature,
            note,
        } = self.inserts.reading(call);
        http::request(out, "POST /_sql", "application/json", "", |out| {
            // Writing into a Vec cannot fail.
            write!(
                out,
                r#"{{"stmt":"{}","args":[{id},{device},"{AT}",{temperature},"{note}"]}}"#,
                self.statement
            )
            .ok();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::NOTE;

    #[test]
    fn a_request_is_one_row() {
        let mut out = Vec::new();
        let job = CrateInsert::new("s.readings").from(5);
        job.write(Call::new(0, 2), &mut out);
        let text = String::from_utf8(out).unwrap();
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        let args = serde_json::json!([100_000_007, 7, AT, 15.7, NOTE]);
        assert_eq!(body["args"], args);
        let statement = body["stmt"].as_str().unwrap();
        assert!(statement.starts_with("insert into s.readings ("));
    }
}
