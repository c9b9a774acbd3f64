//! The spool's directory: writable, large enough, and used by no other process.

use std::path::Path;

use bytesize::ByteSize;
use nix::unistd::{AccessFlags, access};
use windrow::disk::{folder_of, free_bytes};
use windrow::settings::{Place, Settings};
use windrow_spool::{FileSpool, SpoolFault};

use super::finding::ConnectFinding;

/// Checks the spool's directory; `None` without one.
pub(super) fn check(settings: &Settings) -> Option<ConnectFinding> {
    let spool = settings.spool.as_ref()?;
    let Place::Directory(directory) = &spool.place else {
        return None;
    };
    let subject = format!("spool {}", directory.display());
    Some(match state(directory, spool.options.max_bytes) {
        Ok(said) => ConnectFinding::good(subject, said),
        Err(trouble) => ConnectFinding::bad(subject, trouble),
    })
}

fn state(directory: &Path, wanted: u64) -> Result<&'static str, String> {
    let folder = folder_of(directory).ok_or("cannot be found; name another directory")?;
    if access(&folder, AccessFlags::W_OK | AccessFlags::X_OK).is_err() {
        let folder = folder.display();
        return Err(format!(
            "this user may not write in {folder}; change its owner or mode"
        ));
    }
    let said = match FileSpool::check(directory) {
        Ok(()) => "is writable, and no process uses it",
        // The gateway with this configuration may be running.
        Err(SpoolFault::InUse { .. }) => {
            "is in use: right if the gateway of this configuration runs; else name another directory"
        }
        Err(fault) => return Err(fault.to_string()),
    };
    let room = free_bytes(directory).map(|free| free.saturating_add(used_bytes(directory, 2)));
    match room {
        Some(room) if room < wanted => Err(format!(
            "has a disk with room for {}, and may take {}: free some, or lower spool.max_bytes",
            ByteSize(room),
            ByteSize(wanted)
        )),
        _ => Ok(said),
    }
}

/// Returns the bytes of the files in a directory, and in those below it down to a depth.
fn used_bytes(directory: &Path, depth: usize) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_file() => about.len(),
        Ok(about) if about.is_dir() && depth > 1 => used_bytes(&entry.path(), depth - 1),
        _ => 0,
    };
    entries.map(size).sum()
}
