//! Limits are named, and hold before anything is acknowledged.

use std::time::Duration;

use futures_util::future::poll_immediate;
use windrow_spool::{Batch, Options, Position, SpoolFault};

use crate::disk::Disk;
use crate::help::{Hands, append, append_texts, log, open, small, texts};

#[tokio::test]
async fn a_full_spool_takes_nothing_until_it_empties() {
    let disk = Disk::new(1);
    let options = Options {
        max_bytes: 8_000,
        ..small()
    };
    let spool = open(&disk, &options).await.unwrap();
    let log = log(&spool);
    let mut appended = 0;
    let fault = loop {
        match log.append(Batch::of(texts(1)[0].as_bytes())).await {
            Ok(_) => appended += 1,
            Err(fault) => break fault,
        }
    };
    assert!(appended > 40, "{appended}");
    assert!(
        fault.to_string().contains("spool.max_bytes) is 8000"),
        "{fault}"
    );
    let status = log.status().await.unwrap();
    assert_eq!(status.end, Position(appended));
    assert!(status.bytes <= 8_000);
    for _ in 0..3 {
        let end = log.end();
        log.trim(end).await.unwrap();
        append_texts(&log, 40).await;
    }
    assert!(disk.paths().len() < 12, "{:?}", disk.paths());
}

#[tokio::test]
async fn an_entry_that_waits_too_long_closes_the_door() {
    let disk = Disk::new(1);
    let hands = Hands::default();
    let options = Options {
        max_age: Some(Duration::from_secs(60)),
        clock: hands.clock(),
        ..small()
    };
    let spool = open(&disk, &options).await.unwrap();
    let log = log(&spool);
    append(&log, &["old"]).await;
    hands.move_on(Duration::from_secs(50));
    append(&log, &["new"]).await;
    assert_eq!(
        log.status().await.unwrap().age,
        Some(Duration::from_secs(50))
    );
    hands.move_on(Duration::from_secs(11));
    let fault = log.append(Batch::of(b"x")).await.unwrap_err();
    assert!(
        fault.to_string().contains("(spool.max_age) is 60 s"),
        "{fault}"
    );
    log.trim(Position(1)).await.unwrap();
    assert_eq!(
        log.status().await.unwrap().age,
        Some(Duration::from_secs(11))
    );
    append(&log, &["newest"]).await;
    log.trim(log.end()).await.unwrap();
    assert_eq!(log.status().await.unwrap().age, None);
}

#[tokio::test]
async fn what_is_too_large_is_refused_before_it_waits() {
    let disk = Disk::new(1);
    let options = Options {
        max_append: 1_000,
        ..small()
    };
    let spool = open(&disk, &options).await.unwrap();
    let fits = Batch::of(&[1; 1_000 - Options::PER_ENTRY]);
    log(&spool).append(fits).await.unwrap();
    let fault = log(&spool).append(Batch::of(&[1; 985])).await.unwrap_err();
    assert!(matches!(fault, SpoolFault::TooLarge { .. }));
    assert!(
        fault.to_string().contains("whose limit is 1000 bytes"),
        "{fault}"
    );
    assert_eq!(log(&spool).end(), Position(1));
}

/// A group is larger than what is gathered where one append is.
#[tokio::test]
async fn an_append_larger_than_a_group_travels_alone() {
    let disk = Disk::new(1);
    let options = Options {
        group_bytes: 300,
        ..small()
    };
    let spool = open(&disk, &options).await.unwrap();
    let log = log(&spool);
    let sizes = [100, 5_000, 100, 250, 10];
    let appends = sizes.map(|size| log.append(Batch::of(&vec![7; size])));
    for done in futures_util::future::join_all(appends).await {
        done.unwrap();
    }
    let entries = crate::help::read_from(&log, Position(0)).await.unwrap();
    assert!(entries.iter().map(|entry| entry.payload.len()).eq(sizes));
}

#[test]
fn past_a_full_queue_appending_waits() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let disk = Disk::new(1);
    let options = Options {
        queue: 2,
        ..small()
    };
    let spool = runtime.block_on(open(&disk, &options)).unwrap();
    let log = log(&spool);
    let mut appends: Vec<_> = (0..10)
        .map(|n| Box::pin(log.append(Batch::of(&[n]))))
        .collect();
    let held = disk.state();
    runtime.block_on(async {
        for append in &mut appends {
            assert!(poll_immediate(append).await.is_none());
        }
    });
    // Those that were let in are at most the two that are queued and those of the group that is
    // written; the others hold their batch themselves, and go without a trace.
    appends.truncate(5);
    drop(held);
    let done = runtime.block_on(futures_util::future::join_all(appends));
    assert!(done.iter().all(Result::is_ok));
    assert_eq!(log.end(), Position(5));
}

#[tokio::test]
async fn options_that_make_no_sense_are_refused() {
    let disk = Disk::new(1);
    for (options, name) in [
        (
            Options {
                partitions: 0,
                ..small()
            },
            "spool.partitions",
        ),
        (
            Options {
                partitions: 1_000,
                ..small()
            },
            "spool.partitions",
        ),
        (
            Options {
                queue: 0,
                ..small()
            },
            "spool.queue",
        ),
        (
            Options {
                max_append: 2 << 30,
                ..small()
            },
            "spool.max_append",
        ),
    ] {
        let fault = open(&disk, &options).await.unwrap_err();
        assert!(fault.to_string().contains(name), "{fault}");
    }
    assert!(disk.paths().is_empty());
}
