//! Three weather stations that send one reading at a time, and a check that all of it arrived as it
//! was.

mod file;
mod send;
mod verify;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use windrow_testkit::postgres;

use crate::say;
use crate::servers;
use file::Weather;
pub use send::Sent;

/// The table. Its measures have types for fractions, though the first readings have none.
const TABLE: &str = "create table weather (origin text, year int, month int, day int, hour int, \
     temp numeric, dewp numeric, humid numeric, wind_dir int, wind_speed numeric, wind_gust numeric, \
     precip numeric, pressure numeric, visib numeric, time_hour timestamptz, primary key (origin, time_hour))";

/// Where the readings go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum To {
    /// A fresh SQLite file.
    Sqlite,
    /// A fresh PostgreSQL database: on the server that `WINDROW_TEST_POSTGRES` names, or a private
    /// one.
    Postgres,
    /// First the one, then the other.
    Both,
}

/// Settings of the example.
#[derive(Clone, Debug, clap::Args)]
pub struct Stations {
    /// The readings: a CSV file with a header, `NA` for a missing value.
    #[arg(long, env = "WINDROW_WEATHER_CSV")]
    pub file: PathBuf,
    /// Where they go.
    #[arg(long, value_enum, default_value = "both")]
    pub to: To,
    /// Clients at once, a third for each station.
    #[arg(long, default_value_t = 200)]
    pub clients: usize,
}

impl Stations {
    /// Sends and checks, and says what it does.
    ///
    /// # Errors
    /// The file is missing; a request fails; a row or a value is not as in the file.
    pub fn run(&self) -> Result<()> {
        let weather = Weather::read(&self.file)?;
        say::line(&format!(
            "{} readings of {} stations, {} clients, one request each",
            weather.rows(),
            weather.stations(),
            self.clients
        ));
        if self.to != To::Postgres {
            self.print("SQLite", self.sqlite(&weather)?);
        }
        if self.to != To::Sqlite {
            self.print("PostgreSQL", self.postgres(&weather)?);
        }
        Ok(())
    }

    fn print(&self, what: &str, sent: Sent) {
        say::line(&format!(
            "{what}: {} rows are there once, every value equal to the file's ({:.0} rows/s)",
            sent.rows, sent.rate
        ));
    }

    fn sqlite(&self, weather: &Weather) -> Result<Sent> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("weather.db");
        let url = format!("sqlite:{}", file.display());
        rusqlite::Connection::open(&file)?.execute_batch(TABLE)?;
        let windrow = servers::windrow(&url, &[])?;
        let sent = send::all(&windrow, weather, self.clients)?;
        drop(windrow);
        verify::sqlite(&file, weather).context("SQLite")?;
        Ok(sent)
    }

    fn postgres(&self, weather: &Weather) -> Result<Sent> {
        let database = postgres::shared()?;
        database.exec(TABLE)?;
        let windrow = servers::windrow(database.url(), &[])?;
        let sent = send::all(&windrow, weather, self.clients)?;
        verify::postgres(database.url(), &self.file, weather).context("PostgreSQL")?;
        Ok(sent)
    }
}

/// Runs the example on a file with both databases, for tests.
///
/// # Errors
/// As [`Stations::run`].
pub fn check(file: &Path, clients: usize) -> Result<(Sent, Sent)> {
    let stations = Stations {
        file: file.into(),
        to: To::Both,
        clients,
    };
    let weather = Weather::read(file)?;
    Ok((stations.sqlite(&weather)?, stations.postgres(&weather)?))
}
