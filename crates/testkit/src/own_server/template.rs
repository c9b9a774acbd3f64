//! A data directory made once by a server's own program and copied for each server: many times as
//! fast.
//!
//! The template lies in the temporary directory, named by product, build and account, and belongs
//! to the account that servers run as, readable by nobody else. It is made under another name and
//! renamed, so half of one is never seen.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::account::Account;

/// The age at which a template is made again: cleaners of temporary directories remove files by
/// age, and begin later.
const MAX_AGE: Duration = Duration::from_secs(24 * 3600);

/// A build of a product of which a data directory is kept.
pub(crate) struct Template<'a> {
    pub(crate) product: &'a str,
    pub(crate) build: &'a str,
    /// Account that the directory belongs to.
    pub(crate) account: &'a Account,
    /// Makes a data directory at a path.
    pub(crate) install: &'a dyn Fn(&Path) -> Result<()>,
}

impl Template<'_> {
    /// Puts a fresh data directory at `target`.
    pub(crate) fn lay(&self, target: &Path) -> Result<()> {
        let kept = self.path();
        if !self.is_usable(&kept) {
            self.make(&kept)?;
        }
        if self.is_usable(&kept) && self.copy(&kept, target).is_ok() {
            return Ok(());
        }
        // Another account's file stands there, or it was being replaced during the copy.
        if target.exists() {
            fs::remove_dir_all(target)?;
        }
        (self.install)(target)
    }

    fn path(&self) -> PathBuf {
        let Self { product, build, .. } = self;
        let uid = self.account.uid();
        std::env::temp_dir().join(format!("windrow-{product}-template-{build}-{uid}"))
    }

    fn is_usable(&self, kept: &Path) -> bool {
        fs::symlink_metadata(kept).is_ok_and(|meta| {
            let age = meta.modified().ok().and_then(|t| t.elapsed().ok());
            meta.is_dir()
                && meta.uid() == self.account.uid()
                && meta.mode() & 0o077 == 0
                && age.is_none_or(|age| age < MAX_AGE)
        })
    }

    fn make(&self, kept: &Path) -> Result<()> {
        let scratch = scratch(self.product, self.account)?;
        let fresh = scratch.path().join("fresh");
        (self.install)(&fresh)?;
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o700))?;
        // One that another process has made meanwhile stays: it may be being copied.
        if kept.exists() && !self.is_usable(kept) {
            fs::rename(kept, scratch.path().join("old")).ok();
        }
        fs::rename(&fresh, kept).ok();
        Ok(())
    }

    fn copy(&self, kept: &Path, target: &Path) -> Result<()> {
        let mut command = self.account.command(Path::new("cp"));
        run(command.arg("-a").arg(kept).arg(target))
    }
}

/// Makes a temporary directory that belongs to the account.
pub(crate) fn scratch(product: &str, account: &Account) -> Result<TempDir> {
    let dir = tempfile::Builder::new()
        .prefix(&format!("windrow-{product}-"))
        .tempdir()
        .context("cannot make a temporary directory")?;
    account.give(dir.path())?;
    Ok(dir)
}

/// Runs a program to its end.
///
/// # Errors
/// It cannot be run, or fails; the message holds its output.
pub(crate) fn run(command: &mut Command) -> Result<()> {
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

/// Runs a program that reads SQL and writes rows to its end, and returns the rows.
///
/// # Errors
/// It cannot be run (`advice`), or fails; the message holds its words.
pub(crate) fn feed(command: &mut Command, sql: &str, advice: &'static str) -> Result<String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context(advice)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that could not connect has closed its end; its own words, below, say more than
        // a broken pipe.
        stdin.write_all(sql.as_bytes()).ok();
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let name = Path::new(command.get_program()).file_name();
        let name = name.unwrap_or_default().display();
        bail!(
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.trim_end_matches('\n').to_owned())
}
