//! The machine goes off at every call that the spool makes, one after the other, with several
//! choices of what of the unsynced bytes survives; the process is killed there as well.

use windrow_spool::{Batch, Options, Position, SpoolFault};

use crate::disk::Disk;
use crate::help::{log, open, payloads, read_from, small};

/// So small segments that one trim frees several.
fn options() -> Options {
    Options {
        segment_bytes: 500,
        ..small()
    }
}

/// What a run was told, up to its end.
#[derive(Default)]
struct Told {
    acked: Vec<String>,
    /// The append that was under way when the machine went off.
    open: Option<String>,
}

/// Appends, trims and restarts, until the machine is off.
async fn work(disk: &Disk, told: &mut Told) -> Result<(), SpoolFault> {
    for round in 0..2 {
        let spool = open(disk, &options()).await?;
        for n in 0..12 {
            let text = format!("{round} {n} {}", "-".repeat(n * 113 % 700));
            told.open = Some(text.clone());
            let position = log(&spool).append(Batch::of(text.as_bytes())).await?;
            assert_eq!(position, Position(told.acked.len() as u64));
            told.open = None;
            told.acked.push(text);
            if n == 9 {
                log(&spool)
                    .trim(Position(told.acked.len() as u64 - 3))
                    .await?;
            }
        }
        windrow_spool::Spool::close(&spool).await?;
    }
    Ok(())
}

/// All that was acknowledged is there; of the rest, at most what was under way.
async fn check(disk: &Disk, told: &mut Told, context: &str) {
    let spool = open(disk, &options()).await;
    let spool = spool.unwrap_or_else(|fault| panic!("{context}: {fault}"));
    let first = log(&spool).status().await.unwrap().first;
    let entries = read_from(&log(&spool), first).await;
    let entries = payloads(&entries.unwrap_or_else(|fault| panic!("{context}: {fault}")));
    let acked = &told.acked[first.0 as usize..];
    assert_eq!(
        entries[..acked.len().min(entries.len())],
        *acked,
        "{context}"
    );
    let more = &entries[acked.len()..];
    let open: Vec<_> = told.open.iter().cloned().collect();
    assert!(more.is_empty() || more == open, "{context}: {more:?}");
    // What was there once stays.
    told.acked
        .extend(told.open.take().filter(|_| !more.is_empty()));
    log(&spool).append(Batch::of(b"more")).await.unwrap();
    told.acked.push("more".to_owned());
}

async fn crash_at(call: u64, seed: u64, power: bool) {
    let disk = Disk::new(call * 31 + seed);
    disk.state().faults.off_after = Some(call);
    disk.state().faults.short_writes = seed.is_multiple_of(3);
    let mut told = Told::default();
    let ended = work(&disk, &mut told).await;
    assert!(ended.is_err() || call > 1, "it goes off somewhere");
    if power {
        disk.power_loss();
        // It goes off once more while what the first time left is cleared up.
        disk.state().faults.off_after = Some(1 + seed % 5);
        drop(open(&disk, &options()).await);
        disk.power_loss();
    } else {
        // The next process works with what the system has in memory, and power goes after that.
        disk.kill();
    }
    let context = format!("call {call}, seed {seed}, power {power}");
    check(&disk, &mut told, &context).await;
    disk.power_loss();
    check(&disk, &mut told, &format!("{context}, again")).await;
}

/// WINDROW_SPOOL_SEEDS: choices of chance for each call at which it ends; more take longer.
fn seeds() -> u64 {
    let given = std::env::var("WINDROW_SPOOL_SEEDS").ok();
    given.map_or(3, |seeds| {
        seeds.parse().expect("WINDROW_SPOOL_SEEDS is a number")
    })
}

async fn calls() -> u64 {
    let disk = Disk::new(0);
    work(&disk, &mut Told::default()).await.unwrap();
    disk.calls()
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_wherever_power_goes() {
    for call in 1..calls().await {
        for seed in 0..seeds() {
            crash_at(call, seed, true).await;
        }
    }
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_wherever_it_is_killed() {
    for call in 1..calls().await {
        for seed in 0..seeds() {
            crash_at(call, seed, false).await;
        }
    }
}

/// Making a spool takes few calls, so each has many choices.
#[tokio::test]
async fn a_spool_that_was_being_made_is_made_again() {
    let calls = {
        let disk = Disk::new(0);
        drop(open(&disk, &options()).await.unwrap());
        disk.calls()
    };
    for (call, seed) in (1..=calls).flat_map(|call| (0..60).map(move |seed| (call, seed))) {
        let disk = Disk::new(call * 1_000 + seed);
        disk.state().faults.off_after = Some(call);
        drop(open(&disk, &options()).await);
        disk.power_loss();
        let spool = open(&disk, &options()).await;
        let spool = spool.unwrap_or_else(|fault| panic!("call {call}, seed {seed}: {fault}"));
        log(&spool).append(Batch::of(b"kept")).await.unwrap();
        disk.power_loss();
        let spool = open(&disk, &options()).await.unwrap();
        let entries = read_from(&log(&spool), Position(0)).await.unwrap();
        assert_eq!(payloads(&entries), ["kept"], "call {call}, seed {seed}");
    }
}
