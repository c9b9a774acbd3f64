//! The experiment `gateway` at parameters that take a moment: that it runs, checks every row and
//! stores a report. Nothing is said of its figures.

use std::collections::BTreeSet;
use std::fs;

use windrow_bench::experiments::gateway::Gateway;
use windrow_bench::pg::Mode;
use windrow_bench::servers::pg::Way;

#[test]
fn each_way_is_measured_under_each_load() {
    let root = tempfile::tempdir().unwrap();
    let gateway = Gateway {
        clients: vec![3],
        modes: vec![Mode::Prepared, Mode::Extended, Mode::Simple],
        rates: vec![200],
        bad_per_mille: vec![100],
        connected: vec![20],
        some: 3,
        cell_ms: 40,
        warm_up_ms: 10,
        rounds: 1,
        fsync_delay: 0,
        ways: vec![Way::Direct, Way::Windrow],
        windrow: Vec::new(),
    };
    gateway.run(root.path()).unwrap();
    let folder = fs::read_dir(root.path()).unwrap().next().unwrap().unwrap();
    let mut raw = csv::Reader::from_path(folder.path().join("raw.csv")).unwrap();
    let rows = raw.records().map(|row| row.unwrap());
    let measured: BTreeSet<(String, String)> = rows
        .map(|row| (row[1].to_owned(), row[2].to_owned()))
        .collect();
    let arms: BTreeSet<&str> = measured.iter().map(|(arm, _)| arm.as_str()).collect();
    // Three closed loads, a rate, two kinds of bad rows; silent clients through Windrow only.
    assert_eq!(arms.len(), 2 * (3 + 1 + 2) + 1, "{arms:?}");
    for arm in &arms {
        for metric in [
            "rows/s",
            "p99.9 ms",
            "database CPU us/row",
            "generator's limit rows/s",
        ] {
            let one = ((*arm).to_owned(), metric.to_owned());
            assert!(measured.contains(&one), "{arm} has no {metric}");
        }
    }
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert_eq!(page.matches("<figure class=\"own\"><svg").count(), 3);
    assert!(page.contains("Windrow loses"), "{page}");
}
