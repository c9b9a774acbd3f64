//! The stations' clients.

use std::sync::Arc;

use anyhow::Result;
use windrow_testkit::process::Windrow;

use super::file::Weather;
use crate::http::closed::{self, Closed, Until};
use crate::http::{Job, Live};

/// The rows that were sent and found.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Rows, each in a request of its own, each found once with the file's values.
    pub rows: u64,
    /// Rows a second.
    pub rate: f64,
}

struct Readings {
    weather: Weather,
    clients: usize,
}

impl Job for Readings {
    fn target(&self) -> &str {
        "POST /v1/tables/weather/rows"
    }

    fn ends(&self, connection: usize, n: u64) -> bool {
        let reading = self.weather.of_client(connection, self.clients, n);
        reading.is_none()
    }

    fn body(&self, connection: usize, n: u64, out: &mut Vec<u8>) {
        if let Some(record) = self.weather.of_client(connection, self.clients, n) {
            self.weather.json(record, out);
        }
    }
}

/// Sends every reading, in a request of its own; all must succeed.
pub(super) fn all(windrow: &Windrow, weather: &Weather, clients: usize) -> Result<Sent> {
    let load = Closed {
        connections: clients,
        until: Until::Done,
    };
    let job: Arc<dyn Job> = Arc::new(Readings {
        weather: weather.clone(),
        clients,
    });
    let report = closed::run(windrow.address(), &load, &job, &Arc::new(Live::default()))?;
    anyhow::ensure!(
        report.successes() == weather.rows() && report.requests() == weather.rows(),
        "not every request succeeded: {:?}\n{}",
        report.outcomes,
        report.samples.join("\n")
    );
    Ok(Sent {
        rows: report.successes(),
        rate: report.rate(),
    })
}
