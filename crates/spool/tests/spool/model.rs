//! Random work against a plain model: a list of what was acknowledged.

mod script;

use std::collections::HashMap;

use futures_util::future::join_all;
use proptest::prelude::*;
use windrow_spool::{Batch, FileSpool, Options, Position, Spool, SpoolFault};

use self::script::{End, Step, Trouble, script};
use crate::disk::Disk;
use crate::help::{log, open, read_from, small};

/// What must be there.
#[derive(Default)]
struct Model {
    /// Every entry that somebody knows of, by its position.
    entries: Vec<Vec<u8>>,
    /// Batches whose outcome nobody knows; whole or not at all.
    unknown: HashMap<Vec<u8>, Vec<Vec<u8>>>,
    trimmed: u64,
    /// Makes every payload another one.
    count: u64,
}

impl Model {
    fn batch(&mut self, lengths: &[u16]) -> (Batch, Vec<Vec<u8>>) {
        let (mut batch, mut payloads) = (Batch::new(), Vec::new());
        for length in lengths {
            self.count += 1;
            let mut payload = self.count.to_le_bytes().to_vec();
            payload.resize(8 + usize::from(*length), self.count as u8);
            batch.push(&payload);
            payloads.push(payload);
        }
        (batch, payloads)
    }

    /// Notes what came of an append.
    fn told(
        &mut self,
        told: &Result<Position, SpoolFault>,
        payloads: Vec<Vec<u8>>,
        crashed: bool,
    ) -> Vec<(u64, Vec<Vec<u8>>)> {
        match told {
            Ok(position) => return vec![(position.0, payloads)],
            // The process has died: nobody was told anything.
            Err(_) if crashed => {}
            Err(SpoolFault::Unknown { .. }) => {}
            // It is certain that it is not there.
            Err(_) => return Vec::new(),
        }
        self.unknown.insert(payloads[0].clone(), payloads);
        Vec::new()
    }

    /// Entries behind all that is known must be batches whose outcome was not known.
    fn settle(&mut self, found: &[Vec<u8>]) {
        let mut rest = found;
        while let Some(first) = rest.first() {
            let batch = self
                .unknown
                .remove(first)
                .expect("nobody has asked for this entry");
            assert_eq!(
                rest[..batch.len()],
                batch[..],
                "all of a batch is there, or nothing"
            );
            rest = &rest[batch.len()..];
            self.entries.extend(batch);
        }
        self.unknown.clear();
    }
}

/// Several appends at once; their order among each other is not known before they are told.
async fn appends(disk: &Disk, spool: &FileSpool, model: &mut Model, batches: &[Vec<u16>]) {
    let log = log(spool);
    let made: Vec<_> = batches.iter().map(|lengths| model.batch(lengths)).collect();
    let running = made.iter().map(|(batch, _)| log.append(batch.clone()));
    let told = join_all(running).await;
    let crashed = disk.state().faults.off_after == Some(0);
    let mut acked = Vec::new();
    for (told, (_, payloads)) in told.into_iter().zip(made) {
        acked.extend(model.told(&told, payloads, crashed));
    }
    acked.sort();
    for (position, payloads) in acked {
        assert_eq!(
            position,
            model.entries.len() as u64,
            "positions have no gaps"
        );
        model.entries.extend(payloads);
    }
}

async fn check(spool: &FileSpool, model: &mut Model) {
    let status = log(spool).status().await.unwrap();
    assert!(
        status.first.0 <= model.trimmed,
        "nothing goes that is wanted"
    );
    let entries = read_from(&log(spool), status.first).await.unwrap();
    let found: Vec<_> = entries.iter().map(|entry| entry.payload.to_vec()).collect();
    let known = &model.entries[status.first.0 as usize..];
    assert!(
        found.len() >= known.len(),
        "{} of {}",
        found.len(),
        known.len()
    );
    assert_eq!(found[..known.len()], *known);
    let behind = found[known.len()..].to_vec();
    model.settle(&behind);
}

fn trouble(disk: &Disk, trouble: Trouble) {
    let faults = &mut disk.state().faults;
    match trouble {
        Trouble::Sync(n) => faults.fail_sync = Some(n),
        Trouble::Write(n) => faults.fail_write = Some(n),
        Trouble::Room(bytes) => faults.room = Some(bytes),
        Trouble::Space => faults.room = None,
        Trouble::Off(calls) => faults.off_after = Some(calls),
        Trouble::Short => faults.short_writes = true,
    }
}

async fn restart(disk: &Disk, end: End, spool: FileSpool) -> FileSpool {
    match end {
        End::Clean => drop(spool.close().await),
        End::Kill => disk.kill(),
        End::Power => disk.power_loss(),
        // It goes off again while it is opened.
        End::Twice(calls) => {
            disk.kill();
            disk.state().faults.off_after = Some(calls);
            drop(open(disk, &options()).await);
            disk.power_loss();
        }
    }
    // A process that ended cleanly leaves the disk as it is; a test goes on with one that works.
    disk.state().faults = crate::disk::Faults::default();
    open(disk, &options()).await.unwrap()
}

fn options() -> Options {
    Options {
        segment_bytes: 1_500,
        group_bytes: 600,
        ..small()
    }
}

async fn play(seed: u64, steps: Vec<Step>) {
    let disk = Disk::new(seed);
    let mut model = Model::default();
    let mut spool = open(&disk, &options()).await.unwrap();
    for step in steps {
        let is_off = disk.state().faults.off_after == Some(0);
        match step {
            Step::Append(batches) => appends(&disk, &spool, &mut model, &batches).await,
            Step::Trim(percent) => {
                let upto = model.entries.len() as u64 * percent / 100;
                model.trimmed = model.trimmed.max(upto);
                let trimmed = log(&spool).trim(Position(upto)).await;
                assert!(trimmed.is_ok() || is_off || disk.state().faults.off_after.is_some());
            }
            Step::Read if !is_off => {
                // Only what is durable, though more may be there.
                let first = log(&spool).status().await.unwrap().first;
                if let Ok(entries) = read_from(&log(&spool), first).await {
                    let found = entries.iter().map(|entry| &entry.payload[..]);
                    assert!(found.eq(model.entries[first.0 as usize..].iter().map(|e| &e[..])));
                }
            }
            Step::Read => {}
            Step::Trouble(what) => trouble(&disk, what),
            Step::Restart(end) => {
                spool = restart(&disk, end, spool).await;
                check(&spool, &mut model).await;
            }
        }
    }
    spool = restart(&disk, End::Power, spool).await;
    check(&spool, &mut model).await;
}

/// PROPTEST_CASES: how many plays; more take longer.
fn cases() -> u32 {
    let given = std::env::var("PROPTEST_CASES").ok();
    given.map_or(150, |cases| {
        cases.parse().expect("PROPTEST_CASES is a number")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn the_spool_is_a_list_that_forgets_nothing(seed: u64, steps in script()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(play(seed, steps));
    }
}
