//! The single steps of the experiment `move`.

use std::fs;

use windrow_bench::baseline::mover::{self, Layout};
use windrow_bench::experiments::moves::{Moves, Variant};
use windrow_bench::servers::{Kind, Table};
use windrow_testkit::postgres;

#[test]
fn steps_go_one_by_one() {
    let database = postgres::shared().unwrap();
    let root = tempfile::tempdir().unwrap();
    let step = || Moves {
        to: Kind::Postgres,
        rows: 25,
        variant: vec![Variant::Three],
        layout: vec![Layout::Tenants],
        rounds: 1,
        warm_up_rows: 0,
        prepare: false,
        run: false,
        clean_up: false,
        url: Some(database.url().to_owned()),
    };
    let table = Table::at(Kind::Postgres, database.url().to_owned());
    let count = || mover::count(&table, Layout::Tenants);
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
