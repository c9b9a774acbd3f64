//! A disk that is full, or fails: nothing is acknowledged that is not there.

use windrow_core::{Fault, FaultClass};
use windrow_spool::{Batch, Options, Position, Spool, SpoolFault};

use crate::disk::Disk;
use crate::help::{append, append_texts, log, open, payloads, read_from, small, texts};

#[tokio::test]
async fn short_writes_and_reads_change_nothing() {
    let disk = Disk::new(1);
    disk.state().faults.short_writes = true;
    let spool = open(&disk, &small()).await.unwrap();
    append_texts(&log(&spool), 60).await;
    spool.close().await.unwrap();
    disk.power_loss();
    disk.state().faults.short_writes = true;
    let spool = open(&disk, &small()).await.unwrap();
    let entries = read_from(&log(&spool), Position(0)).await.unwrap();
    assert_eq!(payloads(&entries), texts(60));
}

#[tokio::test]
async fn a_full_disk_refuses_and_keeps_what_is_there() {
    // Rooms at which a group, a segment's header and a new file's first byte do not fit.
    for room in (0..3_000).step_by(37) {
        let disk = Disk::new(room);
        let spool = open(&disk, &small()).await.unwrap();
        append(&log(&spool), &["before"]).await;
        disk.state().faults.room = Some(room);
        let mut acked = vec!["before".to_owned()];
        let fault = loop {
            let text = format!("{:-<150}", acked.len());
            match log(&spool).append(Batch::of(text.as_bytes())).await {
                Ok(_) => acked.push(text),
                Err(fault) => break fault,
            }
        };
        assert!(
            matches!(fault, SpoolFault::DiskFull { .. }),
            "room {room}: {fault}"
        );
        assert_eq!(Fault::from(fault).class, FaultClass::Overloaded);
        assert_eq!(spool.failure(), None);
        let entries = read_from(&log(&spool), Position(0)).await.unwrap();
        assert_eq!(payloads(&entries), acked, "room {room}");

        disk.state().faults.room = None;
        append(&log(&spool), &["after"]).await;
        acked.push("after".to_owned());
        disk.power_loss();
        let spool = open(&disk, &small()).await.unwrap();
        assert_eq!(spool.cuts(), []);
        let entries = read_from(&log(&spool), Position(0)).await.unwrap();
        assert_eq!(payloads(&entries), acked, "room {room}");
    }
}

/// Only whole segments are given back to a disk, and the one that is written to never was.
#[tokio::test]
async fn a_full_disk_takes_more_once_all_is_applied() {
    let options = Options {
        segment_bytes: 1 << 20,
        ..small()
    };
    let disk = Disk::new(1);
    let spool = open(&disk, &options).await.unwrap();
    let log = log(&spool);
    disk.state().faults.room = Some(5_000);
    let text = [b'x'; 300];
    let fill = async || while log.append(Batch::of(&text)).await.is_ok() {};
    fill().await;
    let end = log.end();
    assert!(end > Position(10));
    // What is not applied stays.
    assert!(log.append(Batch::of(&text)).await.is_err());
    log.trim(end).await.unwrap();
    log.append(Batch::of(&text)).await.unwrap();
    // Also where all had been applied before the disk was found to be full, and by a new process.
    log.trim(log.end()).await.unwrap();
    fill().await;
    log.trim(log.end()).await.unwrap();
    spool.close().await.unwrap();
    drop((log, spool));
    let spool = open(&disk, &options).await.unwrap();
    crate::help::log(&spool)
        .append(Batch::of(&text))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_spool_opens_and_empties_on_a_full_disk() {
    let disk = Disk::new(1);
    let spool = open(&disk, &small()).await.unwrap();
    append_texts(&log(&spool), 60).await;
    disk.kill();
    disk.erase("/spool/0000/mark");
    disk.state().faults.room = Some(0);
    let spool = open(&disk, &small()).await.unwrap();
    let log = log(&spool);
    let entries = read_from(&log, Position(0)).await.unwrap();
    assert_eq!(payloads(&entries), texts(60));
    assert!(log.append(Batch::of(b"x")).await.is_err());
    log.trim(Position(60)).await.unwrap();
    drop(spool);
}

/// What a client is told apart: those whose entries may be there, and those whose are not.
#[tokio::test]
async fn a_failed_sync_ends_all_trust() {
    let disk = Disk::new(1);
    let options = Options {
        partitions: 2,
        ..small()
    };
    let spool = open(&disk, &options).await.unwrap();
    append(&log(&spool), &["kept"]).await;
    let mut cursor = log(&spool).cursor(Position(0)).unwrap();
    disk.state().faults.fail_sync = Some(0);
    let unknown = log(&spool).append(Batch::of(b"unknown")).await.unwrap_err();
    assert!(matches!(unknown, SpoolFault::Unknown { .. }), "{unknown}");
    assert_eq!(Fault::from(unknown).class, FaultClass::Unknown);

    // The disk works again, which proves nothing.
    for log in spool.logs() {
        let refused = log.append(Batch::of(b"refused")).await.unwrap_err();
        assert!(matches!(refused, SpoolFault::Poisoned { .. }), "{refused}");
    }
    assert!(
        spool
            .failure()
            .unwrap()
            .contains("a sync of the disk failed")
    );
    let kept = cursor.next(100).await.unwrap();
    assert_eq!(payloads(&kept), ["kept"]);
    assert!(matches!(
        cursor.next(100).await,
        Err(SpoolFault::Poisoned { .. })
    ));
    assert!(matches!(
        spool.close().await,
        Err(SpoolFault::Poisoned { .. })
    ));
}

/// The next process finds in memory what was never on the disk. What it has once given to a reader
/// must be there for ever: the database remembers positions.
#[tokio::test]
async fn what_is_read_after_a_failed_sync_is_on_the_disk() {
    for seed in 0..60 {
        let disk = Disk::new(seed);
        let spool = open(&disk, &small()).await.unwrap();
        append(&log(&spool), &["kept"]).await;
        disk.state().faults.fail_sync = Some(0);
        let lost = log(&spool).append(Batch::of(b"written, not synced")).await;
        assert!(lost.is_err());
        disk.kill();
        if seed % 2 == 0 {
            disk.erase("/spool/0000/mark");
        }
        let spool = open(&disk, &small()).await.unwrap();
        let seen = read_from(&log(&spool), Position(0)).await.unwrap();
        disk.power_loss();
        let spool = open(&disk, &small()).await.unwrap();
        let again = read_from(&log(&spool), Position(0)).await.unwrap();
        assert_eq!(payloads(&seen), payloads(&again), "seed {seed}");
        assert_eq!(payloads(&seen[..1]), ["kept"]);
    }
}

#[tokio::test]
async fn a_sync_that_fails_while_a_segment_is_made_does_the_same() {
    for directory in [false, true] {
        let disk = Disk::new(1);
        let spool = open(&disk, &small()).await.unwrap();
        let mut acked = 0;
        // The first sync after so many appends is that of the next segment's header.
        while disk.written(crate::help::FIRST).len() < 2_000 {
            append_texts(&log(&spool), 1).await;
            acked += 1;
        }
        if directory {
            disk.state().faults.fail_directory_sync = Some(0);
        } else {
            disk.state().faults.fail_sync = Some(0);
        }
        let fault = log(&spool).append(Batch::of(b"x")).await.unwrap_err();
        assert!(matches!(fault, SpoolFault::Poisoned { .. }), "{fault}");
        disk.power_loss();
        let spool = open(&disk, &small()).await.unwrap();
        assert_eq!(log(&spool).end(), Position(acked));
    }
}

#[tokio::test]
async fn a_write_that_fails_otherwise_ends_all_trust_too() {
    let disk = Disk::new(1);
    let spool = open(&disk, &small()).await.unwrap();
    append(&log(&spool), &["kept"]).await;
    disk.state().faults.fail_write = Some(0);
    let fault = log(&spool).append(Batch::of(b"lost")).await.unwrap_err();
    assert!(matches!(fault, SpoolFault::System { .. }), "{fault}");
    assert!(spool.failure().is_some());
    disk.power_loss();
    let spool = open(&disk, &small()).await.unwrap();
    let entries = read_from(&log(&spool), Position(0)).await.unwrap();
    assert_eq!(payloads(&entries), ["kept"]);
}

/// What is behind the end of a segment that is not the last is damage.
#[tokio::test]
async fn no_segment_is_begun_behind_one_whose_end_is_not_certain() {
    let disk = Disk::new(1);
    let spool = open(&disk, &small()).await.unwrap();
    append(&log(&spool), &["kept"]).await;
    disk.state().faults.room = Some(200);
    // That of the write that is taken back, which was too large for the room that is left.
    disk.state().faults.fail_sync = Some(0);
    let lost = log(&spool).append(Batch::of(&[b'x'; 3_000])).await;
    let fault = lost.unwrap_err();
    assert!(matches!(fault, SpoolFault::DiskFull { .. }), "{fault}");
    let segments = disk
        .paths()
        .into_iter()
        .filter(|path| path.ends_with(".log"));
    assert_eq!(segments.collect::<Vec<_>>(), [crate::help::FIRST]);
}

#[tokio::test]
async fn a_write_that_cannot_be_taken_back_ends_all_trust() {
    let disk = Disk::new(1);
    let spool = open(&disk, &small()).await.unwrap();
    append(&log(&spool), &["kept"]).await;
    disk.state().faults.room = Some(20);
    disk.state().faults.fail_truncate = true;
    // More than the room that was made ahead.
    let lost = log(&spool).append(Batch::of(&[b'x'; 3_000])).await;
    let fault = lost.unwrap_err();
    assert!(matches!(fault, SpoolFault::DiskFull { .. }), "{fault}");
    disk.state().faults.room = None;
    let fault = log(&spool).append(Batch::of(b"refused")).await.unwrap_err();
    assert!(matches!(fault, SpoolFault::Poisoned { .. }), "{fault}");
    disk.kill();
    let spool = open(&disk, &small()).await.unwrap();
    assert_eq!(spool.cuts().len(), 1);
    let entries = read_from(&log(&spool), Position(0)).await.unwrap();
    assert_eq!(payloads(&entries), ["kept"]);
}
