//! Keeps the cores from sleeping.
//!
//! A virtual machine whose core has nothing to do hands it back, and on some hosts gets it back a
//! tenth of a millisecond later: every message between two processes then costs more than all that
//! is measured. A loop on each core that gives way to everything else (`SCHED_IDLE`) prevents it,
//! as `idle=poll` does at boot. It takes no time from anybody, and it is the same for all ways that
//! are compared.

use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// A shell loop that counts, and ends once the process that started it has ended.
const LOOP: &str =
    "while kill -0 \"$0\" 2>/dev/null; do i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; done";

/// The cores stay awake until this is dropped.
#[derive(Debug)]
pub struct Awake(Vec<Child>);

impl Awake {
    /// Starts a loop on each core.
    ///
    /// # Errors
    /// `taskset` or `chrt` is not there (package util-linux).
    pub fn start() -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut awake = Self(Vec::with_capacity(cores));
        for core in 0..cores {
            let child = Command::new("taskset")
                .args(["--cpu-list", &core.to_string()])
                .args(["chrt", "--idle", "0", "sh", "-c", LOOP])
                .arg(std::process::id().to_string())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .context("--awake needs taskset and chrt (package util-linux)")?;
            awake.0.push(child);
        }
        Ok(awake)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended by itself is no trouble.
            drop(child.kill());
            drop(child.wait());
        }
    }
}
