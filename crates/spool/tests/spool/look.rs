//! Looking into a spool, whole and damaged, while a gateway works on it.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use windrow_spool::inspect::{dump, survey};
use windrow_spool::{Batch, Entry, Files, Position, Spool, SpoolFault};

use crate::disk::Disk;
use crate::help::{FIRST, PLACE, append_texts, log, open, payloads, small, texts};

fn files(disk: &Disk) -> Arc<dyn Files> {
    Arc::new(disk.clone())
}

fn dumped(disk: &Disk, from: u64) -> (Vec<Entry>, Vec<SpoolFault>) {
    let (mut entries, mut faults) = (Vec::new(), Vec::new());
    let at = (0, Position(from));
    dump(&files(disk), Path::new(PLACE), at, |found| {
        match found {
            Ok(entry) => entries.push(entry),
            Err(fault) => faults.push(fault),
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    (entries, faults)
}

#[tokio::test]
async fn a_spool_is_shown_while_it_is_in_use() {
    let disk = Disk::new(1);
    let spool = open(&disk, &small()).await.unwrap();
    append_texts(&log(&spool), 40).await;
    let before = disk.calls();
    let found = survey(files(&disk), Path::new(PLACE)).unwrap();
    assert_eq!(found.id, spool.id());
    let partition = &found.partitions[0];
    assert_eq!(
        (partition.first, partition.end),
        (Position(0), Position(40))
    );
    assert!(partition.segments > 1 && partition.oldest.is_some());
    assert!(partition.tail.is_none() && partition.damage.is_none());
    let (entries, faults) = dumped(&disk, 30);
    assert_eq!(payloads(&entries), texts(40)[30..]);
    assert!(faults.is_empty());
    assert_eq!(disk.calls(), before, "nothing was touched");
}

#[tokio::test]
async fn damage_is_shown_and_what_can_be_read_around_it() {
    let disk = Disk::new(1);
    let spool = open(&disk, &small()).await.unwrap();
    append_texts(&log(&spool), 20).await;
    let mut batch = Batch::new();
    for text in ["a", "b", "c"] {
        batch.push(text.as_bytes());
    }
    log(&spool).append(batch).await.unwrap();
    append_texts(&log(&spool), 20).await;
    spool.close().await.unwrap();
    // The third entry's header, and the payload of the entry "b", which stands behind "a".
    disk.flip(FIRST, (64 + 164 * 2 + 9) * 8);
    let second = disk
        .paths()
        .into_iter()
        .filter(|p| p.ends_with(".log"))
        .nth(1)
        .unwrap();
    let bytes = disk.contents(&second);
    let entry = [&21_u64.to_le_bytes()[..], b"b"].concat();
    let at = bytes
        .windows(entry.len())
        .position(|at| at == entry)
        .unwrap();
    disk.flip(&second, at * 8);
    let found = survey(files(&disk), Path::new(PLACE)).unwrap();
    let damage = found.partitions[0].damage.clone().unwrap();
    assert!(damage.to_string().contains("at position 2"), "{damage}");
    let (entries, faults) = dumped(&disk, 0);
    let positions: Vec<_> = entries.iter().map(|entry| entry.position.0).collect();
    let expected: Vec<_> = (0..43).filter(|n| ![2, 21, 22].contains(n)).collect();
    assert_eq!(positions, expected);
    assert_eq!(faults.len(), 2, "{faults:?}");
}

#[tokio::test]
async fn what_a_crash_left_is_shown_as_such() {
    let disk = Disk::new(1);
    let spool = open(&disk, &small()).await.unwrap();
    append_texts(&log(&spool), 3).await;
    disk.kill();
    let mut bytes = disk.written(FIRST);
    bytes.extend(b"WGrp and so on");
    disk.put(FIRST, &bytes);
    let found = survey(files(&disk), Path::new(PLACE)).unwrap();
    let tail = found.partitions[0].tail.clone().unwrap();
    assert_eq!(tail.bytes, 14);
    let (entries, faults) = dumped(&disk, 0);
    assert_eq!(payloads(&entries), texts(3));
    assert!(faults.is_empty(), "{faults:?}");
    let spool = open(&disk, &small()).await.unwrap();
    assert_eq!(spool.cuts(), [tail]);
}

#[tokio::test]
async fn a_partition_without_files_is_damaged() {
    let disk = Disk::new(1);
    let spool = open(&disk, &small()).await.unwrap();
    append_texts(&log(&spool), 3).await;
    disk.kill();
    disk.erase(FIRST);
    let found = survey(files(&disk), Path::new(PLACE)).unwrap();
    let damage = found.partitions[0].damage.clone().unwrap();
    assert!(damage.to_string().contains("are missing"), "{damage}");
    let refused = open(&disk, &small()).await.unwrap_err();
    assert_eq!(refused.to_string(), damage.to_string());
}

#[test]
fn where_no_spool_is_none_is_shown() {
    let disk = Disk::new(1);
    let fault = survey(files(&disk), Path::new(PLACE)).unwrap_err();
    assert!(matches!(fault, SpoolFault::NotASpool { .. }), "{fault}");
}
