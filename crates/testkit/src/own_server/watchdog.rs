//! The server process under a shell that ends it when this process ends, whatever ends this
//! process.
//!
//! The shell reads from a pipe whose other end only this process holds. A word means: stop the
//! server so. The end of the pipe means: the holder has died; stop the server and remove its
//! directory.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result};

use crate::procfs;

const SCRIPT: &str = r#"
dir=$1; log=$2; shift 2
"$@" >>"$log" 2>&1 </dev/null &
pid=$!
echo "$pid"
if read -r signal; then kept=yes; else signal=QUIT; kept=; fi
kill -CONT "$pid" 2>/dev/null
kill "-$signal" "$pid" 2>/dev/null
wait "$pid"
[ -n "$kept" ] || rm -rf "$dir"
"#;

/// A running server.
#[derive(Debug)]
pub(crate) struct Watched {
    shell: Child,
    pipe: Option<ChildStdin>,
    pid: u32,
}

/// A way to stop a server (PostgreSQL documentation, "Shutting Down the Server").
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    /// Open transactions are rolled back, a checkpoint is written.
    Fast,
    /// At once; the next start recovers from the log.
    Immediate,
    /// As a crash of the process would.
    Kill,
}

impl Watched {
    /// Starts `program args` by a shell that is run by `shell` (which says as whom, and where); its
    /// output goes to `log`. If this process dies, `dir` is removed.
    pub(crate) fn start(
        mut shell: Command,
        dir: &Path,
        log: &Path,
        program: &Path,
        args: &[String],
    ) -> Result<Self> {
        let mut shell = shell
            .args(["-c", SCRIPT, "windrow-watchdog"])
            .args([dir, log, program])
            .args(args)
            // Ctrl-C in a terminal goes to the whole group; the shell must outlive it to clean up.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot run /bin/sh")?;
        let mut line = String::new();
        let output = shell.stdout.take().context("the shell has no output")?;
        BufReader::new(output).read_line(&mut line)?;
        let pid = line
            .trim()
            .parse()
            .context("the shell did not say the server's process id")?;
        Ok(Self {
            pipe: shell.stdin.take(),
            shell,
            pid,
        })
    }

    /// Returns the server's main process.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// True while the main process runs.
    pub(crate) fn is_running(&self) -> bool {
        procfs::is_running(self.pid)
    }

    /// Stops the server and waits until its main process has ended. The directory stays.
    pub(crate) fn stop(mut self, how: Stop) -> Result<()> {
        let signal = match how {
            Stop::Fast => "INT",
            Stop::Immediate => "QUIT",
            Stop::Kill => "KILL",
        };
        if let Some(mut pipe) = self.pipe.take() {
            writeln!(pipe, "{signal}")?;
        }
        self.shell.wait()?;
        Ok(())
    }
}
