//! The program, and databases for it.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use windrow_testkit::postgres::{self, Database};

/// How long anything may take before a test counts as failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// An empty database of PostgreSQL.
pub fn postgres() -> Database {
    postgres::shared().unwrap()
}

/// What a run of the program said.
pub struct Told {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Told {
    fn of(output: &Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Checks the exit status.
    #[track_caller]
    pub fn ends(self, status: i32) -> Self {
        assert_eq!(self.status, status, "{}{}", self.out, self.err);
        self
    }

    /// Checks that it failed with one line that holds this.
    #[track_caller]
    pub fn fails_with(self, text: &str) {
        let lines = self.err.lines().count();
        assert!(
            self.status == 1 && lines == 1,
            "{} {}",
            self.status,
            self.err
        );
        assert!(
            self.err.contains(text),
            "{} does not say {text:?}",
            self.err
        );
    }
}

fn command(from: &str, source: &str, destination: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windrow"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("WINDROW_")) {
        command.env_remove(name);
    }
    command
        .args(["move", "--from", from, "--source", source])
        .args(["--destination", destination, "--progress", "none"])
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs `windrow move` to its end.
pub fn move_rows(from: &str, source: &str, destination: &str, more: &[&str]) -> Told {
    Told::of(&command(from, source, destination, more).output().unwrap())
}

/// A `windrow move` that runs. Killed when it is dropped.
pub struct Mover(Option<Child>);

impl Mover {
    pub fn start(from: &str, source: &str, destination: &str, more: &[&str]) -> Self {
        let child = command(from, source, destination, more).spawn().unwrap();
        Self(Some(child))
    }

    /// SIGKILL, and its end.
    pub fn kill9(mut self) {
        let mut child = self.0.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// SIGTERM, and what it said to its end.
    pub fn terminate(mut self) -> Told {
        let child = self.0.take().unwrap();
        let pid = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        Told::of(&child.wait_with_output().unwrap())
    }

    /// What it said to its end.
    pub fn end(mut self) -> Told {
        Told::of(&self.0.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// Runs SQL; rows come back one a line.
#[track_caller]
pub fn sql(database: &Database, text: &str) -> String {
    database.exec(text).unwrap().trim_end().to_owned()
}

/// Asks until the answer is there.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::yield_now();
    }
}

/// A number from the environment, for longer runs by hand.
pub fn number(name: &str, default: usize) -> usize {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}
