//! A data directory made once by `mariadb-install-db` and copied for each server: many times as
//! fast.
//!
//! It lies in the temporary directory, named by version and user, readable by nobody else. It is
//! made under another name and renamed, so half of one is never seen.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::binaries::{Binaries, as_self};

/// Cleaners of temporary directories remove files by age; a template is made anew before they
/// begin.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// Puts a fresh data directory at `target`.
pub(crate) fn lay(binaries: &Binaries, target: &Path) -> Result<()> {
    let template = place(binaries)?;
    if !is_ours(&template) {
        make(binaries, &template)?;
    }
    let copied = || run(Command::new("cp").arg("-a").arg(&template).arg(target)).is_ok();
    if is_ours(&template) && copied() {
        return Ok(());
    }
    // Somebody else's file stands there, or it was being replaced during the copy.
    if target.exists() {
        fs::remove_dir_all(target)?;
    }
    install(binaries, target)
}

/// A temporary directory for a server.
pub(crate) fn scratch() -> Result<tempfile::TempDir> {
    tempfile::Builder::new()
        .prefix("windrow-mariadb-")
        .tempdir()
        .context("cannot make a temporary directory")
}

fn place(binaries: &Binaries) -> Result<PathBuf> {
    let uid = fs::metadata("/proc/self")
        .context("/proc is needed to start servers")?
        .uid();
    let name = format!("windrow-mariadb-template-{}-{uid}", binaries.version());
    Ok(std::env::temp_dir().join(name))
}

fn is_ours(template: &Path) -> bool {
    let own = fs::metadata("/proc/self").map(|meta| meta.uid()).ok();
    fs::symlink_metadata(template).is_ok_and(|meta| {
        let age = meta.modified().ok().and_then(|t| t.elapsed().ok());
        meta.is_dir() && Some(meta.uid()) == own && age.is_none_or(|age| age < KEPT)
    })
}

fn make(binaries: &Binaries, template: &Path) -> Result<()> {
    let scratch = scratch()?;
    let fresh = scratch.path().join("fresh");
    install(binaries, &fresh)?;
    if template.exists() {
        // Too old. Another process may be faster at this, which is as good.
        fs::rename(template, scratch.path().join("old")).ok();
    }
    fs::rename(&fresh, template).ok();
    Ok(())
}

fn install(binaries: &Binaries, target: &Path) -> Result<()> {
    let mut command = Command::new(&binaries.install);
    command
        .args(binaries.install_options())
        .args(as_self())
        .arg(format!("--datadir={}", target.display()));
    run(&mut command)
}

fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?}: {}\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}
