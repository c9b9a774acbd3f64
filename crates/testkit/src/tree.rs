//! The files of the repository, for tests that hold its rules.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the files below a folder whose names end with `.kind`, sorted.
///
/// # Errors
/// A folder that cannot be read.
pub fn files(folder: &Path, kind: &str) -> io::Result<Vec<PathBuf>> {
    let (mut folders, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == kind) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the folders of all crates below `crates`, sorted.
///
/// # Errors
/// A folder that cannot be read.
pub fn crates() -> io::Result<Vec<PathBuf>> {
    let manifests = files(&root().join("crates"), "toml")?;
    let manifests = manifests.iter().filter(|path| path.ends_with("Cargo.toml"));
    let folders = manifests.filter_map(|path| path.parent().map(Path::to_owned));
    Ok(folders.collect())
}

/// Returns true for a file that holds nothing but tests.
pub fn is_test(path: &Path) -> bool {
    path.ends_with("tests.rs") || path.components().any(|c| c.as_os_str() == "tests")
}
