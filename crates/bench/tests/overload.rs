//! The experiment `overload` at parameters that take a moment: that it runs, checks every row and
//! stores a report. Nothing is said of its figures.

use std::fs;

use windrow_bench::experiments::overload::{Overload, Trouble};

#[test]
fn each_trouble_is_made_and_over() {
    let troubles = vec![
        Trouble::TenTimes,
        Trouble::Stalled,
        Trouble::Killed,
        Trouble::BadRows,
        Trouble::Deaf,
    ];
    let root = tempfile::tempdir().unwrap();
    let overload = Overload {
        troubles,
        connections: 4,
        flood: 4,
        streams: 2,
        memory: 16,
        row_kib: 64,
        slow_ms: 20,
        phase_ms: 300,
        rounds: 1,
    };
    overload.run(root.path()).unwrap();
    let folder = fs::read_dir(root.path()).unwrap().next().unwrap().unwrap();
    let summary = fs::read_to_string(folder.path().join("summary.md")).unwrap();
    for arm in [
        "| ten times the load |",
        "| the database stands still |",
        "| the database is killed |",
        "| a flood of bad rows |",
        "| clients that never read |",
    ] {
        assert!(summary.contains(arm), "{arm} {summary}");
    }
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert_eq!(page.matches("<figure class=\"own\">").count(), 10);
}
