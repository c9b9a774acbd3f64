//! The machine's file system.

use std::fmt::Debug;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use super::{FileHandle, Files};

/// The machine's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFiles;

impl Files for RealFiles {
    fn create(&self, path: &Path) -> io::Result<Box<dyn FileHandle>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        Ok(Box::new(private(&mut options).open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn FileHandle>> {
        let mut options = OpenOptions::new();
        let file = unlinked(options.read(true).write(true)).open(path);
        Ok(Box::new(file.map_err(of_link)?))
    }

    fn open_to_read(&self, path: &Path) -> io::Result<Box<dyn FileHandle>> {
        let mut options = OpenOptions::new();
        let file = unlinked(options.read(true)).open(path);
        Ok(Box::new(file.map_err(of_link)?))
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
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => {
                warn_of_writers(directory);
                Ok(())
            }
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

    /// Directories cannot be synced on this system; the file system's own journal keeps names in
    /// order.
    #[cfg(not(unix))]
    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Debug + Send + Sync>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = unlinked(private(&mut options))
            .open(path)
            .map_err(of_link)?;
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
            // The file system does not support allocation.
            Err(nix::errno::Errno::EOPNOTSUPP) => self.set_len(length),
            done => Ok(done?),
        }
    }

    /// Syncs data only, which includes the length, because the data cannot be read without it.
    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Lets a file be opened only if its name is not a symbolic link: with a link, another user who may
/// write to the directory could have any file overwritten.
#[cfg(target_os = "linux")]
fn unlinked(options: &mut OpenOptions) -> &mut OpenOptions {
    let flags = nix::fcntl::OFlag::O_NOFOLLOW.bits();
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags)
}

#[cfg(not(target_os = "linux"))]
fn unlinked(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Explains the error of a symbolic link.
fn of_link(error: io::Error) -> io::Error {
    #[cfg(target_os = "linux")]
    if error.raw_os_error() == Some(nix::errno::Errno::ELOOP as i32) {
        let why = "it is a symbolic link, which a spool does not follow; put the file itself in its place";
        return io::Error::new(io::ErrorKind::InvalidInput, why);
    }
    error
}

/// Returns the mode of a directory if other users may write to it.
#[cfg(unix)]
fn mode_for_writers(directory: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = std::fs::metadata(directory).ok()?.permissions().mode() & 0o7777;
    (mode & 0o022 != 0).then_some(mode)
}

/// Warns if other users may write to a directory.
#[cfg(unix)]
fn warn_of_writers(directory: &Path) {
    if let Some(mode) = mode_for_writers(directory) {
        tracing::warn!(
            directory = %directory.display(),
            mode = format_args!("{mode:o}"),
            "other users may write to the spool's directory, and so remove or replace what it holds; chmod it to 0700"
        );
    }
}

#[cfg(not(unix))]
fn warn_of_writers(_: &Path) {}

/// Lets only the owner read a file, because the spool contains the clients' values.
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_symbolic_link_is_never_opened() {
        let directory = tempfile::tempdir().unwrap();
        let (target, link) = (
            directory.path().join("other"),
            directory.path().join("link"),
        );
        std::fs::write(&target, "kept").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let files = RealFiles;
        let said = [
            files.open(&link).err(),
            files.open_to_read(&link).err(),
            files.lock(&link).err(),
            files.create(&link).err(),
        ];
        for error in said.into_iter().take(3) {
            let error = error.unwrap();
            assert!(error.to_string().contains("symbolic link"), "{error}");
        }
        assert_eq!(std::fs::read(&target).unwrap(), b"kept");
        assert!(files.open(&target).is_ok());
    }

    #[test]
    fn a_directory_for_others_is_known_by_its_mode() {
        use std::os::unix::fs::PermissionsExt as _;

        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("spool");
        RealFiles.make_directory(&directory).unwrap();
        assert_eq!(mode_for_writers(&directory), None);
        for (mode, is_open) in [
            (0o777, true),
            (0o1777, true),
            (0o770, true),
            (0o702, true),
            (0o755, false),
            (0o700, false),
        ] {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&directory, permissions).unwrap();
            let found = mode_for_writers(&directory);
            assert_eq!(found, is_open.then_some(mode), "{mode:o}");
            RealFiles.make_directory(&directory).unwrap();
        }
    }
}
