//! The `windrow` program, started and watched from outside.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{locked, procfs};

/// The environment variable that names the program to test.
pub const BINARY: &str = "WINDROW_BIN";

/// The line that the program prints, once, on its standard error, followed by the address. The HTTP
/// socket is the last one that it opens.
const LISTENING: &str = "http listening on http://";

/// The same for the PostgreSQL frontend, if it is asked for; followed by the address and a
/// database.
const PG_LISTENING: &str = "pg listening on postgres://";

/// The same for the MySQL frontend.
const MYSQL_LISTENING: &str = "mysql listening on mysql://";

/// The time limit of a start, of an orderly end, and of anything else that a test waits for.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Lines of its log that are kept.
const LOG_LINES: usize = 10_000;

/// A running `windrow serve`. Killed when dropped, and when the process that holds it dies.
#[derive(Debug)]
pub struct Windrow {
    child: Child,
    guard: Child,
    address: SocketAddr,
    log: Arc<Mutex<VecDeque<String>>>,
    /// Reads its standard error; `None` once that was read to its end.
    reader: Option<JoinHandle<()>>,
}

/// Where the `windrow` program is: what `WINDROW_BIN` names, or else next to this program or test,
/// or else the release or debug build in the same target folder.
///
/// # Errors
/// It is at none of these places.
pub fn binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(BINARY) {
        return Ok(path.into());
    }
    let me = std::env::current_exe()?;
    // target/debug/program, target/debug/deps/test and target/debug/examples/example.
    let near = me.ancestors().skip(1).take(2).map(|d| d.join("windrow"));
    let others = ["release", "debug"].into_iter().flat_map(|profile| {
        me.ancestors()
            .skip(2)
            .take(2)
            .map(move |d| d.join(profile).join("windrow"))
    });
    near.chain(others)
        .find(|path| path.is_file())
        .with_context(|| {
            format!("no `windrow` program near {}; build it with `cargo build --release -p windrow`, or name it in {BINARY}", me.display())
        })
}

/// Keeps settings of this process's environment (`WINDROW_*`, and the `OTEL_*` of traces) from a
/// command.
pub fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let name_bytes = name.as_encoded_bytes();
        if name_bytes.starts_with(b"WINDROW_") || name_bytes.starts_with(b"OTEL_") {
            command.env_remove(name);
        }
    }
}

impl Windrow {
    /// Starts `program serve arguments --http 127.0.0.1:0` and waits until it listens. Settings of
    /// this process's environment (`WINDROW_*`) do not reach it, except `WINDROW_LOG`.
    ///
    /// # Errors
    /// It ends or says nothing for a minute; the message holds what it printed.
    pub fn serve<S: AsRef<OsStr>>(program: &Path, arguments: &[S]) -> Result<Self> {
        let mut command = Command::new(program);
        without_settings(&mut command);
        if let Some(log) = std::env::var_os("WINDROW_LOG") {
            command.env("WINDROW_LOG", log);
        }
        command
            .arg("serve")
            .args(arguments)
            .args(["--http", "127.0.0.1:0"]);
        Self::command(&mut command)
    }

    /// Starts any command that becomes a `windrow serve` in the same process, and waits until it
    /// listens.
    ///
    /// # Errors
    /// As [`Windrow::serve`].
    pub fn command(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let guard = guard(child.id())?;
        let stderr = child.stderr.take().context("no standard error")?;
        let log = Arc::new(Mutex::new(VecDeque::new()));
        let (sender, receiver) = mpsc::sync_channel(1);
        let kept = Arc::clone(&log);
        let reader = thread::spawn(move || keep_log(stderr, &kept, &sender));
        // From here on the value's own Drop ends it.
        let mut windrow = Self {
            child,
            guard,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            log,
            reader: Some(reader),
        };
        windrow.address = windrow.wait_for_address(&receiver)?;
        Ok(windrow)
    }

    fn wait_for_address(&self, receiver: &Receiver<SocketAddr>) -> Result<SocketAddr> {
        match receiver.recv_timeout(TEST_TIMEOUT) {
            Ok(address) => Ok(address),
            Err(RecvTimeoutError::Disconnected) => {
                bail!("windrow ended before it listened:\n{}", self.log())
            }
            Err(RecvTimeoutError::Timeout) => {
                bail!(
                    "windrow does not listen after {TEST_TIMEOUT:?}:\n{}",
                    self.log()
                )
            }
        }
    }

    /// Where it listens for HTTP.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address for PostgreSQL's protocol, if it was asked for (`--pg`).
    pub fn pg_address(&self) -> Option<SocketAddr> {
        self.log().lines().find_map(|l| address_in(l, PG_LISTENING))
    }

    /// Returns the address for MySQL's protocol, if it was asked for (`--mysql`).
    pub fn mysql_address(&self) -> Option<SocketAddr> {
        let lines = self.log();
        lines.lines().find_map(|l| address_in(l, MYSQL_LISTENING))
    }

    /// Returns the URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the last 10,000 lines that it printed on its standard error.
    pub fn log(&self) -> String {
        let lines = locked(&self.log);
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Resident memory in bytes.
    ///
    /// # Errors
    /// It has ended.
    pub fn resident_bytes(&self) -> Result<u64> {
        procfs::resident_bytes(self.pid())
    }

    /// CPU time so far, user and system, in steps of 10 ms.
    ///
    /// # Errors
    /// It has ended.
    pub fn cpu_time(&self) -> Result<Duration> {
        procfs::cpu_time(self.pid())
    }

    /// Asks it to finish what it has accepted and end (SIGTERM).
    ///
    /// # Errors
    /// It has ended.
    pub fn terminate(&self) -> Result<()> {
        self.signal(Signal::SIGTERM)
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// It has ended.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.pid())?;
        Ok(kill(Pid::from_raw(pid), signal)?)
    }

    /// Waits until it has ended by itself; [`Windrow::log`] has all that it said then. Blocks.
    ///
    /// # Errors
    /// It has not after a minute.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        let start = Instant::now();
        while start.elapsed() < TEST_TIMEOUT {
            if let Some(status) = self.child.try_wait()? {
                self.reader.take().map(JoinHandle::join);
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(5));
        }
        bail!(
            "windrow has not ended after {TEST_TIMEOUT:?}:\n{}",
            self.log()
        )
    }

    /// Ends it as a crash would (SIGKILL) and waits until it is gone.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn kill9(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Windrow {
    fn drop(&mut self) {
        // Nothing can be reported here; the guard kills what is left.
        self.kill9().ok();
        if let Some(mut pipe) = self.guard.stdin.take() {
            pipe.write_all(b"done\n").ok();
        }
        self.guard.wait().ok();
    }
}

/// Starts a shell that kills the process if this one ends without writing `done`.
fn guard(pid: u32) -> Result<Child> {
    use std::os::unix::process::CommandExt;

    Command::new("/bin/sh")
        .args(["-c", r#"read -r done || kill -KILL "$1""#, "windrow-guard"])
        .arg(pid.to_string())
        // Ctrl-C in a terminal must not end the guard before its work.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot run /bin/sh")
}

fn keep_log(stderr: ChildStderr, log: &Mutex<VecDeque<String>>, found: &SyncSender<SocketAddr>) {
    // Bytes that are not UTF-8 must not end the reading: a full pipe would block the process.
    for line in BufReader::new(stderr).split(b'\n') {
        let Ok(line) = line else { break };
        let line = String::from_utf8_lossy(&line).into_owned();
        if let Some(address) = address_in(&line, LISTENING) {
            found.try_send(address).ok();
        }
        let mut lines = locked(log);
        if lines.len() == LOG_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

fn address_in(line: &str, listening: &str) -> Option<SocketAddr> {
    let rest = line.split_once(listening)?.1;
    let end = rest
        .find(|c: char| c.is_whitespace() || c == '/')
        .unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> Result<Windrow> {
        Windrow::command(Command::new("/bin/sh").args(["-c", text]))
    }

    #[test]
    fn the_address_is_read_from_the_log() {
        let line = "windrow: http listening on http://127.0.0.1:4711 (loopback only)";
        let found = address_in(line, LISTENING);
        assert_eq!(found, Some(([127, 0, 0, 1], 4711).into()));
        let line = "windrow: pg listening on postgres://127.0.0.1:4712/app";
        let found = address_in(line, PG_LISTENING);
        assert_eq!(found, Some(([127, 0, 0, 1], 4712).into()));
        assert_eq!(address_in("windrow: ready", LISTENING), None);
    }

    #[test]
    fn starts_tells_and_ends() {
        let mut w = script(
            "trap 'exit 3' TERM; echo first >&2; echo 'windrow: http listening on http://127.0.0.1:7' >&2; while :; do sleep 0.01; done",
        )
        .unwrap();
        assert_eq!(w.url("/x"), "http://127.0.0.1:7/x");
        assert!(w.log().starts_with("first\n"));
        w.terminate().unwrap();
        assert_eq!(w.wait().unwrap().code(), Some(3));
    }

    #[test]
    fn a_program_that_ends_at_once_is_quoted() {
        let error = script("echo 'bad flag --x' >&2; exit 2").unwrap_err();
        assert!(error.to_string().contains("bad flag --x"), "{error}");
    }

    #[test]
    fn nothing_runs_on_after_drop() {
        let w = script("echo 'http listening on http://127.0.0.1:7' >&2; exec sleep 1000").unwrap();
        let pid = w.pid();
        assert!(procfs::is_running(pid));
        drop(w);
        assert!(!procfs::is_running(pid));
    }
}
