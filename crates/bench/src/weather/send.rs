//! The stations' clients.

use std::sync::Arc;

use anyhow::{Result, ensure};
use windrow_testkit::process::Windrow;

use super::file::Weather;
use crate::generator::{Call, Clients, Job, Live, Outcome, Schedule, Target, Until, http};

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
    fn ends(&self, call: Call<'_>) -> bool {
        let reading = self.weather.of_client(call.client, self.clients, call.n);
        reading.is_none()
    }

    fn write(&self, call: Call<'_>, out: &mut Vec<u8>) {
        let target = "POST /v1/tables/weather/rows";
        let reading = self.weather.of_client(call.client, self.clients, call.n);
        http::request(out, target, "application/json", "", |out| {
            if let Some(record) = reading {
                self.weather.json(record, out);
            }
        });
    }
}

/// Sends every reading, in a request of its own; all must succeed.
pub(super) fn all(windrow: &Windrow, weather: &Weather, clients: usize) -> Result<Sent> {
    let job: Arc<dyn Job> = Arc::new(Readings {
        weather: weather.clone(),
        clients,
    });
    let (until, live) = (Until::calls(u64::MAX), Arc::new(Live::default()));
    let mut clients = Clients::open(&Target::Http(windrow.address()), clients)?;
    let report = clients.run(Schedule::Closed, &until, &job, &live)?;
    report.all(Outcome::Success)?;
    let (sent, rows) = (report.calls(), weather.rows());
    ensure!(sent == rows, "{sent} requests for {rows} readings");
    Ok(Sent {
        rows,
        rate: report.rate(),
    })
}
