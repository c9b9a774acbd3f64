//! What the database refuses becomes a dead letter, and everything else goes on.

use std::time::Duration;

use tokio::time::Instant;
use windrow_core::Value;
use windrow_drain::{DrainState, Options};

use crate::fake::{Kind, World, Wrong, entry};

const GOOD: Kind = Kind::Good;

fn sources(world: &World) -> Vec<String> {
    let letters = world.tables().letters;
    let source = |row: &Vec<Value>| match &row[0] {
        Value::Text(text) => text.to_string(),
        other => panic!("{other:?}"),
    };
    letters.iter().map(source).collect()
}

fn source(position: usize) -> String {
    format!("spool 0000000000000000000000000000004d partition 0 position {position}")
}

#[tokio::test(start_paused = true)]
async fn a_refused_entry_is_a_letter_and_its_neighbours_are_rows() {
    let world = World::of(&[GOOD; 20]);
    world.log.push(entry(20, &[GOOD, Kind::Bad, GOOD]));
    for number in 21..40 {
        world.log.push(entry(number, &[GOOD]));
    }
    let drain = world.start();
    drain.all_applied().await;
    let expected = (0..40).filter(|number| *number != 20);
    assert_eq!(world.written(), Vec::from_iter(expected));
    let letters = world.tables().letters;
    let bytes = world.log.inner.entries.lock().unwrap()[20].to_vec();
    assert_eq!(
        letters,
        [vec![
            Value::text(source(20)),
            Value::text("t"),
            Value::Json("[20,1]".into()),
            Value::Json(r#"{"entry":20,"write":1,"kind":"bad"}"#.into()),
            Value::text("23514"),
            Value::text("refused"),
            Value::text("rule"),
            Value::Bytes(bytes.into()),
        ]]
    );
    let status = drain.status().await;
    assert_eq!((status.applied_entries, status.rejected_entries), (40, 1));
    let metrics = drain.metrics();
    for line in [
        "windrow_spool_rejected_entries_total{partition=\"0\"} 1\n",
        "windrow_spool_transactions_total{partition=\"0\",outcome=\"refused\"} 1\n",
    ] {
        assert!(metrics.contains(line), "{line} is missing in {metrics}");
    }
}

/// However entries are refused, and wherever they stand.
#[tokio::test(start_paused = true)]
async fn every_way_to_refuse_comes_to_an_end() {
    for bad in [Kind::Bad, Kind::Late, Kind::LateKey] {
        for places in [
            vec![0],
            vec![0, 1, 2],
            vec![9],
            vec![3, 4, 9],
            (0..10).collect(),
        ] {
            let kinds: Vec<_> = (0..10)
                .map(|n| if places.contains(&n) { bad } else { GOOD })
                .collect();
            let world = World::of(&kinds);
            let drain = world.start();
            drain.all_applied().await;
            let good = (0..10).filter(|n| !places.iter().any(|place| *place as i64 == *n));
            assert_eq!(world.written(), Vec::from_iter(good), "{bad:?} {places:?}");
            let expected: Vec<_> = places.iter().map(|place| source(*place)).collect();
            assert_eq!(sources(&world), expected, "{bad:?} {places:?}");
            drain.stop().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn many_refusals_cost_a_few_attempts_each() {
    let kind = |n: usize| if n % 10 == 7 { Kind::Bad } else { GOOD };
    let world = World::of(&Vec::from_iter((0..1_000).map(kind)));
    let drain = world.start();
    drain.all_applied().await;
    assert_eq!(sources(&world).len(), 100);
    let tried: usize = world.database.state().tried.iter().sum();
    assert!(tried < 4_000, "{tried}");
}

#[tokio::test(start_paused = true)]
async fn a_letter_that_is_too_long_is_kept_without_what_the_entry_says_as_well() {
    let world = World::of(&[GOOD, GOOD, Kind::Bad, GOOD]);
    world.database.state().faults.taboo.letter_row = Some(20);
    let drain = world.start();
    drain.all_applied().await;
    assert_eq!(world.written(), [0, 1, 3]);
    let letters = world.tables().letters;
    assert_eq!(letters[0][3], Value::Json("{}".into()));
    let bytes = world.log.inner.entries.lock().unwrap()[2].to_vec();
    assert_eq!(letters[0][7], Value::Bytes(bytes.into()));
}

/// A drain that may put entries into this folder.
fn with_folder(folder: &std::path::Path) -> Options {
    Options {
        aside: Some(folder.to_owned()),
        ..Options::default()
    }
}

/// An entry that the table of dead letters does not take is in a file, and the letter names it.
#[tokio::test(start_paused = true)]
async fn an_entry_that_is_too_large_for_its_letter_is_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("rejected");
    let world = World::of(&[GOOD, GOOD, Kind::Bad, GOOD]);
    world.database.state().faults.taboo.letter_entry = Some(1);
    let drain = world.start_with(with_folder(&folder));
    drain.all_applied().await;
    assert_eq!(world.written(), [0, 1, 3]);
    let file = folder.join("0-2.entry");
    let letters = world.tables().letters;
    assert_eq!(sources(&world), [source(2)]);
    assert_eq!(letters[0][4], Value::text("23514"));
    let message = format!("refused; its entry is in the file {}", file.display());
    assert_eq!(letters[0][5], Value::text(message));
    assert_eq!(letters[0][7], Value::Null);
    let bytes = world.log.inner.entries.lock().unwrap()[2].to_vec();
    assert_eq!(std::fs::read(file).unwrap(), bytes);
    drain.stop().await;
}

/// The file comes first: while it cannot be written, nothing is skipped.
#[tokio::test(start_paused = true)]
async fn where_the_file_cannot_be_written_it_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let above = directory.path().join("gone");
    let world = World::of(&[GOOD, Kind::Bad, GOOD]);
    world.database.state().faults.taboo.letter_entry = Some(1);
    let drain = world.start_with(with_folder(&above.join("rejected")));
    let waiting = |state: &DrainState| matches!(state, DrainState::Waiting { .. });
    let status = drain.until(waiting).await;
    let why = status.state.why().unwrap();
    assert!(
        why.contains("0-1.entry") && why.contains("cannot be written"),
        "{why}"
    );
    assert_eq!(world.written(), [0]);
    assert!(sources(&world).is_empty());
    std::fs::create_dir(&above).unwrap();
    drain.all_applied().await;
    assert_eq!(world.written(), [0, 2]);
    assert_eq!(sources(&world), [source(1)]);
    drain.stop().await;
}

/// No file is made for what the entry is not the reason of.
#[tokio::test(start_paused = true)]
async fn without_a_right_to_the_dead_letters_no_file_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let world = World::of(&[GOOD, Kind::Bad, GOOD]);
    let deny = |table| world.database.state().faults.taboo.denied.insert(table);
    deny("windrow_rejected");
    let drain = world.start_with(with_folder(directory.path()));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.written(), [0]);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    world.database.state().faults.taboo = Default::default();
    drain.all_applied().await;
    assert!(matches!(world.tables().letters[0][7], Value::Bytes(_)));
    drain.stop().await;
}

/// What is mostly nobody's fault is an entry's own where it fails alone, for as long as is waited.
#[tokio::test(start_paused = true)]
async fn an_entry_that_always_fails_alone_is_refused_in_the_end() {
    for (kind, code) in [(Kind::Conflict, "40001"), (Kind::Slow, "57014")] {
        for places in [vec![0], vec![7], vec![3, 4, 9]] {
            let kinds: Vec<_> = (0..10)
                .map(|n| if places.contains(&n) { kind } else { GOOD })
                .collect();
            let world = World::of(&kinds);
            let refuse_after = Duration::from_secs(30);
            let start = Instant::now();
            let drain = world.start_with(Options {
                refuse_after,
                ..Options::default()
            });
            drain.all_applied().await;
            let letters = world.tables().letters;
            assert!(letters.iter().all(|row| row[4] == Value::text(code)));
            let expected: Vec<_> = places.iter().map(|place| source(*place)).collect();
            assert_eq!(sources(&world), expected, "{kind:?} {places:?}");
            assert_eq!(world.written().len(), 10 - places.len());
            let least = refuse_after * places.len() as u32;
            assert!((least..least * 3).contains(&start.elapsed()), "{places:?}");
            drain.stop().await;
        }
    }
}

/// What is not of the entry is waited for, however long; and it does not count as its own failure.
#[tokio::test(start_paused = true)]
async fn locks_and_losses_make_no_dead_letters() {
    for between in [Wrong::Lock, Wrong::Lost, Wrong::UnknownUndone] {
        let world = World::of(&[GOOD; 3]);
        let mut wrongs = vec![between; 200];
        for at in (0..200).step_by(5) {
            wrongs[at] = Wrong::Conflict;
        }
        world.database.state().faults.next = wrongs;
        let start = Instant::now();
        let drain = world.start_with(Options {
            refuse_after: Duration::from_secs(5),
            ..Options::default()
        });
        drain.all_applied().await;
        assert!(start.elapsed() > Duration::from_secs(100));
        assert_eq!(world.written(), [0, 1, 2]);
        assert!(sources(&world).is_empty());
        drain.stop().await;
    }
}

/// Where no dead letter can be written nothing is skipped: it is said, and tried again.
#[tokio::test(start_paused = true)]
async fn without_a_place_for_dead_letters_nothing_is_skipped() {
    for at_all in [true, false] {
        let world = World::of(&[GOOD, GOOD, GOOD, Kind::Bad, GOOD]);
        {
            let taboo = &mut world.database.state().faults.taboo;
            match at_all {
                true => taboo.denied.extend(["windrow_rejected"]),
                false => taboo.letter_row = Some(0),
            }
        }
        let drain = world.start();
        let waiting = |state: &DrainState| matches!(state, DrainState::Waiting { .. });
        let status = drain.until(waiting).await;
        let why = status.state.why().unwrap();
        for part in ["windrow_rejected", "a write to t is refused", "23514"] {
            assert!(why.contains(part), "{why}");
        }
        assert_eq!(status.entries, 2);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(
            world.written(),
            [0, 1, 2],
            "what stands before it is applied"
        );
        assert_eq!(drain.status().await.entries, 2);
        world.database.state().faults.taboo = Default::default();
        drain.all_applied().await;
        assert_eq!(world.written(), [0, 1, 2, 4]);
        assert_eq!(sources(&world), [source(3)]);
        drain.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_right_to_the_progress_nothing_is_applied() {
    let world = World::of(&[GOOD; 5]);
    let deny = |table| world.database.state().faults.taboo.denied.insert(table);
    let drain = world.start();
    drain.all_applied().await;
    deny("windrow_progress");
    for number in 5..10 {
        world.log.push(entry(number, &[GOOD]));
    }
    let waiting = |state: &DrainState| matches!(state, DrainState::Waiting { .. });
    let status = drain.until(waiting).await;
    let why = status.state.why().unwrap().to_owned();
    assert!(
        why.contains("permission denied for table windrow_progress"),
        "{why}"
    );
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.written().len(), 5);
    assert!(world.tables().letters.is_empty());
    world.database.state().faults.taboo.denied.clear();
    drain.all_applied().await;
    assert_eq!(world.written(), Vec::from_iter(0..10));
    assert!(world.tables().letters.is_empty());
}
