//! The same by Perl's DBI, as its users write it. It prepares behind its first execution, within
//! the time that is taken.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use windrow_testkit::pgclient::Address;

const SCRIPT: &str = include_str!("rows.pl");

/// Perl with DBD::Pg.
pub(super) struct Perl {
    version: String,
}

/// How rows are written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// Each by `execute`.
    Rows,
    /// The same between `begin_work` and `commit`.
    Transaction,
    /// All by `execute_for_fetch`.
    ForFetch,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Transaction => "transaction",
            Self::ForFetch => "for_fetch",
        }
    }
}

impl Perl {
    /// `None`: it is not installed.
    pub(super) fn find() -> Option<Self> {
        let asked = Command::new("perl")
            .args(["-MDBD::Pg", "-e", "print $DBD::Pg::VERSION"])
            .output();
        let told = asked.ok().filter(|told| told.status.success())?;
        let version = String::from_utf8_lossy(&told.stdout).into_owned();
        Some(Self { version })
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Writes so many rows, and says how many seconds that took.
    pub(super) fn write(
        &self,
        address: &Address,
        setting: Option<&str>,
        form: Form,
        rows: u32,
    ) -> Result<f64> {
        let (host, port) = (address.socket.ip(), address.socket.port());
        let mut name = format!("dbi:Pg:host={host};port={port};dbname={}", address.database);
        if let Some(setting) = setting {
            name.push_str(&format!(";options=-c{setting}"));
        }
        let told = Command::new("perl")
            .args(["-e", SCRIPT, &name, &address.role, form.name()])
            .arg(rows.to_string())
            .output()?;
        let error = String::from_utf8_lossy(&told.stderr);
        ensure!(told.status.success(), "perl: {error}");
        let seconds = String::from_utf8_lossy(&told.stdout);
        seconds.trim().parse().context("perl said no time")
    }
}
