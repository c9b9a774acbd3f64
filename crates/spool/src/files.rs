//! The port to the file system. A spool accesses files only through it, so that tests can simulate
//! a disk that lies, is full, or loses power.

mod real;

use std::fmt::Debug;
use std::io;
use std::path::Path;

pub use self::real::RealFiles;

/// A file system. All calls block.
pub trait Files: Debug + Send + Sync + 'static {
    /// Creates a file and opens it for reading and writing. Its name is durable only after
    /// [`Files::sync_directory`].
    ///
    /// # Errors
    /// `AlreadyExists` if the file exists, and those of the system.
    fn create(&self, path: &Path) -> io::Result<Box<dyn FileHandle>>;

    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    /// `NotFound`, and those of the system.
    fn open(&self, path: &Path) -> io::Result<Box<dyn FileHandle>>;

    /// Opens an existing file for reading.
    ///
    /// # Errors
    /// `NotFound`, and those of the system.
    fn open_to_read(&self, path: &Path) -> io::Result<Box<dyn FileHandle>>;

    /// Returns the names in a directory, in any order. Names that are not UTF-8 are left out.
    ///
    /// # Errors
    /// `NotFound`, and those of the system.
    fn list(&self, directory: &Path) -> io::Result<Vec<String>>;

    /// Creates a directory, unless it exists. Its parent must exist.
    ///
    /// # Errors
    /// Those of the system.
    fn make_directory(&self, directory: &Path) -> io::Result<()>;

    /// Renames a file within its directory, atomically even if power is lost.
    ///
    /// # Errors
    /// Those of the system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file. Open handles stay valid.
    ///
    /// # Errors
    /// Those of the system.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the changes of a directory's names durable: files created, renamed and removed in it.
    ///
    /// # Errors
    /// Those of the system.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;

    /// Locks a file, which is created if needed, until the guard is dropped or the process ends in
    /// any way.
    ///
    /// # Errors
    /// `WouldBlock` if another process holds the lock, and those of the system.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Debug + Send + Sync>>;
}

/// An open file. All calls block; several threads may call at the same time.
pub trait FileHandle: Debug + Send + Sync {
    /// Reads at an offset. Returns the number of bytes read, which may be fewer than the file has;
    /// 0 at the end of the file.
    ///
    /// # Errors
    /// Those of the system.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes at an offset. Returns the number of bytes written, which may be fewer than were
    /// given. They are durable only after [`FileHandle::sync`].
    ///
    /// # Errors
    /// `StorageFull`, `QuotaExceeded`, and those of the system. Nothing was written then.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Returns false once the file was removed: bytes written to it then are lost with the last
    /// handle. Returns true if the system cannot know.
    ///
    /// # Errors
    /// Those of the system.
    fn has_name(&self) -> io::Result<bool> {
        Ok(true)
    }

    /// Returns the length in bytes.
    ///
    /// # Errors
    /// Those of the system.
    fn length(&self) -> io::Result<u64>;

    /// Cuts the file, or extends it with zeros. Durable only after [`FileHandle::sync`].
    ///
    /// # Errors
    /// Those of the system.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Extends the file with zeros, and allocates their space on the disk if the system can do
    /// that. Then a sync of bytes written over them later only has to store the bytes.
    ///
    /// # Errors
    /// Those of the system. The file then has its old length or the new one.
    fn reserve(&self, length: u64) -> io::Result<()> {
        self.truncate(length)
    }

    /// Makes the file's bytes and its length durable. After one failure a later success proves
    /// nothing: the system may have dropped what it could not write.
    ///
    /// # Errors
    /// Those of the system.
    fn sync(&self) -> io::Result<()>;
}

/// Writes all of the bytes, with as many calls as needed. Blocks.
///
/// # Errors
/// As [`FileHandle::write_at`]; a part of the bytes may be written then.
pub fn write_all(file: &dyn FileHandle, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let taken = match file.write_at(bytes, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(taken) => taken,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        bytes = bytes.get(taken..).unwrap_or_default();
        at += taken as u64;
    }
    Ok(())
}

/// Fills the buffer from an offset, with as many calls as needed. Returns the number of bytes,
/// which is smaller only at the end of the file.
pub(crate) fn read_full(file: &dyn FileHandle, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}
