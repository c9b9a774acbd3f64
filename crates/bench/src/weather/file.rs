//! The readings as they are in the file.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};

/// The field that means a missing value.
pub(super) const MISSING: &str = "NA";

/// Columns that hold text; all others hold numbers.
const TEXT: [&str; 2] = ["origin", "time_hour"];

/// All readings.
#[derive(Clone, Debug)]
pub(super) struct Weather {
    columns: Vec<String>,
    /// The rows of each station.
    stations: Vec<Vec<csv::StringRecord>>,
}

impl Weather {
    pub(super) fn read(file: &Path) -> Result<Self> {
        let mut reader = csv::Reader::from_path(file)
            .with_context(|| format!("the readings are not at {}", file.display()))?;
        let columns: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
        anyhow::ensure!(
            TEXT.iter().all(|name| columns.iter().any(|c| c == name)),
            "{} has no columns origin and time_hour",
            file.display()
        );
        let mut stations: Vec<Vec<csv::StringRecord>> = Vec::new();
        for record in reader.records() {
            let record = record?;
            let same = |rows: &&mut Vec<csv::StringRecord>| {
                rows.first().and_then(|row| row.get(0)) == record.get(0)
            };
            match stations.iter_mut().find(same) {
                Some(rows) => rows.push(record),
                None => stations.push(vec![record]),
            }
        }
        Ok(Self { columns, stations })
    }

    pub(super) fn columns(&self) -> &[String] {
        &self.columns
    }

    pub(super) fn stations(&self) -> usize {
        self.stations.len()
    }

    pub(super) fn rows(&self) -> u64 {
        self.stations.iter().map(|rows| rows.len() as u64).sum()
    }

    /// All rows, in any order.
    pub(super) fn all(&self) -> impl Iterator<Item = &csv::StringRecord> {
        self.stations.iter().flatten()
    }

    /// The `n`th reading that a client sends: each client belongs to one station, and its clients
    /// take turns.
    pub(super) fn of_client(
        &self,
        client: usize,
        clients: usize,
        n: u64,
    ) -> Option<&csv::StringRecord> {
        let stations = self.stations.len();
        let rows = self.stations.get(client % stations)?;
        let colleagues = (clients + stations - 1 - client % stations) / stations;
        let at = usize::try_from(n).ok()? * colleagues + client / stations;
        rows.get(at)
    }

    /// Appends a reading as JSON: numbers with the file's digits, `NA` as null.
    pub(super) fn json(&self, record: &csv::StringRecord, out: &mut Vec<u8>) {
        for (at, (name, cell)) in self.columns.iter().zip(record).enumerate() {
            let comma = if at == 0 { "{" } else { "," };
            // Writing into a Vec cannot fail; no cell of the file needs escaping.
            match cell {
                MISSING => write!(out, r#"{comma}"{name}":null"#),
                text if is_text(name) => write!(out, r#"{comma}"{name}":"{text}""#),
                number => write!(out, r#"{comma}"{name}":{number}"#),
            }
            .ok();
        }
        out.push(b'}');
    }
}

/// True for a column that holds text.
pub(super) fn is_text(column: &str) -> bool {
    TEXT.contains(&column)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt() -> Weather {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/weather-excerpt.csv");
        Weather::read(&file).unwrap()
    }

    #[test]
    fn every_reading_is_sent_by_exactly_one_client() {
        let weather = excerpt();
        for clients in [3, 7, 200, 1000] {
            let mut sent = 0;
            for client in 0..clients {
                let of = |n| weather.of_client(client, clients, n);
                let mine: Vec<_> = (0..).map_while(of).collect();
                assert!(mine.iter().all(|row| row.get(0) == mine[0].get(0)));
                sent += mine.len() as u64;
            }
            assert_eq!(sent, weather.rows(), "{clients} clients");
        }
    }

    #[test]
    fn values_keep_their_digits_and_gaps_become_null() {
        let weather = excerpt();
        let mut out = Vec::new();
        weather.json(weather.all().next().unwrap(), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.starts_with(r#"{"origin":"EWR","year":2013,"#),
            "{text}"
        );
        assert!(text.contains(r#""wind_speed":10.357019999999999,"wind_gust":null,"#));
        assert!(text.ends_with(r#""time_hour":"2013-01-01T06:00:00Z"}"#));
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
    }
}
