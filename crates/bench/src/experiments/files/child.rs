//! A program that loads a file, and what it takes.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use windrow_testkit::procfs;

/// The interval of looks at memory. The system keeps the peak, so only growth at the very end can
/// be missed.
const LOOK: Duration = Duration::from_millis(5);

/// The cost of a run.
#[derive(Clone, Debug, Default)]
pub(in crate::experiments) struct Took {
    pub(in crate::experiments) time: Duration,
    pub(in crate::experiments) cpu: Duration,
    pub(in crate::experiments) peak_bytes: u64,
    /// The exit status; `None` if a signal ended it.
    pub(in crate::experiments) status: Option<i32>,
    pub(in crate::experiments) stderr: String,
}

/// Runs it to its end.
///
/// # Errors
/// It is not there.
pub(in crate::experiments) fn run(command: &mut Command) -> Result<Took> {
    let name = command.get_program().to_owned();
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", name.display()))?;
    let stderr = child.stderr.take();
    let reader = thread::spawn(move || stderr.map(std::io::read_to_string));
    let mut took = Took::default();
    let status = loop {
        if let Ok(bytes) = procfs::peak_resident_bytes(child.id()) {
            took.peak_bytes = took.peak_bytes.max(bytes);
        }
        if let Some(stat) = procfs::stat(child.id()) {
            took.cpu = stat.own;
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(LOOK);
    };
    took.time = start.elapsed();
    took.status = status.code();
    if let Ok(Some(text)) = reader.join() {
        took.stderr = text?;
    }
    Ok(took)
}
