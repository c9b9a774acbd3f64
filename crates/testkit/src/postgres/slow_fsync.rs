//! A disk that is slow to sync, by a small library that is compiled and loaded into the server.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::own_server::run;

const SOURCE: &str = include_str!("slow_fsync.c");

/// A server's disk, made slower.
#[derive(Clone, Debug)]
pub(crate) struct SlowDisk {
    object: PathBuf,
    by: Duration,
}

impl SlowDisk {
    /// Compiles the library into a folder that the server's account can read.
    pub(crate) fn make(folder: &Path, by: Duration) -> Result<Self> {
        let (source, library) = (folder.join("slow_fsync.c"), folder.join("slow_fsync.so"));
        std::fs::write(&source, SOURCE)?;
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O2", "-o"]);
        let advice = "cannot run cc; install a C compiler, for example with: apt-get install gcc";
        run(cc.args([&library, &source])).context(advice)?;
        Ok(Self {
            object: library,
            by,
        })
    }

    /// Returns the words before a command that has it run on this disk.
    pub(crate) fn prefix(&self) -> Vec<String> {
        vec![
            format!("LD_PRELOAD={}", self.object.to_string_lossy()),
            format!("WINDROW_SLOW_FSYNC_NS={}", self.by.as_nanos()),
        ]
    }
}
