//! A command of the `windrow` program that comes to an end by itself, seen from outside.

#![expect(clippy::unwrap_used, reason = "what tests use may panic as tests may")]

use std::ffi::OsStr;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::process::{TEST_TIMEOUT, without_settings};

/// The output of a command that has ended.
#[derive(Debug)]
pub struct CommandOutput {
    /// The exit status; -1 if a signal ended the command.
    pub status: i32,
    /// The standard output.
    pub out: String,
    /// The standard error.
    pub err: String,
}

impl CommandOutput {
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
    pub fn fails_with(&self, text: &str) {
        let (status, err) = (self.status, &self.err);
        assert!(status == 1 && err.lines().count() == 1, "{status} {err}");
        assert!(err.contains(text), "{err} does not say {text:?}");
    }
}

/// Prepares a command of a program: without settings of this process's environment, its output
/// kept.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    without_settings(&mut command);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> CommandOutput {
    CommandOutput::of(&command.output().unwrap())
}

/// A command that runs. Killed when it is dropped.
#[derive(Debug)]
pub struct Running(Option<Child>);

impl Running {
    /// Starts it.
    pub fn start(command: &mut Command) -> Self {
        Self(Some(command.spawn().unwrap()))
    }

    /// SIGKILL, and its end.
    pub fn kill9(mut self) {
        let mut child = self.0.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// SIGTERM, and what it said to its end.
    pub fn terminate(self) -> CommandOutput {
        let child = self.0.as_ref().unwrap();
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        kill(pid, Signal::SIGTERM).unwrap();
        self.end()
    }

    /// Waits for the end, and returns the output.
    pub fn end(mut self) -> CommandOutput {
        CommandOutput::of(&self.0.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// Asks until the answer is there.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < TEST_TIMEOUT, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns a number from the environment, for longer runs by hand.
pub fn number(name: &str, default: usize) -> usize {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}
