//! The file system of the machine.

use std::fmt::Debug;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use super::{FileHandle, Files};

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFiles;

impl Files for RealFiles {
    fn create(&self, path: &Path) -> io::Result<Box<dyn FileHandle>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        Ok(Box::new(private(&mut options).open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn FileHandle>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Box::new(file))
    }

    fn open_to_read(&self, path: &Path) -> io::Result<Box<dyn FileHandle>> {
        Ok(Box::new(File::open(path)?))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for item in std::fs::read_dir(directory)? {
            names.extend(item?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn make_directory(&self, directory: &Path) -> io::Result<()> {
        match private_directory(directory) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => Ok(()),
            other => other,
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    #[cfg(unix)]
    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        File::open(directory)?.sync_all()
    }

    /// Directories cannot be synced here; the file system's own journal keeps names in order.
    #[cfg(not(unix))]
    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Debug + Send + Sync>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = private(&mut options).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(file)),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }
}

impl FileHandle for File {
    #[cfg(unix)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, buffer, offset)
    }

    #[cfg(unix)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::write_at(self, bytes, offset)
    }

    #[cfg(windows)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_write(self, bytes, offset)
    }

    #[cfg(unix)]
    fn has_name(&self) -> io::Result<bool> {
        Ok(std::os::unix::fs::MetadataExt::nlink(&self.metadata()?) > 0)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    #[cfg(target_os = "linux")]
    fn reserve(&self, length: u64) -> io::Result<()> {
        use nix::fcntl::{FallocateFlags, fallocate};

        let there = FileHandle::length(self)?;
        let more = length.saturating_sub(there);
        let (Ok(from), Ok(bytes)) = (i64::try_from(there), i64::try_from(more)) else {
            return Err(io::ErrorKind::FileTooLarge.into());
        };
        if bytes == 0 {
            return Ok(());
        }
        match fallocate(self, FallocateFlags::empty(), from, bytes) {
            // The file system knows no such thing.
            Err(nix::errno::Errno::EOPNOTSUPP) => self.set_len(length),
            done => Ok(done?),
        }
    }

    /// The length counts as data here: what cannot be read without it is written too.
    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// The spool holds the clients' values: nobody but its owner reads it.
#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600)
}

#[cfg(not(unix))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(unix)]
fn private_directory(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;

    std::fs::DirBuilder::new().mode(0o700).create(directory)
}

#[cfg(not(unix))]
fn private_directory(directory: &Path) -> io::Result<()> {
    std::fs::create_dir(directory)
}
