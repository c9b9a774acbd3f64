//! Warnings at the start about the machine: a clock that is not set, a disk that is too small or
//! not durable.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytesize::ByteSize;
use windrow::disk::{folder_of, free_bytes};
use windrow::settings::{Place, Settings, TraceSettings};

/// The earliest time that a correct clock can show: 2026-01-01.
const WRITTEN: Duration = Duration::from_secs(1_767_225_600);

/// The free space that any database needs at least, in bytes.
const LITTLE: u64 = 64 << 20;

/// Returns a line for each oddity.
pub(crate) fn warnings(settings: &Settings) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(clock(SystemTime::now()));
    if let Ok(Some(path)) = windrow::databases::file(settings.url.reveal()) {
        lines.extend(room("the database's disk", &path, LITTLE));
    }
    if let Some(spool) = &settings.spool
        && let Place::Directory(directory) = &spool.place
    {
        let wanted = spool.options.max_bytes;
        lines.extend(room(
            "the spool's disk (spool.max_bytes)",
            directory,
            wanted,
        ));
        lines.extend(kind("the spool", directory));
    }
    lines.extend(settings.traces.as_ref().and_then(TraceSettings::warning));
    if let Some(replicas) = &settings.replicas
        && let Place::Directory(directory) = &replicas.place
    {
        lines.extend(kind("the logs of replicas", directory));
    }
    lines
}

fn clock(now: SystemTime) -> Option<String> {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    (since < WRITTEN).then(|| {
        "the clock is not set: it shows a time before this program was written; certificates will be refused, and times in rows be wrong".to_owned()
    })
}

fn room(what: &str, path: &Path, wanted: u64) -> Option<String> {
    let free = free_bytes(path)?;
    (free < wanted).then(|| {
        let (free, wanted) = (ByteSize(free), ByteSize(wanted));
        format!(
            "{what} has {free} free, and may need {wanted}: {}",
            path.display()
        )
    })
}

#[cfg(target_os = "linux")]
fn kind(what: &str, path: &Path) -> Option<String> {
    use nix::sys::statfs::{NFS_SUPER_MAGIC, TMPFS_MAGIC, statfs};

    let found = statfs(&folder_of(path)?).ok()?.filesystem_type();
    let odd = if found == TMPFS_MAGIC {
        "in memory: it is lost with the power"
    } else if found == NFS_SUPER_MAGIC {
        "on a network disk, whose syncs cannot be relied on"
    } else {
        return None;
    };
    Some(format!("{what} would be {odd}: {}", path.display()))
}

#[cfg(not(target_os = "linux"))]
fn kind(_: &str, _: &Path) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow::settings::File;

    #[test]
    fn a_clock_that_is_not_set_is_told() {
        assert!(clock(UNIX_EPOCH + Duration::from_secs(60)).is_some());
        assert!(clock(UNIX_EPOCH + WRITTEN).is_none());
    }

    #[test]
    fn a_disk_that_is_too_small_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = File::default();
        file.spool.directory = Some(folder.path().join("not/there/yet"));
        let told = |file: &File| warnings(&Settings::new(file).unwrap()).join("\n");
        file.spool.max_bytes = Some(ByteSize(1 << 62));
        let warned = told(&file);
        assert!(
            warned.contains("the spool's disk (spool.max_bytes) has "),
            "{warned}"
        );
        assert!(warned.contains("not/there/yet"), "{warned}");
        file.spool.max_bytes = Some(ByteSize(4 << 20));
        let calm = told(&file);
        assert!(!calm.contains("max_bytes"), "{calm}");
    }
}
