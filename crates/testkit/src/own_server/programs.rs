//! Where programs are installed.

use std::path::PathBuf;

/// Folders in which Debian puts servers, and that only root's PATH holds.
const MORE_FOLDERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin"];

/// Returns the folder that an environment variable names, if it is set.
pub(crate) fn named_folder(variable: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable)?;
    (!folder.is_empty()).then(|| PathBuf::from(folder))
}

/// Returns the file of a program on the PATH, or where Debian puts servers.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(MORE_FOLDERS.map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}
