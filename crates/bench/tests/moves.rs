//! The experiment `move` at parameters that take a moment, and its single steps. Nothing is said of
//! its figures.

use std::fs;

use windrow_bench::baseline::mover::{self, Layout};
use windrow_bench::experiments::moves::{Moves, Variant};
use windrow_bench::servers::Kind;
use windrow_testkit::postgres;

fn moves() -> Moves {
    Moves {
        to: Kind::Postgres,
        rows: 25,
        variant: vec![Variant::One, Variant::Two, Variant::Three, Variant::Windrow],
        layout: vec![Layout::One, Layout::Tenants],
        rounds: 1,
        warm_up_rows: 3,
        prepare: false,
        run: false,
        clean_up: false,
        url: None,
    }
}

#[test]
fn all_variants_move_all_rows() {
    for to in [Kind::Postgres, Kind::MariaDb] {
        let root = tempfile::tempdir().unwrap();
        Moves { to, ..moves() }.run(root.path()).unwrap();
        let folder = fs::read_dir(root.path()).unwrap().next().unwrap().unwrap();
        let summary = fs::read_to_string(folder.path().join("summary.md")).unwrap();
        let published = match to {
            Kind::MariaDb => "| 7.50 |",
            _ => "| 11.20 |",
        };
        for part in [published, "| windrow move, a table for each tenant |"] {
            assert!(summary.contains(part), "{part} {summary}");
        }
    }
}

#[test]
fn steps_go_one_by_one() {
    let database = postgres::shared().unwrap();
    let root = tempfile::tempdir().unwrap();
    let step = || Moves {
        url: Some(database.url().to_owned()),
        variant: vec![Variant::Three],
        layout: vec![Layout::Tenants],
        ..moves()
    };
    let count = || mover::count(database.url(), Layout::Tenants);
    let prepare = Moves {
        prepare: true,
        ..step()
    };
    prepare.run(root.path()).unwrap();
    assert_eq!(count().unwrap(), (25, 0));
    Moves {
        run: true,
        ..step()
    }
    .run(root.path())
    .unwrap();
    assert_eq!(count().unwrap(), (0, 25));
    let vague = Moves {
        run: true,
        variant: Vec::new(),
        ..step()
    };
    let error = vague.run(root.path()).unwrap_err().to_string();
    assert!(error.contains("--variant"), "{error}");
    let clean_up = Moves {
        clean_up: true,
        ..step()
    };
    clean_up.run(root.path()).unwrap();
    assert!(count().is_err());
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
}
