//! What a spool does on a disk that works.

use std::sync::Arc;

use futures_util::future::{join_all, poll_immediate};
use windrow_spool::{Batch, FileSpool, Options, Position, Spool, SpoolFault};

use crate::disk::Disk;
use crate::help::{append, append_texts, log, open, payloads, read_from, small, texts};

#[tokio::test]
async fn entries_come_back_in_order_and_after_a_restart() {
    let disk = Disk::new(1);
    let spool = open(&disk, &small()).await.unwrap();
    let mut batch = Batch::of(b"b");
    batch.push(b"");
    batch.push(b"c");
    let log0 = log(&spool);
    assert_eq!(log0.append(Batch::of(b"a")).await.unwrap(), Position(0));
    assert_eq!(log0.append(batch).await.unwrap(), Position(1));
    assert_eq!(log0.append(Batch::new()).await.unwrap(), Position(4));
    let before = read_from(&log0, Position(0)).await.unwrap();
    assert_eq!(payloads(&before), ["a", "b", "", "c"]);
    let id = spool.id();
    spool.close().await.unwrap();

    let spool = open(&disk, &small()).await.unwrap();
    assert_eq!(spool.id(), id);
    assert_eq!(spool.cuts(), []);
    append(&log(&spool), &["d"]).await;
    let after = read_from(&log(&spool), Position(0)).await.unwrap();
    assert_eq!(after[..4], before[..]);
    assert_eq!(payloads(&after[4..]), ["d"]);
    let middle = read_from(&log(&spool), Position(2)).await.unwrap();
    assert_eq!(payloads(&middle), ["", "c", "d"], "from within a group");
}

#[tokio::test]
async fn an_origin_is_never_met_twice() {
    let disk = Disk::new(1);
    let mut origins = std::collections::HashSet::new();
    for _ in 0..3 {
        let spool = open(&disk, &small()).await.unwrap();
        append(&log(&spool), &["a", "b"]).await;
        spool.close().await.unwrap();
    }
    let spool = open(&disk, &small()).await.unwrap();
    let entries = read_from(&log(&spool), Position(0)).await.unwrap();
    let gateways: Vec<_> = entries.chunks(2).map(|two| two[0].origin.gateway).collect();
    assert!(entries.iter().all(|entry| origins.insert(entry.origin)));
    assert!(gateways[0] != gateways[1] && gateways[1] != gateways[2]);
    assert!(
        entries
            .chunks(2)
            .all(|two| two[0].origin.sequence < two[1].origin.sequence)
    );
}

/// The disk does nothing while its state is held; so all appends but the first wait meanwhile.
#[test]
fn all_who_wait_share_one_sync() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let disk = Disk::new(1);
    let spool = runtime.block_on(open(&disk, &Options::default())).unwrap();
    let log = log(&spool);
    let mut appends: Vec<_> = (0..64)
        .map(|n| Box::pin(log.append(Batch::of(&[n]))))
        .collect();
    let held = disk.state();
    let before = held.syncs;
    runtime.block_on(async {
        for append in &mut appends {
            assert!(
                poll_immediate(append).await.is_none(),
                "the disk stands still"
            );
        }
    });
    drop(held);
    let positions = runtime.block_on(join_all(appends));
    for (n, position) in positions.into_iter().enumerate() {
        assert_eq!(
            position.unwrap(),
            Position(n as u64),
            "in the order of handing over"
        );
    }
    let syncs = disk.state().syncs - before;
    assert!(syncs <= 2, "{syncs} syncs");
}

#[test]
fn an_append_that_nobody_waits_for_is_not_written() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let disk = Disk::new(1);
    let spool = runtime.block_on(open(&disk, &Options::default())).unwrap();
    let log = log(&spool);
    let held = disk.state();
    let mut first = Box::pin(log.append(Batch::of(b"first")));
    runtime.block_on(async {
        assert!(poll_immediate(&mut first).await.is_none());
        // The writer has taken the first one, or takes both at once and finds that one is gone.
        let dropped = Box::pin(log.append(Batch::of(b"dropped")));
        assert!(poll_immediate(dropped).await.is_none());
    });
    drop(held);
    runtime.block_on(async {
        first.await.unwrap();
        append(&log, &["last"]).await;
        let entries = read_from(&log, Position(0)).await.unwrap();
        assert_eq!(payloads(&entries), ["first", "last"]);
    });
}

#[tokio::test]
async fn a_cursor_follows_the_end() {
    let disk = Disk::new(1);
    let spool = open(&disk, &small()).await.unwrap();
    let log = log(&spool);
    let mut cursor = log.cursor(Position(0)).unwrap();
    assert!(
        poll_immediate(cursor.next(10)).await.is_none(),
        "nothing is there"
    );
    let appending = append_texts(&log, 100);
    let reading = async {
        let mut read = Vec::new();
        while read.len() < 100 {
            read.extend(payloads(&cursor.next(250).await.unwrap()));
        }
        assert!(
            poll_immediate(cursor.next(10)).await.is_none(),
            "all is read"
        );
        read
    };
    let ((), read) = tokio::join!(appending, reading);
    assert_eq!(read, texts(100));
    let closing = async {
        spool.close().await.unwrap();
    };
    let (end, ()) = tokio::join!(cursor.next(10), closing);
    assert!(matches!(end, Err(SpoolFault::Closed)));
    let refused = log.append(Batch::of(b"late")).await;
    assert!(matches!(refused, Err(SpoolFault::Closed)));
}

#[tokio::test]
async fn a_portion_is_as_large_as_was_asked_for() {
    let disk = Disk::new(1);
    let spool = open(&disk, &small()).await.unwrap();
    let mut batch = Batch::new();
    (0..10).for_each(|_| batch.push(&[7; 100]));
    log(&spool).append(batch).await.unwrap();
    let mut cursor = log(&spool).cursor(Position(0)).unwrap();
    for (most, entries) in [(250, 2), (100, 1), (1, 1), (0, 1), (400, 4), (400, 1)] {
        assert_eq!(
            cursor.next(most).await.unwrap().len(),
            entries,
            "{most} bytes"
        );
    }
}

#[tokio::test]
async fn what_is_trimmed_goes_by_segments() {
    let disk = Disk::new(1);
    let spool = open(&disk, &small()).await.unwrap();
    let log = log(&spool);
    let mut slow = log.cursor(Position(0)).unwrap();
    let mut follower = log.cursor(Position(0)).unwrap();
    append_texts(&log, 100).await;
    while follower.position() < Position(100) {
        follower.next(10_000).await.unwrap();
    }
    let segments = |disk: &Disk| disk.paths().iter().filter(|p| p.ends_with(".log")).count();
    let before = segments(&disk);
    assert!(before > 5, "{before} segments");
    log.trim(Position(50)).await.unwrap();
    log.trim(Position(20)).await.unwrap();
    assert!(segments(&disk) < before - 3);
    let status = log.status().await.unwrap();
    assert_eq!(
        (status.first, status.end, status.entries()),
        (Position(50), Position(100), 50)
    );
    assert!(read_from(&log, Position(50)).await.is_ok());
    assert!(matches!(
        log.cursor(Position(0)).unwrap_err(),
        SpoolFault::Trimmed { .. }
    ));
    assert!(matches!(
        slow.next(10).await,
        Err(SpoolFault::Trimmed { .. })
    ));
    assert!(matches!(
        log.trim(Position(101)).await,
        Err(SpoolFault::Beyond { .. })
    ));
    assert!(matches!(
        log.cursor(Position(101)).unwrap_err(),
        SpoolFault::Beyond { .. }
    ));

    log.trim(Position(100)).await.unwrap();
    assert_eq!(segments(&disk), 1);
    assert_eq!(log.status().await.unwrap().bytes, 0);
    // The segment that the reader has read last goes, and it goes on in the next.
    append_texts(&log, 40).await;
    log.trim(Position(100)).await.unwrap();
    let more = follower.next(10_000).await.unwrap();
    assert_eq!(more[0].position, Position(100));
    drop(spool);
}

#[tokio::test]
async fn a_trimmed_spool_goes_on_counting_after_a_restart() {
    let disk = Disk::new(1);
    let spool = open(&disk, &small()).await.unwrap();
    append_texts(&log(&spool), 50).await;
    log(&spool).trim(Position(50)).await.unwrap();
    spool.close().await.unwrap();
    let spool = open(&disk, &small()).await.unwrap();
    let status = log(&spool).status().await.unwrap();
    assert_eq!(
        (status.first, status.end, status.bytes),
        (Position(50), Position(50), 0)
    );
    assert_eq!(
        log(&spool).append(Batch::of(b"x")).await.unwrap(),
        Position(50)
    );
}

#[tokio::test]
async fn partitions_have_their_own_order() {
    let disk = Disk::new(1);
    let options = Options {
        partitions: 3,
        ..small()
    };
    let spool = open(&disk, &options).await.unwrap();
    for (log, text) in spool.logs().iter().zip(["a", "b", "c"]) {
        assert_eq!(
            log.append(Batch::of(text.as_bytes())).await.unwrap(),
            Position(0)
        );
    }
    spool.close().await.unwrap();
    let spool = open(&disk, &options).await.unwrap();
    for (log, text) in spool.logs().iter().zip(["a", "b", "c"]) {
        let entries = read_from(log, Position(0)).await.unwrap();
        assert_eq!(payloads(&entries), [text]);
    }
    spool.close().await.unwrap();
    let fault = open(&disk, &small()).await.unwrap_err();
    assert!(matches!(
        fault,
        SpoolFault::Partitions {
            found: 3,
            asked: 1,
            ..
        }
    ));
}

#[tokio::test]
async fn one_process_opens_it() {
    let disk = Disk::new(1);
    let spool = open(&disk, &small()).await.unwrap();
    let second = open(&disk, &small()).await.unwrap_err();
    assert!(matches!(second, SpoolFault::InUse { .. }));
    let cursor = log(&spool).cursor(Position(0)).unwrap();
    spool.close().await.unwrap();
    let again = open(&disk, &small()).await;
    assert!(again.is_ok(), "readers do not keep it locked");
    drop(cursor);
}

#[tokio::test]
async fn a_directory_with_something_else_is_left_alone() {
    let disk = Disk::new(1);
    disk.put("/spool/letter.txt", b"x");
    let fault = open(&disk, &small()).await.unwrap_err();
    assert!(matches!(fault, SpoolFault::NotASpool { .. }), "{fault}");
    assert_eq!(disk.paths(), ["/spool/letter.txt"]);
}

#[tokio::test]
async fn a_real_directory_does_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("spool");
    let open = || FileSpool::open(&place, small());
    let spool = open().await.unwrap();
    append_texts(&log(&spool), 100).await;
    let in_use = open().await.unwrap_err();
    assert!(matches!(in_use, SpoolFault::InUse { .. }), "{in_use}");
    log(&spool).trim(Position(60)).await.unwrap();
    spool.close().await.unwrap();
    let spool = open().await.unwrap();
    let entries = read_from(&log(&spool), Position(60)).await.unwrap();
    assert_eq!(payloads(&entries), texts(100)[60..]);
    let log = Arc::clone(&spool.logs()[0]);
    assert_eq!(log.status().await.unwrap().first, Position(60));
}

/// On the machine's own file system: who removes a spool ends it.
#[tokio::test]
async fn a_spool_that_was_removed_acknowledges_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("spool");
    let spool = FileSpool::open(&place, Options::default()).await.unwrap();
    append(&log(&spool), &["kept"]).await;
    std::fs::remove_dir_all(&place).unwrap();
    let refused = log(&spool).append(Batch::of(b"lost")).await.unwrap_err();
    assert!(matches!(refused, SpoolFault::Poisoned { .. }), "{refused}");
    assert!(spool.failure().unwrap().contains("removed"));
}
