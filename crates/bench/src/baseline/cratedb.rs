//! Clients that insert single rows into CrateDB over its own HTTP endpoint.

use std::io::Write;

use crate::http::Job;
use crate::http::job::id_of;
use crate::reading::{AT, NOTE, Reading};

/// One row a request, as CrateDB's own clients send it.
#[derive(Clone, Debug)]
pub struct Direct {
    statement: String,
    first: u64,
}

impl Direct {
    /// Readings into a table, numbered from `first`.
    pub fn new(table: &str, first: u64) -> Self {
        let statement = format!(
            "insert into {table} (id, device, at, temperature, note) values (?, ?, ?, ?, ?)"
        );
        Self { statement, first }
    }
}

impl Job for Direct {
    fn target(&self) -> &str {
        "POST /_sql"
    }

    fn body(&self, connection: usize, n: u64, out: &mut Vec<u8>) {
        let row = Reading::new(id_of(connection, self.first + n));
        // Writing into a Vec cannot fail.
        write!(
            out,
            r#"{{"stmt":"{}","args":[{},{},"{AT}",{},"{NOTE}"]}}"#,
            self.statement,
            row.id(),
            row.device(),
            row.temperature()
        )
        .ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_row() {
        let mut body = Vec::new();
        Direct::new("s.readings", 5).body(0, 2, &mut body);
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let args = serde_json::json!([100_000_007, 7, AT, 15.7, NOTE]);
        assert_eq!(body["args"], args);
        let statement = body["stmt"].as_str().unwrap();
        assert!(statement.starts_with("insert into s.readings ("));
    }
}
