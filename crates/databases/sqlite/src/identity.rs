//! Checks that the path still names the open file. SQLite continues with a file that was deleted or
//! replaced, as any program does with an open file. Its commits are lost with the file.

use std::path::{Path, PathBuf};

use windrow_core::Fault;

/// The identity of a file at the time it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    path: PathBuf,
    number: Option<(u64, u64)>,
}

impl Identity {
    /// Returns the identity of the file that a path names.
    pub(super) fn of(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            number: number(path),
        }
    }

    /// Checks that the path still names the file.
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Unknown`] if it does not: the last writes may be lost.
    pub(super) fn check(&self) -> Result<(), Fault> {
        if number(&self.path) == self.number {
            return Ok(());
        }
        Err(Fault::unknown(format!(
            "the SQLite file {} was deleted or replaced while it was open; what was written to it last may be lost",
            self.path.display()
        )))
    }
}

/// Returns the device and the number of a file (`stat(2)`).
#[cfg(unix)]
fn number(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;

    let facts = std::fs::metadata(path).ok()?;
    Some((facts.dev(), facts.ino()))
}

/// Returns nothing on systems where an open file cannot be deleted.
#[cfg(not(unix))]
fn number(_: &Path) -> Option<(u64, u64)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_deleted_or_replaced_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        std::fs::write(&path, "1").unwrap();
        let identity = Identity::of(&path);
        std::fs::write(&path, "2").unwrap();
        assert!(identity.check().is_ok());
        std::fs::rename(&path, folder.path().join("b.db")).unwrap();
        let gone = identity.check().unwrap_err();
        assert!(
            gone.message.contains("deleted or replaced"),
            "{}",
            gone.message
        );
        std::fs::write(&path, "2").unwrap();
        assert!(identity.check().is_err());
    }
}
