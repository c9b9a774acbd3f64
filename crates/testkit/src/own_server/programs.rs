//! Where programs are installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Folders in which Debian puts servers, and that only root's PATH holds.
const MORE_FOLDERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin"];

/// Returns the folder that an environment variable names, if it is set.
pub(crate) fn named_folder(variable: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable)?;
    (!folder.is_empty()).then(|| PathBuf::from(folder))
}

/// Returns a word that differs for two builds of a program. To ask the program for its version
/// would take longer.
pub(crate) fn build_of(program: &Path) -> String {
    let meta = fs::metadata(program).ok();
    let time = meta.as_ref().and_then(|meta| meta.modified().ok());
    let time = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let seconds = time.map_or(0, |time| time.as_secs());
    format!("{}-{seconds}", meta.map_or(0, |meta| meta.len()))
}

/// Returns the file of a program on the PATH, or where Debian puts servers.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(MORE_FOLDERS.map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}
