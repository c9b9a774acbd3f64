//! Bytes that change by themselves: what was acknowledged is never lost or changed in silence.

use windrow_spool::{Batch, Options, Position, Spool, SpoolFault};

use crate::disk::Disk;
use crate::help::{FIRST, append_texts, log, open, payloads, read_from, small, texts};

/// A spool with several segments, closed in the given way.
async fn filled(seed: u64, end: impl AsyncFn(&Disk, &dyn Spool)) -> Disk {
    let disk = Disk::new(seed);
    let spool = open(&disk, &small()).await.unwrap();
    append_texts(&log(&spool), 40).await;
    end(&disk, &spool).await;
    disk
}

/// Opens it and reads all of it.
async fn reads(disk: &Disk) -> Result<(Vec<String>, usize), SpoolFault> {
    let spool = open(disk, &small()).await?;
    let entries = read_from(&log(&spool), Position(0)).await?;
    Ok((payloads(&entries), spool.cuts().len()))
}

/// Flips every few bits of every file, each by itself. `step` has no common factor with 8, so that
/// all bits of a byte have their turn.
async fn flips(step: usize, end: impl AsyncFn(&Disk, &dyn Spool), may_cut: bool) {
    let whole = filled(1, &end).await;
    for path in whole.paths() {
        for bit in (0..whole.contents(&path).len() * 8).step_by(step) {
            let disk = filled(1, &end).await;
            disk.flip(&path, bit);
            match reads(&disk).await {
                Err(
                    SpoolFault::Damaged { path: named, .. } | SpoolFault::Newer { path: named, .. },
                ) => {
                    assert_eq!(named.to_str(), Some(&*path), "bit {bit}");
                }
                Err(other) => panic!("{path} bit {bit}: {other}"),
                Ok((entries, 0)) => assert_eq!(entries, texts(40), "{path} bit {bit}"),
                // In the room behind the last group, or that group alone; and it is told.
                Ok((entries, _)) => {
                    let whole = entries == texts(40);
                    assert!(whole || may_cut && entries == texts(39), "{path} bit {bit}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_flipped_bit_is_seen_after_a_clean_end_and_a_loss_of_power() {
    let end = async |disk: &Disk, spool: &dyn Spool| {
        spool.close().await.unwrap();
        disk.power_loss();
    };
    flips(61, end, false).await;
}

#[tokio::test]
async fn a_flipped_bit_is_seen_after_a_kill() {
    flips(61, async |disk: &Disk, _: &dyn Spool| disk.kill(), false).await;
}

/// Where the mark was lost as well, the last group cannot be told from one that was never synced.
/// It is cut, and said to be.
#[tokio::test]
async fn without_a_mark_only_the_end_is_doubted() {
    let end = async |disk: &Disk, _: &dyn Spool| {
        disk.power_loss();
        disk.erase("/spool/0000/mark");
    };
    flips(61, end, true).await;
}

#[tokio::test]
async fn damage_names_file_byte_and_position() {
    let disk = filled(1, async |_: &Disk, spool: &dyn Spool| {
        spool.close().await.unwrap();
    })
    .await;
    // The payload of the second entry: header 64, group 48 + 16 + 100, group 48, entry 16.
    let byte = 64 + 164 + 64 + 10;
    disk.flip(FIRST, byte * 8);
    let fault = reads(&disk).await.unwrap_err();
    let text = fault.to_string();
    let entry = 64 + 164 + 48;
    assert!(
        text.contains(&format!("{FIRST}, byte {entry}, at position 1:")),
        "{text}"
    );
    assert!(text.contains("windrow spool verify"), "{text}");
    assert_eq!(
        disk.paths().len(),
        filled_paths().await,
        "nothing was changed"
    );
}

async fn filled_paths() -> usize {
    let disk = filled(1, async |_: &Disk, spool: &dyn Spool| {
        spool.close().await.unwrap();
    });
    disk.await.paths().len()
}

#[tokio::test]
async fn files_that_are_missing_or_cut_are_seen() {
    let end = async |_: &Disk, spool: &dyn Spool| spool.close().await.unwrap();
    let whole = filled(1, end).await;
    let segments: Vec<_> = whole
        .paths()
        .into_iter()
        .filter(|p| p.ends_with(".log"))
        .collect();
    for path in &segments {
        let is_first = path == &segments[0];
        let disk = filled(1, end).await;
        disk.erase(path);
        let spool = open(&disk, &small()).await;
        match spool {
            // What went from the front looks trimmed: who asks for it is told.
            Ok(spool) => {
                assert!(is_first, "{path}");
                let fault = log(&spool).cursor(Position(0)).unwrap_err();
                assert!(matches!(fault, SpoolFault::Trimmed { .. }));
            }
            Err(fault) => assert!(matches!(fault, SpoolFault::Damaged { .. }), "{fault}"),
        }
        for length in [0, 63, 64, 100, 700] {
            let disk = filled(1, end).await;
            disk.put(path, &whole.contents(path)[..length]);
            let fault = reads(&disk).await.unwrap_err();
            assert!(
                matches!(fault, SpoolFault::Damaged { .. }),
                "{path} {length}: {fault}"
            );
        }
    }
    let disk = filled(1, end).await;
    disk.erase("/spool/spool");
    let fault = reads(&disk).await.unwrap_err();
    assert!(matches!(fault, SpoolFault::NotASpool { .. }), "{fault}");
    let disk = filled(1, end).await;
    segments.iter().for_each(|path| disk.erase(path));
    let fault = reads(&disk).await.unwrap_err();
    assert!(fault.to_string().contains("all segments"), "{fault}");
}

#[tokio::test]
async fn a_segment_of_another_spool_is_refused() {
    let other = filled(1, async |_: &Disk, spool: &dyn Spool| {
        spool.close().await.unwrap();
    })
    .await;
    let disk = filled(2, async |_: &Disk, spool: &dyn Spool| {
        spool.close().await.unwrap();
    })
    .await;
    disk.put(FIRST, &other.contents(FIRST));
    let fault = reads(&disk).await.unwrap_err();
    assert!(fault.to_string().contains("another spool"), "{fault}");
}

#[tokio::test]
async fn a_newer_format_is_refused_by_name() {
    for path in ["/spool/spool", FIRST] {
        let disk = filled(1, async |_: &Disk, spool: &dyn Spool| {
            spool.close().await.unwrap();
        })
        .await;
        let mut bytes = disk.contents(path);
        bytes[8] = 2;
        disk.put(path, &bytes);
        let fault = reads(&disk).await.unwrap_err();
        assert!(matches!(
            fault,
            SpoolFault::Newer {
                found: 2,
                known: 1,
                ..
            }
        ));
        assert!(
            fault.to_string().contains("run the newer Windrow"),
            "{fault}"
        );
    }
}

#[tokio::test]
async fn damage_after_it_was_opened_is_seen_when_it_is_read() {
    let disk = Disk::new(1);
    let spool = open(&disk, &small()).await.unwrap();
    append_texts(&log(&spool), 10).await;
    let mut cursor = log(&spool).cursor(Position(0)).unwrap();
    disk.flip(FIRST, (64 + 164 * 5 + 100) * 8);
    let mut read = 0;
    let fault = loop {
        match cursor.next(1).await {
            Ok(entries) => read += entries.len(),
            Err(fault) => break fault,
        }
    };
    assert!(
        matches!(
            fault,
            SpoolFault::Damaged {
                position: Position(5),
                ..
            }
        ),
        "{fault}"
    );
    assert!(read <= 5);
    assert!(cursor.next(1).await.is_err(), "nothing behind it is given");
}

/// A client that knows the format, and sends what looks like a group: where its entry is torn, the
/// rest must not be taken for a group that was synced.
#[tokio::test]
async fn bytes_of_clients_are_never_taken_for_the_log() {
    for seed in 0..200 {
        let disk = Disk::new(seed);
        let options = Options::default();
        let other = Disk::new(seed);
        let theirs = open(&other, &options).await.unwrap();
        append_texts(&log(&theirs), 3).await;
        let spool = open(&disk, &options).await.unwrap();
        append_texts(&log(&spool), 1).await;
        let payload = other.contents(FIRST);
        disk.state().faults.off_after = Some(1 + seed % 2);
        let torn = log(&spool).append(Batch::of(&payload)).await;
        assert!(torn.is_err());
        disk.power_loss();
        let spool = open(&disk, &options).await.unwrap();
        let entries = read_from(&log(&spool), Position(0)).await.unwrap();
        assert!(entries.len() <= 2);
        assert!(entries.iter().skip(1).all(|entry| entry.payload == payload));
    }
}
