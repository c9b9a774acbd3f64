//! Experiments at parameters that take a moment: that they run, count all rows and store a report.
//! Nothing is said of their figures.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests may"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use windrow_bench::experiments::batch_api::BatchApi;
use windrow_bench::experiments::capacity::{Capacity, CapacityLoad};
use windrow_bench::experiments::forms::Forms;
use windrow_bench::experiments::gateway::Gateway;
use windrow_bench::experiments::pace::Pace;
use windrow_bench::experiments::sweep::Sweep;
use windrow_bench::generator::pg::Mode;
use windrow_bench::generator::transaction::Shape;
use windrow_bench::servers::Kind;
use windrow_bench::servers::gate::Way;

const ALL: [Kind; 3] = [Kind::Sqlite, Kind::Postgres, Kind::MariaDb];

/// The files of the only run below a folder that end so.
fn stored(root: &Path, end: &str) -> Vec<PathBuf> {
    let runs: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    let files = fs::read_dir(&runs[0]).unwrap().map(|e| e.unwrap().path());
    files
        .filter(|path| path.to_string_lossy().ends_with(end))
        .collect()
}

/// What was measured: each arm with each of its metrics.
fn measured(root: &Path) -> BTreeSet<(String, String)> {
    let files = stored(root, ".csv");
    assert_eq!(files.len(), 1, "{files:?}");
    let mut reader = csv::Reader::from_path(&files[0]).unwrap();
    let rows = reader.records().map(|row| row.unwrap());
    rows.map(|row| (row[1].to_owned(), row[2].to_owned()))
        .collect()
}

/// The page has each of the plots, and each of these words.
fn shown(root: &Path, plots: usize, words: &[&str]) {
    let pages = stored(root, ".html");
    let page = fs::read_to_string(&pages[0]).unwrap();
    assert_eq!(page.matches("<figure class=\"own\"><svg").count(), plots);
    for word in words {
        assert!(page.contains(word), "{word}: {page}");
    }
}

#[test]
fn a_sweep_has_all_cells_and_the_point_of_pace() {
    for to in ALL {
        let root = tempfile::tempdir().unwrap();
        let sweep = Sweep {
            to,
            url: None,
            batches: vec![1, 10, 50],
            concurrency: vec![1, 2],
            cell_ms: 20,
            warm_up_ms: 1,
            find_ms: 100,
            streams: 2,
            turns: 1,
            rounds: 2,
        };
        sweep.run(root.path()).unwrap();
        let measured = measured(root.path());
        let has = |arm: &str, metric: &str| measured.contains(&(arm.to_owned(), metric.to_owned()));
        for batch in [1, 10, 50] {
            for connections in [1, 2] {
                let arm = format!("batch {batch}, concurrency {connections}");
                assert!(
                    has(&arm, "rows/s") && has(&arm, "times batch 1, concurrency 2"),
                    "{arm}"
                );
            }
        }
        assert!(has("windrow", "largest batch that pace allows, rows"));
        for arm in ["windrow", "pace's point, directly", "best cell, once more"] {
            assert!(has(arm, "of the best cell's rows/s"), "{arm}");
        }
        shown(
            root.path(),
            1,
            &[
                "published: 7 times at 50",
                "Relative throughput by batch size",
            ],
        );
    }
}

#[test]
fn a_sweep_without_what_all_is_relative_to_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let sweep = Sweep {
        to: Kind::Sqlite,
        url: None,
        batches: vec![10],
        concurrency: vec![2],
        cell_ms: 1,
        warm_up_ms: 1,
        find_ms: 1,
        streams: 1,
        turns: 1,
        rounds: 1,
    };
    let error = sweep.run(root.path()).unwrap_err().to_string();
    assert!(error.contains("--batches needs 1"), "{error}");
}

#[test]
fn all_forms_are_measured_at_all_sizes_that_they_have_a_place_for() {
    // SQLite's VALUES have no place for 7,000 rows of five columns.
    for (to, largest, arms_of_batches, alone) in [
        (Kind::Sqlite, 7_000, 5, "prepared in a transaction, 7000"),
        (Kind::Postgres, 30, 15, "pipelined, one Sync, 30"),
        (Kind::MariaDb, 30, 9, "LOAD DATA LOCAL, 30"),
    ] {
        let root = tempfile::tempdir().unwrap();
        let experiment = Forms {
            to,
            sizes: vec![1, 3, largest],
            cell_ms: 1,
            warm_up_ms: 1,
            rounds: 2,
        };
        experiment.run(root.path()).unwrap();
        let measured = measured(root.path());
        assert!(measured.contains(&(alone.to_owned(), "rows/s".to_owned())));
        // A single row has one size.
        let arms: BTreeSet<_> = measured.iter().map(|(arm, _)| arm).collect();
        assert_eq!(arms.len(), 1 + arms_of_batches, "{arms:?}");
        assert_eq!(measured.len(), 2 * arms.len());
        let words = ["Rows a second by form", "costs the database less CPU a row"];
        shown(root.path(), 2, &words);
    }
}

#[test]
fn documents_are_sent_with_and_without_batches() {
    for to in ALL {
        let root = tempfile::tempdir().unwrap();
        let experiment = BatchApi {
            to,
            documents: 500,
            attributes: vec![1, 10],
            batches: vec![1, 64],
            concurrency: vec![1, 3],
            cell_ms: 20,
            warm_up_ms: 1,
            rounds: 2,
        };
        experiment.run(root.path()).unwrap();
        let measured = measured(root.path());
        let less = measured
            .iter()
            .filter(|(_, metric)| metric.starts_with('%'))
            .count();
        // Two interfaces, two sizes of documents, two of batches, two numbers of clients.
        assert_eq!(less, 16, "{measured:?}");
        let seconds = measured
            .iter()
            .filter(|(_, metric)| metric == "s for 500 documents")
            .count();
        assert_eq!(seconds, 24, "{measured:?}");
        shown(
            root.path(),
            2,
            &[
                "Time by size of a batch, concurrency 3",
                "published: below 20 % at 64",
            ],
        );
    }
}

fn gateway(to: Kind, shape: Shape) -> Gateway {
    Gateway {
        to,
        shape,
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
        line_us: 0,
        ways: vec![Way::Direct, Way::Windrow],
        windrow: Vec::new(),
    }
}

#[test]
fn each_way_is_measured_under_each_load() {
    // MySQL's protocol has one mode less.
    for (to, modes) in [(Kind::Postgres, 3), (Kind::MariaDb, 2)] {
        let root = tempfile::tempdir().unwrap();
        gateway(to, Shape::Single).run(root.path()).unwrap();
        // Closed loads, a rate, two kinds of bad rows, silent clients.
        has_rates(root.path(), 2 * (modes + 1 + 2 + 1));
        shown(root.path(), 3, &["Windrow loses"]);
    }
}

/// Asserts that so many arms were measured, each with the usual metrics.
fn has_rates(root: &Path, count: usize) {
    let measured = measured(root);
    let arms: BTreeSet<&str> = measured.iter().map(|(arm, _)| arm.as_str()).collect();
    assert_eq!(arms.len(), count, "{arms:?}");
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
}

#[test]
fn reads_are_measured_joined_and_relayed() {
    for (to, modes) in [(Kind::Postgres, 3), (Kind::MariaDb, 2)] {
        let root = tempfile::tempdir().unwrap();
        let reads = Gateway {
            ways: vec![Way::Direct, Way::Windrow, Way::Relayed],
            ..gateway(to, Shape::Read)
        };
        reads.run(root.path()).unwrap();
        has_rates(root.path(), 3 * modes);
        shown(root.path(), 2, &["shape: read", "every row was read"]);
    }
}

#[test]
fn a_rate_rises_for_each_load_and_every_call_arrives() {
    let root = tempfile::tempdir().unwrap();
    let loads = vec![
        CapacityLoad::Single,
        CapacityLoad::Transaction,
        CapacityLoad::Order,
        CapacityLoad::Http,
    ];
    let capacity = Capacity {
        loads: loads.clone(),
        ways: vec![Way::Direct, Way::Windrow],
        clients: 4,
        from: 100.0,
        growth: 2.0,
        steps: 2,
        late_ms: 60_000.0,
        cell_ms: 100,
        rounds: 1,
        windrow: Vec::new(),
    };
    capacity.run(root.path()).unwrap();
    let measured = measured(root.path());
    for (arm, unit) in [
        ("direct, single rows", "row"),
        ("windrow, single rows", "row"),
        ("direct, transactions", "transaction"),
        ("windrow, orders of four rows", "transaction"),
        ("windrow, rows over HTTP", "row"),
    ] {
        let has = |arm: String, metric: String| measured.contains(&(arm, metric));
        assert!(has(arm.to_owned(), format!("most {unit}s/s")), "{arm}");
        assert!(has(format!("{arm} at 100/s"), "p99 ms".to_owned()), "{arm}");
    }
    let direct = |arm: &str| arm.starts_with("direct, rows over HTTP");
    assert!(!measured.iter().any(|(arm, _)| direct(arm)));
    shown(root.path(), 2 * loads.len(), &["times direct"]);
}

#[test]
fn transactions_of_mysql_clients_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let error = gateway(Kind::MariaDb, Shape::Order).run(root.path());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("PostgreSQL only"), "{error}");
}

#[test]
fn transactions_are_measured_each_way_and_arrive_whole() {
    for (shape, name) in [(Shape::Transaction, "transaction"), (Shape::Order, "order")] {
        let root = tempfile::tempdir().unwrap();
        let gateway = gateway(Kind::Postgres, shape);
        gateway.run(root.path()).unwrap();
        let measured = measured(root.path());
        let arms: BTreeSet<&str> = measured.iter().map(|(arm, _)| arm.as_str()).collect();
        assert_eq!(arms, ["direct, 3 clients", "windrow, 3 clients"].into());
        for metric in [
            "transactions/s",
            "p99.9 ms",
            "database CPU us/transaction",
            "gateway CPU us/transaction",
            "generator's limit transactions/s",
        ] {
            let windrow = ("windrow, 3 clients".to_owned(), metric.to_owned());
            assert!(measured.contains(&windrow), "{metric}");
        }
        let title = format!("shape: {name}");
        shown(
            root.path(),
            2,
            &[&title, "every transaction that was confirmed"],
        );
    }
}

#[test]
fn pace_is_shown_relative_to_the_best_bound() {
    let root = tempfile::tempdir().unwrap();
    let pace = Pace {
        seconds: 0.3,
        clients: 3,
        flights: vec![1, 2],
        warm_up_ms: 10,
        rounds: 2,
    };
    pace.run(root.path()).unwrap();
    let measured = measured(root.path());
    for arm in ["pace", "1 flight", "up to 2 flights"] {
        for metric in ["rows/s", "rows/s, 5: two CPU burners, one who syncs"] {
            let figure = (arm.to_owned(), metric.to_owned());
            assert!(measured.contains(&figure), "{figure:?}");
        }
    }
    let share = "of the best bound's rows/s".to_owned();
    assert!(measured.contains(&("pace".to_owned(), share)));
    let words = [
        "Rows a second while neighbours come and go",
        "asked: 0.9 or more",
    ];
    shown(root.path(), 1, &words);
}
