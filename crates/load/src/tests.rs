//! Loads into a database that does what a test tells it to.

mod database;

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windrow_core::{Key, LoadFault, OnConflict, TableName};

use self::database::{Database, Script, conflict, lost, refused};
use super::{Input, Load, LoadError, Meter, Rejects, Run, Summary, Target};
use crate::source;

/// A CSV file with so many rows, numbered from 1. `bad` rows are `x`.
fn file(rows: u64, bad: impl Fn(u64) -> bool) -> (tempfile::TempDir, String) {
    let mut text = String::from("id\n");
    for id in 1..=rows {
        match bad(id) {
            true => text.push_str("x\n"),
            false => text.push_str(&format!("{id}\n")),
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.csv");
    std::fs::write(&path, text).unwrap();
    (folder, path.to_str().unwrap().to_owned())
}

async fn load(
    database: &Arc<Database>,
    path: &str,
    jobs: usize,
    resume: bool,
) -> Result<Summary, LoadError> {
    let (intake, task) = database.lane();
    let run = Run {
        load: Load {
            table: TableName::bare("t"),
            columns: None,
            on_conflict: OnConflict::Error,
            key: Key::Primary,
            create: false,
            jobs: NonZero::new(jobs),
            portion_rows: NonZero::new(100),
            limit: None,
            away_wait: Duration::from_millis(200),
        },
        target: Target {
            sink: database.clone(),
            intake,
        },
        rejects: Arc::new(Rejects::new(None, Box::new(|_| {}))),
        meter: Arc::new(Meter::default()),
        stop: CancellationToken::new(),
    };
    let path = path.to_owned();
    let input = Input {
        name: "f.csv".into(),
        open: Arc::new(move || source::open(&path, &source::Options::default())),
        once: false,
        identity: resume.then(|| super::Identity::Name("f".into())),
    };
    let loaded = run.files(vec![input]).await;
    drop(run);
    task.await.unwrap();
    loaded
}

#[tokio::test]
async fn every_row_comes_once_by_any_number_of_workers() {
    let (_folder, path) = file(5_037, |_| false);
    for jobs in [1, 4] {
        let database = Database::new(|_, _| None);
        let summary = load(&database, &path, jobs, false).await.unwrap();
        assert_eq!((summary.counts.written, summary.files), (5_037, 1));
        assert_eq!(database.rows(), (1..=5_037).collect::<Vec<_>>());
        assert!(database.by_lane() == 0 && summary.form == "test form");
    }
}

#[tokio::test]
async fn bad_rows_alone_are_left_out() {
    let (_folder, path) = file(3_000, |id| id % 500 == 0);
    for resume in [false, true] {
        let database = Database::new(|_, _| None);
        let summary = load(&database, &path, 2, resume).await.unwrap();
        let counts = summary.counts;
        assert_eq!((counts.written, counts.rejected), (2_994, 6));
        let good: Vec<u64> = (1..=3_000).filter(|id| id % 500 != 0).collect();
        assert_eq!(database.rows(), good);
        if resume {
            assert_eq!(database.marks(), [(0, 3_000)], "one mark for all");
            let again = load(&database, &path, 2, true).await.unwrap();
            assert_eq!((again.done_before, again.counts.before), (1, 3_000));
            assert_eq!(database.rows(), good);
        }
    }
}

/// No portion holds rows that are done beside others, which would go through the lane.
#[tokio::test]
async fn a_file_that_has_grown_is_loaded_further_in_whole_portions() {
    let database = Database::new(|_, _| None);
    let (_folder, path) = file(150, |_| false);
    load(&database, &path, 1, true).await.unwrap();
    assert_eq!((database.marks(), database.calls()), (vec![(0, 150)], 2));
    let (_folder, path) = file(420, |_| false);
    let summary = load(&database, &path, 1, true).await.unwrap();
    assert_eq!((summary.counts.before, summary.counts.written), (150, 270));
    assert_eq!(database.rows(), (1..=420).collect::<Vec<_>>());
    assert_eq!((database.calls(), database.by_lane()), (5, 0));
    assert_eq!(database.marks(), [(0, 420)]);
}

/// A run is killed while rows of a portion are under way through its lane, which come after the
/// next run has read the marks. They do not come twice, whatever the portions of that run are.
#[tokio::test]
async fn late_rows_of_a_killed_run_are_not_doubled() {
    let (_folder, path) = file(250, |_| false);
    for (written, late) in [(40, 46..56), (0, 1..11), (100, 101..111)] {
        let database = Database::new(|call, _| (call < 2).then(|| LoadFault::Refused(refused())));
        database.end_after(written);
        let error = load(&database, &path, 1, true).await.unwrap_err();
        assert!(matches!(error, LoadError::Away { .. }), "{error}");
        database.go_on(late);
        load(&database, &path, 1, true).await.unwrap();
        assert_eq!(database.rows(), (1..=250).collect::<Vec<_>>(), "{written}");
        assert_eq!(database.marks(), [(0, 250)]);
        assert!(database.by_lane() <= 200, "the rest goes by the bulk form");
    }
}

/// Others in the way, lost connections: each portion is tried again and comes once.
#[tokio::test]
async fn what_is_not_a_portions_fault_is_tried_again() {
    let (_folder, path) = file(1_000, |_| false);
    let script: Script = |call, _| match call % 3 {
        0 => Some(LoadFault::Again(conflict())),
        1 => Some(LoadFault::Again(lost())),
        _ => None,
    };
    let database = Database::new(script);
    // One worker: of two, one could meet nothing but refusals for too long.
    load(&database, &path, 1, false).await.unwrap();
    assert_eq!(database.rows(), (1..=1_000).collect::<Vec<_>>());
    // Not for ever.
    let database = Database::new(|_, _| Some(LoadFault::Again(conflict())));
    let error = load(&database, &path, 1, false).await.unwrap_err();
    assert!(
        error.to_string().starts_with("f.csv, lines 2 to 101: "),
        "{error}"
    );
    let database = Database::new(|_, _| Some(LoadFault::Again(lost())));
    let error = load(&database, &path, 1, false).await.unwrap_err();
    assert!(matches!(error, LoadError::Away { .. }), "{error}");
}

/// Of three calls one is committed and its answer lost, and one is lost before.
fn unheard(call: usize, committed: &mut bool) -> Option<LoadFault> {
    match call % 3 {
        0 => {
            *committed = true;
            Some(LoadFault::Unknown(lost()))
        }
        1 => Some(LoadFault::Unknown(lost())),
        _ => None,
    }
}

/// A commit whose answer is lost, with and without having taken place.
#[tokio::test]
async fn marks_tell_what_nobody_heard() {
    let (_folder, path) = file(1_000, |_| false);
    let database = Database::new(unheard);
    let summary = load(&database, &path, 1, true).await.unwrap();
    assert_eq!(summary.counts.written, 1_000);
    assert_eq!(database.rows(), (1..=1_000).collect::<Vec<_>>());
    let database = Database::new(unheard);
    let error = load(&database, &path, 1, false).await.unwrap_err();
    assert!(matches!(error, LoadError::Unknown { .. }), "{error}");
    assert!(error.to_string().contains("lines 2 to 101"), "{error}");
}

/// What is left out of a portion goes through the lane, and nothing else does.
#[tokio::test]
async fn a_portion_goes_without_its_bad_rows() {
    let (_folder, path) = file(3_000, |id| id % 50 == 7);
    let good: Vec<u64> = (1..=3_000).filter(|id| id % 50 != 7).collect();
    for resume in [false, true] {
        let database = Database::filtering(|_, _| None);
        let summary = load(&database, &path, 2, resume).await.unwrap();
        let counts = summary.counts;
        assert_eq!((counts.written, counts.rejected), (2_940, 60));
        assert_eq!((database.rows(), database.by_lane()), (good.clone(), 0));
        if resume {
            assert_eq!(database.marks(), [(0, 3_000)], "one mark for all");
        }
    }
}

/// A commit whose answer is lost: what its marks leave open was left out.
#[tokio::test]
async fn marks_tell_what_was_left_out_of_a_portion() {
    let (_folder, path) = file(1_000, |id| id % 50 == 7);
    let database = Database::filtering(unheard);
    let summary = load(&database, &path, 1, true).await.unwrap();
    let counts = summary.counts;
    assert_eq!((counts.written, counts.rejected), (980, 20));
    let good: Vec<u64> = (1..=1_000).filter(|id| id % 50 != 7).collect();
    assert_eq!(database.rows(), good);
    assert_eq!(database.marks(), [(0, 1_000)]);
}

/// What the bulk form cannot take goes through the lane, and so does all where there is no bulk
/// form for it.
#[tokio::test]
async fn the_lane_takes_what_the_bulk_form_does_not() {
    let (_folder, path) = file(1_000, |_| false);
    let database = Database::new(|_, _| Some(LoadFault::Refused(refused())));
    load(&database, &path, 1, true).await.unwrap();
    assert_eq!(database.rows(), (1..=1_000).collect::<Vec<_>>());
    assert_eq!(database.by_lane(), 1_000);
    assert_eq!(database.marks(), [(0, 1_000)]);
    let database = Database::without_loaders();
    let summary = load(&database, &path, 1, false).await.unwrap();
    assert_eq!(database.by_lane(), 1_000);
    assert!(
        summary.form.contains("row by row (not here)"),
        "{}",
        summary.form
    );
}

#[tokio::test]
async fn what_is_hopeless_ends_the_load_with_its_place() {
    let (_folder, path) = file(1_000, |_| false);
    let script: Script = |call, _| (call == 3).then(|| LoadFault::Hopeless(refused()));
    let database = Database::new(script);
    let error = load(&database, &path, 1, false).await.unwrap_err();
    assert!(
        error.to_string().starts_with("f.csv, lines 302 to 401: "),
        "{error}"
    );
    assert_eq!(database.rows().len(), 300);
}
