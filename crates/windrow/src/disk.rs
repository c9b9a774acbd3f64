//! The free space of disks, for warnings at the start, for `check-config` and for the metrics.

use std::path::{Path, PathBuf};

/// Returns the nearest folder of a path that exists.
pub fn folder_of(path: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(path).ok()?;
    let found = whole.ancestors().find(|path| path.is_dir())?;
    Some(found.to_owned())
}

/// Returns the bytes that this process may still write to the disk of a path, which need not exist
/// yet. `None` if the system does not tell.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let about = nix::sys::statvfs::statvfs(&folder_of(path)?).ok()?;
    // Their types differ between systems.
    fn wide(number: impl Into<u64>) -> u64 {
        number.into()
    }
    Some(wide(about.blocks_available()).saturating_mul(wide(about.fragment_size())))
}
