//! The weather example on an excerpt of its data, with the real program and both databases.

use std::path::Path;

#[test]
fn every_reading_arrives_once_and_unchanged() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/weather-excerpt.csv");
    let (sqlite, postgres) = windrow_bench::weather::check(&file, 40).unwrap();
    assert_eq!((sqlite.rows, postgres.rows), (300, 300));
}
