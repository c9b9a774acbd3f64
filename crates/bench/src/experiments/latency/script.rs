//! The same by programs of other languages, as their users write them. What a driver prepares, it
//! prepares within the time that is taken.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use windrow_testkit::pgclient::Address;

/// A driver that is installed here.
pub(super) struct Script {
    /// The driver's name.
    pub(super) driver: &'static str,
    /// The driver's version.
    pub(super) version: String,
    program: &'static str,
    flag: &'static str,
    text: &'static str,
}

/// The form in which rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptForm {
    /// Each by itself.
    Rows,
    /// The same in one transaction.
    Transaction,
    /// The same, and the server makes each row's key and returns it.
    Returning,
    /// All by Perl's `execute_for_fetch`.
    ForFetch,
}

impl ScriptForm {
    fn name(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Transaction => "transaction",
            Self::Returning => "returning",
            Self::ForFetch => "for_fetch",
        }
    }
}

/// A driver's name, its interpreter, how that is given a text, the text that says the version, and
/// the script.
const SCRIPTS: [(&str, &str, &str, &str, &str); 3] = [
    (
        "DBD::Pg",
        "perl",
        "-e",
        "use DBD::Pg; print $DBD::Pg::VERSION",
        include_str!("rows.pl"),
    ),
    (
        "PDO",
        "php",
        "-r",
        "if (!extension_loaded('pdo_pgsql')) { exit(1); } echo PHP_VERSION;",
        include_str!("rows.php"),
    ),
    (
        "psycopg",
        "python3",
        "-c",
        "import psycopg; print(psycopg.__version__)",
        include_str!("rows.py"),
    ),
];

impl Script {
    /// Returns the scripts whose programs are installed, and the names of the others.
    pub(super) fn find() -> (Vec<Self>, Vec<&'static str>) {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for (driver, program, flag, asks, text) in SCRIPTS {
            let asked = Command::new(program).args([flag, asks]).output();
            match asked.ok().filter(|output| output.status.success()) {
                None => missing.push(driver),
                Some(output) => found.push(Self {
                    driver,
                    version: String::from_utf8_lossy(&output.stdout).trim().to_owned(),
                    program,
                    flag,
                    text,
                }),
            }
        }
        (found, missing)
    }

    /// Writes so many rows, and says how many seconds that took.
    pub(super) fn write(
        &self,
        address: &Address,
        setting: Option<&str>,
        form: ScriptForm,
        rows: u32,
    ) -> Result<f64> {
        let (host, port) = (address.socket.ip(), address.socket.port());
        let options = setting.map(|setting| format!("-c{setting}"));
        let output = Command::new(self.program)
            .args([self.flag, self.text])
            // PHP takes what begins with a dash for its own, but behind this.
            .args((self.program == "php").then_some("--"))
            .args([&host.to_string(), &port.to_string()])
            .args([&address.database, &address.role])
            .args([form.name(), &rows.to_string()])
            .arg(options.unwrap_or_default())
            .output()?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {error}", self.program);
        let seconds = String::from_utf8_lossy(&output.stdout);
        let seconds = seconds.trim().parse();
        seconds.with_context(|| format!("{} said no time", self.program))
    }
}
