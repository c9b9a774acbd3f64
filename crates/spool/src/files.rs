//! The port to the file system: all that a spool does with files goes through it, so that tests can
//! play a disk that lies, is full, or loses power.

mod real;

use std::fmt::Debug;
use std::io;
use std::path::Path;

pub use self::real::RealFiles;

/// A file system. All calls block.
pub trait Files: Debug + Send + Sync + 'static {
    /// Makes a file and opens it for reading and writing. Its name is durable only after
    /// [`Files::sync_directory`].
    ///
    /// # Errors
    /// `AlreadyExists`, where a file of that name is there, and those of the system.
    fn create(&self, path: &Path) -> io::Result<Box<dyn FileHandle>>;

    /// Opens a file that is there, for reading and writing.
    ///
    /// # Errors
    /// `NotFound`, and those of the system.
    fn open(&self, path: &Path) -> io::Result<Box<dyn FileHandle>>;

    /// Opens a file that is there, for reading alone.
    ///
    /// # Errors
    /// `NotFound`, and those of the system.
    fn open_to_read(&self, path: &Path) -> io::Result<Box<dyn FileHandle>>;

    /// The names of all that is in a directory, in any order. Names that are not UTF-8 are left
    /// out.
    ///
    /// # Errors
    /// `NotFound`, and those of the system.
    fn list(&self, directory: &Path) -> io::Result<Vec<String>>;

    /// Makes a directory; nothing happens where it is there already. The directory that it is made
    /// in must exist.
    ///
    /// # Errors
    /// Those of the system.
    fn make_directory(&self, directory: &Path) -> io::Result<()>;

    /// Gives a file another name in the same directory, at once or not at all, also where power is
    /// lost.
    ///
    /// # Errors
    /// Those of the system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file. Handles that are open stay good.
    ///
    /// # Errors
    /// Those of the system.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes durable what was made, renamed and removed in a directory.
    ///
    /// # Errors
    /// Those of the system.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;

    /// Locks a file, which is made where it is not there, until the guard is dropped or the process
    /// ends in any way.
    ///
    /// # Errors
    /// `WouldBlock` if another process holds the lock, and those of the system.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Debug + Send + Sync>>;
}

/// An open file. All calls block; several threads may call at once.
pub trait FileHandle: Debug + Send + Sync {
    /// Reads from a place on; gives the number of bytes read, which may be fewer than there are.
    /// 0: the file ends there.
    ///
    /// # Errors
    /// Those of the system.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes from a place on; gives the number of bytes taken, which may be fewer than were given.
    /// They are durable only after [`FileHandle::sync`].
    ///
    /// # Errors
    /// `StorageFull`, `QuotaExceeded`, and those of the system. Nothing was taken then.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Returns false once the file was removed: bytes written to it then are gone with the last
    /// handle. True if the system cannot know.
    ///
    /// # Errors
    /// Those of the system.
    fn has_name(&self) -> io::Result<bool> {
        Ok(true)
    }

    /// The length in bytes.
    ///
    /// # Errors
    /// Those of the system.
    fn length(&self) -> io::Result<u64>;

    /// Cuts the file, or fills it up with zeros. Durable only after [`FileHandle::sync`].
    ///
    /// # Errors
    /// Those of the system.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Makes a file longer, with zeros. Where the system can do that, they have their place on the
    /// disk: a sync of what is written over them later has nothing to note but the bytes.
    ///
    /// # Errors
    /// Those of the system. The file is as long as before, or so long.
    fn reserve(&self, length: u64) -> io::Result<()> {
        self.truncate(length)
    }

    /// Makes durable what was written and how long the file is. Where it has failed once, a later
    /// success proves nothing: the system may have forgotten what it could not write.
    ///
    /// # Errors
    /// Those of the system.
    fn sync(&self) -> io::Result<()>;
}

/// Writes all of the bytes, in as many turns as it takes. Blocks.
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

/// Fills the buffer from a place on, in as many turns as it takes; gives the number of bytes, which
/// are fewer only where the file ends.
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
