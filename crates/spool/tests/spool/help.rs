//! What the tests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use windrow_spool::{Batch, Clock, Entry, FileSpool, Log, Options, Position, Spool, SpoolFault};

use crate::disk::Disk;

/// Where the spool is on simulated disks.
pub(crate) const PLACE: &str = "/spool";

/// The first segment of the first partition.
pub(crate) const FIRST: &str = "/spool/0000/00000000000000000000.log";

/// A clock that stands until it is moved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hands(Arc<AtomicU64>);

impl Hands {
    pub(crate) fn move_on(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as u64, Ordering::Relaxed);
    }

    pub(crate) fn clock(&self) -> Clock {
        let hands = self.clone();
        Clock::new(move || {
            let since = Duration::from_millis(hands.0.load(Ordering::Relaxed));
            SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000) + since
        })
    }
}

/// Small segments, so that there are several.
pub(crate) fn small() -> Options {
    Options {
        segment_bytes: 2_000,
        clock: Hands::default().clock(),
        ..Options::default()
    }
}

pub(crate) async fn open(disk: &Disk, options: &Options) -> Result<FileSpool, SpoolFault> {
    FileSpool::open_on(Arc::new(disk.clone()), PLACE, options.clone()).await
}

/// The first log.
pub(crate) fn log(spool: &FileSpool) -> Arc<dyn Log> {
    Arc::clone(&spool.logs()[0])
}

pub(crate) fn payloads(entries: &[Entry]) -> Vec<String> {
    let text = |entry: &Entry| String::from_utf8_lossy(&entry.payload).into_owned();
    entries.iter().map(text).collect()
}

/// All entries from a position to the end.
pub(crate) async fn read_from(
    log: &Arc<dyn Log>,
    from: Position,
) -> Result<Vec<Entry>, SpoolFault> {
    let mut cursor = log.cursor(from)?;
    let (mut entries, end) = (Vec::new(), log.end());
    while cursor.position() < end {
        entries.extend(cursor.next(700).await?);
    }
    for (entry, number) in entries.iter().zip(from.0..) {
        assert_eq!(entry.position, Position(number));
    }
    Ok(entries)
}

/// Appends texts, each by itself.
pub(crate) async fn append(log: &Arc<dyn Log>, texts: &[&str]) {
    for text in texts {
        log.append(Batch::of(text.as_bytes())).await.unwrap();
    }
}

/// Numbered texts of some length.
pub(crate) fn texts(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{n:-<100}")).collect()
}

pub(crate) async fn append_texts(log: &Arc<dyn Log>, count: usize) {
    for text in texts(count) {
        log.append(Batch::of(text.as_bytes())).await.unwrap();
    }
}
