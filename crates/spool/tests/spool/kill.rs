//! kill -9 of a process that appends, on a real disk. The process is this test's own program.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use futures_util::future::join_all;
use windrow_spool::{Batch, FileSpool, Options, Position, Spool};

use crate::help::{log, read_from};

const PLACE: &str = "WINDROW_SPOOL_KILL";
/// Kills in a test run; WINDROW_SPOOL_KILLS says how many otherwise.
const ROUNDS: u64 = 12;
const APPENDERS: u64 = 8;

fn options() -> Options {
    Options {
        segment_bytes: 40_000,
        ..Options::default()
    }
}

/// The payload of an appender's append: its name, and a length that differs.
fn payload(round: u64, appender: u64, n: u64) -> Vec<u8> {
    let mut payload = format!("{round} {appender} {n} ").into_bytes();
    let length = payload.len() + (n * 37 % 700) as usize;
    payload.resize(length, b'.');
    payload
}

/// What the child does: appends for ever, and prints what was acknowledged. It is no test by
/// itself: without the variable it ends at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Ok(place) = std::env::var(PLACE) else {
        return;
    };
    let (place, round) = place.rsplit_once('#').unwrap();
    let round: u64 = round.parse().unwrap();
    let spool = FileSpool::open(place, options()).await.unwrap();
    let log = log(&spool);
    let appenders = (0..APPENDERS).map(|appender| {
        let log = &log;
        async move {
            for n in 0.. {
                let batch = Batch::of(&payload(round, appender, n));
                let position = log.append(batch).await.unwrap();
                let mut out = std::io::stdout().lock();
                writeln!(out, "acked {position} {round} {appender} {n}").unwrap();
                out.flush().unwrap();
                if n % 50 == 49 {
                    log.trim(Position(position.0.saturating_sub(100)))
                        .await
                        .unwrap();
                }
            }
        }
    });
    join_all(appenders).await;
}

fn start(place: &Path, round: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child", "--nocapture"])
        .env(PLACE, format!("{}#{round}", place.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills the child after so many acknowledgements; notes all that it has printed.
fn run(place: &Path, round: u64, after: u64, acked: &mut BTreeMap<u64, Vec<u8>>) {
    let mut child = start(place, round);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut count = 0;
    while let Some(Ok(line)) = lines.next() {
        // The test program's own words may stand before it in the line.
        let Some((_, line)) = line.split_once("acked ") else {
            continue;
        };
        let numbers: Vec<u64> = line.split(' ').map(|n| n.parse().unwrap()).collect();
        let [position, round, appender, n] = numbers[..] else {
            panic!("{line}");
        };
        acked.insert(position, payload(round, appender, n));
        count += 1;
        if count == after {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(count >= after, "the child ended by itself after {count}");
}

#[tokio::test]
async fn whatever_was_acknowledged_survives_kill_9() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("spool");
    let rounds = std::env::var("WINDROW_SPOOL_KILLS").ok();
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let mut acked = BTreeMap::new();
    for round in 0..rounds {
        run(&place, round, 1 + round * 29 % 150, &mut acked);
        let spool = FileSpool::open(&place, options()).await.unwrap();
        let first = log(&spool).status().await.unwrap().first;
        let entries = read_from(&log(&spool), first).await.unwrap();
        let end = log(&spool).end();
        assert!(
            acked.keys().all(|position| Position(*position) < end),
            "round {round}"
        );
        for entry in entries {
            let position = entry.position.0;
            // What nobody was told of is there as it was asked for, or not at all.
            let known = acked
                .entry(position)
                .or_insert_with(|| entry.payload.to_vec());
            assert_eq!(*known, entry.payload, "round {round}, position {position}");
            let text = String::from_utf8_lossy(&entry.payload);
            let numbers: Vec<u64> = text.split(' ').filter_map(|n| n.parse().ok()).collect();
            assert_eq!(payload(numbers[0], numbers[1], numbers[2]), entry.payload);
        }
        spool.close().await.unwrap();
    }
}
