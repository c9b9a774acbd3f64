//! Good and bad rows in any order, filtered: the same contents as by the lane.

use windrow_core::{Bulk, Claim, Field};

use crate::filtered::{COLUMNS, DAY, bed, clerk, mark};
use crate::support::*;
use windrow_testkit::loads::WritePortion as _;

/// Rows of which each may be bad in some way; `chance` says how.
fn mixed(chances: &[u8]) -> Vec<[String; 6]> {
    let row = |(at, chance): (usize, &u8)| {
        let mut row = [
            at.to_string(),
            format!("v{at}"),
            "1".to_owned(),
            at.to_string(),
            DAY.to_owned(),
            "2".to_owned(),
        ];
        let earlier = (at / 2).to_string();
        let (place, bad) = match chance % 20 {
            0 => (0, earlier),
            1 => (0, "text".into()),
            2 => (1, "NULL".into()),
            3 => (2, "0".into()),
            4 => (3, earlier),
            5 => (5, "7".into()),
            6 => (3, "-1".into()),
            7 => (1, "far too long\t\\".into()),
            8 => (4, "2020-13-01".into()),
            9 => (2, "2147483648".into()),
            10 => (4, "2020-01-01T05:00:00+02:00".into()),
            _ => (1, "\t\\é\n".into()),
        };
        row[place] = bad;
        // Two things may be wrong.
        if *chance > 200 {
            row[4] = "never".into();
        }
        row
    };
    chances.iter().enumerate().map(row).collect()
}

async fn compare(bed: &Bed, bulk: &dyn Bulk, [probed, numbers]: [bool; 2], chances: &[u8]) {
    bed.sql("delete from lane; delete from t; delete from windrow_loads; insert into lane values (-5, 'old', 1, -1, null, 1); insert into t select * from lane");
    // Who cannot try the numbering out does without what a check refuses, and a server that does
    // not number all rows without what any constraint refuses.
    let tame = |chance: &u8| match chance % 20 {
        kind @ (0 | 3..=6) if !numbers => chance - kind + 11,
        // Bent values may be keys that are there.
        1 if !numbers && !probed => chance + 10,
        3 if !probed => chance + 1,
        _ => *chance,
    };
    let chances: Vec<u8> = chances.iter().map(tame).collect();
    let owned = mixed(&chances);
    let rows: Vec<Vec<Field<'_>>> = owned
        .iter()
        .map(|row| {
            let fields = row.iter().map(|text| match text.as_str() {
                "NULL" => Field::Null,
                text => Field::Plain(text),
            });
            fields.collect()
        })
        .collect();
    let told = bed.alone(&plan("lane", &COLUMNS), &rows).await;
    let bad = told.iter().enumerate().filter(|(_, fault)| fault.is_some());
    let bad: Vec<usize> = bad.map(|(place, _)| place).collect();
    let mut loader = bulk.loader(&plan("t", &COLUMNS)).await.unwrap();
    let records: Vec<u64> = (0..rows.len() as u64).map(|n| 100 + n + n / 3).collect();
    let mark = mark("l", 99, 101 + records.last().unwrap());
    let claim = Claim {
        mark: &mark,
        records: &records,
    };
    let filtered = loader.filter(&portion(&rows), Some(&claim)).await.unwrap();
    let left = filtered.left;
    let taken = filtered.loaded.written + filtered.loaded.ignored;
    assert_eq!(taken + left.len() as u64, rows.len() as u64);
    let marks = bed.bulk.marks().unwrap();
    assert_eq!(marks.read("l").await.unwrap(), claim.spans(&left));
    let count = bed.sql("select count(*) - 1 from t");
    assert_eq!(count.trim(), filtered.loaded.written.to_string());
    assert_eq!(left, bad);
    let dump = |table: &str| format!("select * from {table} order by id");
    assert_eq!(bed.rows(&dump("t")).await, bed.rows(&dump("lane")).await);
}

#[test]
fn any_mix_is_as_by_the_lane() {
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (bed, (clerks, clerk)) = runtime.block_on(async {
        let bed = bed().await;
        bed.bulk.marks().unwrap().prepare().await.unwrap();
        let clerk = clerk(&bed).await;
        (bed, clerk)
    });
    let numbers = numbers_rows(&bed);
    let config = Config {
        cases: 30,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let chances = proptest::collection::vec(proptest::num::u8::ANY, 1..120);
    let result = runner.run(&chances, |chances| {
        runtime.block_on(async {
            compare(&bed, &*bed.bulk, [true, numbers], &chances).await;
            compare(&bed, &*clerks, [false, numbers], &chances).await;
        });
        Ok(())
    });
    result.unwrap();
    bed.sql(&format!("drop user {clerk}@'127.0.0.1'"));
}
