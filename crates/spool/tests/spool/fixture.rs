//! The bytes of format 1, kept for ever: what this program writes today is what is in
//! `tests/fixtures/v1`, and what is there is read by every later one.
//!
//! `WINDROW_WRITE_FIXTURES=1` writes them anew, which is right only where format 1 has never left
//! the house; a change of the format is a new number and a new directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use windrow_spool::{Batch, Options, Origin, Position, Spool, SpoolId};

use crate::disk::Disk;
use crate::help::{Hands, PLACE, log, open, payloads, read_from, small};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1")
}

fn options(hands: &Hands) -> Options {
    Options {
        partitions: 2,
        segment_bytes: 300,
        gateway: Some(0x0123_4567_89ab_cdef),
        id: Some(SpoolId(0x00112233_44556677_8899aabb_ccddeeff)),
        clock: hands.clock(),
        ..Options::default()
    }
}

/// The same entries each time; gives all that is in the directory then.
async fn write() -> Vec<(String, Vec<u8>)> {
    let disk = Disk::new(1);
    let hands = Hands::default();
    let spool = open(&disk, &options(&hands)).await.unwrap();
    let mut batch = Batch::of(b"first");
    batch.push(b"");
    batch.push(&(0..=255).collect::<Vec<u8>>());
    log(&spool).append(batch).await.unwrap();
    hands.move_on(Duration::from_millis(1_234));
    log(&spool)
        .append(Batch::of("größer".as_bytes()))
        .await
        .unwrap();
    let other = Arc::clone(&spool.logs()[1]);
    other
        .append(Batch::of(b"in the second partition"))
        .await
        .unwrap();
    log(&spool).trim(Position(1)).await.unwrap();
    spool.close().await.unwrap();
    let paths = disk.paths().into_iter();
    let name = |path: &str| path.strip_prefix(PLACE).unwrap()[1..].to_owned();
    paths
        .map(|path| (name(&path), disk.contents(&path)))
        .collect()
}

fn files_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for item in std::fs::read_dir(directory).unwrap() {
        let path = item.unwrap().path();
        if path.is_dir() {
            files_below(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn kept() -> Vec<(String, Vec<u8>)> {
    let mut paths = Vec::new();
    files_below(&fixtures(), &mut paths);
    paths.sort();
    let name = |path: &Path| {
        let path = path.strip_prefix(fixtures()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    paths
        .iter()
        .map(|path| (name(path), std::fs::read(path).unwrap()))
        .collect()
}

#[tokio::test]
async fn format_1_is_written_byte_for_byte() {
    let written = write().await;
    if std::env::var_os("WINDROW_WRITE_FIXTURES").is_some() {
        for (name, bytes) in &written {
            let path = fixtures().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
    }
    let names = |files: &[(String, Vec<u8>)]| {
        files
            .iter()
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&written), names(&kept()));
    for ((name, written), (_, kept)) in written.iter().zip(kept()) {
        assert!(*written == kept, "{name} has changed");
    }
}

#[tokio::test]
async fn format_1_is_read_and_continued() {
    let disk = Disk::new(1);
    for (name, bytes) in kept() {
        disk.put(&format!("{PLACE}/{name}"), &bytes);
    }
    let options = Options {
        partitions: 2,
        ..small()
    };
    let spool = open(&disk, &options).await.unwrap();
    assert_eq!(spool.id().to_string(), "00112233445566778899aabbccddeeff");
    let first = log(&spool);
    assert_eq!(first.status().await.unwrap().first, Position(1));
    let entries = read_from(&first, Position(0)).await.unwrap();
    assert_eq!(&entries[0].payload[..], b"first");
    assert!(entries[1].payload.is_empty());
    assert!(entries[2].payload.iter().copied().eq(0..=255));
    assert_eq!(payloads(&entries[3..]), ["größer"]);
    let origin = Origin {
        gateway: 0x0123_4567_89ab_cdef,
        sequence: 2,
    };
    assert_eq!(entries[2].origin, origin);
    let written = SystemTime::UNIX_EPOCH + Duration::from_millis(1_800_000_001_234);
    assert_eq!(entries[3].written, written);
    let second = read_from(&spool.logs()[1], Position(0)).await.unwrap();
    assert_eq!(payloads(&second), ["in the second partition"]);
    assert_eq!(first.append(Batch::of(b"on")).await.unwrap(), Position(4));
}
