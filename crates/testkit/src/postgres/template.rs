//! A data directory made once by `initdb` and copied for each server: 20 times as fast as `initdb`.
//!
//! It lies in the temporary directory, named by version and account, and belongs to the account
//! that servers run as, readable by nobody else. It is made under another name and renamed, so half
//! of one is never seen.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::account::Account;
use super::binaries::Binaries;

/// The superuser of every server that is started here. Local connections need no password.
pub(crate) const SUPERUSER: &str = "windrow";

/// Cleaners of temporary directories remove files by age; a template is made anew before they
/// begin.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// Puts a fresh data directory at `target`.
pub(crate) fn lay(binaries: &Binaries, account: &Account, target: &Path) -> Result<()> {
    let template = place(binaries, account)?;
    if !is_ours(&template, account) {
        make(binaries, account, &template)?;
    }
    if is_ours(&template, account) && copy(account, &template, target).is_ok() {
        return Ok(());
    }
    // Somebody else's file stands there, or it was being replaced during the copy.
    if target.exists() {
        fs::remove_dir_all(target)?;
    }
    initdb(binaries, account, target)
}

fn place(binaries: &Binaries, account: &Account) -> Result<PathBuf> {
    let output = account
        .command(&binaries.program("postgres"))
        .arg("--version")
        .output()?;
    // "postgres (PostgreSQL) 17.2 (Debian 17.2-1)"
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split_whitespace().nth(2).unwrap_or("unknown");
    let name = format!("windrow-postgres-template-{version}-{}", account.uid());
    Ok(std::env::temp_dir().join(name))
}

fn is_ours(template: &Path, account: &Account) -> bool {
    fs::symlink_metadata(template).is_ok_and(|meta| {
        let age = meta.modified().ok().and_then(|t| t.elapsed().ok());
        meta.is_dir()
            && meta.uid() == account.uid()
            && meta.mode() & 0o077 == 0
            && age.is_none_or(|age| age < KEPT)
    })
}

fn make(binaries: &Binaries, account: &Account, template: &Path) -> Result<()> {
    let scratch = scratch(account)?;
    let fresh = scratch.path().join("fresh");
    initdb(binaries, account, &fresh)?;
    // One that another has made meanwhile stays: it may be being copied.
    if template.exists() && !is_ours(template, account) {
        fs::rename(template, scratch.path().join("old")).ok();
    }
    fs::rename(&fresh, template).ok();
    Ok(())
}

/// A temporary directory that belongs to the account.
pub(crate) fn scratch(account: &Account) -> Result<tempfile::TempDir> {
    let dir = tempfile::Builder::new()
        .prefix("windrow-postgres-")
        .tempdir()
        .context("cannot make a temporary directory")?;
    account.give(dir.path())?;
    Ok(dir)
}

fn copy(account: &Account, template: &Path, target: &Path) -> Result<()> {
    run(account
        .command(Path::new("cp"))
        .arg("-a")
        .arg(template)
        .arg(target))
}

fn initdb(binaries: &Binaries, account: &Account, target: &Path) -> Result<()> {
    run(account
        .command(&binaries.program("initdb"))
        .args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C"])
        .args(["-U", SUPERUSER, "-D"])
        .arg(target))
}

fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}
