//! Readings that are kept.

use std::sync::Arc;

use windrow_sql::{Cache, Lifter, MAX_TEXT, Reading};

fn joined(reading: &Reading) -> bool {
    matches!(reading, Reading::Join(_))
}

#[test]
fn a_text_is_read_once() {
    let mut cache = Cache::new(100, 1 << 20);
    let text = "INSERT INTO t VALUES ($1)";
    let first = cache.extended(text, &[23]);
    assert!(Arc::ptr_eq(&first, &cache.extended(text, &[23])));
    assert!(!Arc::ptr_eq(&first, &cache.extended(text, &[20])));
    assert_eq!(cache.len(), 2);
}

#[test]
fn texts_that_differ_in_their_literals_are_one() {
    let (mut cache, mut lifter) = (Cache::new(100, 1 << 20), Lifter::default());
    let first = cache.simple("INSERT INTO t VALUES (1, 'a')", true, &mut lifter);
    let second = cache.simple("INSERT INTO t VALUES (22, 'b') -- x", true, &mut lifter);
    assert!(Arc::ptr_eq(&first, &second));
    assert!(joined(&first));
    assert_eq!(
        lifter.lifted().values,
        [0, 0, 0, 2, b'2', b'2', 0, 0, 0, 1, b'b']
    );
    // Another type is another template.
    assert!(!Arc::ptr_eq(
        &first,
        &cache.simple("INSERT INTO t VALUES (1.5, 'a')", true, &mut lifter)
    ));
}

#[test]
fn literals_that_stay_are_joined_from_the_second_time_on() {
    let (mut cache, mut lifter) = (Cache::new(100, 1 << 20), Lifter::default());
    let text = "INSERT INTO t VALUES (date '2020-01-01', 5)";
    assert!(!joined(&cache.simple(text, true, &mut lifter)));
    assert!(joined(&cache.simple(text, true, &mut lifter)));
}

#[test]
fn texts_whose_literals_are_not_lifted_are_not_joined() {
    let (mut cache, mut lifter) = (Cache::new(100, 1 << 20), Lifter::default());
    let text = format!("INSERT INTO t VALUES (1){}", ", (1)".repeat(50));
    assert!(!joined(&cache.simple(&text, true, &mut lifter)));
    assert!(joined(&cache.extended(&text, &[])));
    assert!(!joined(&cache.simple(&text, true, &mut lifter)));
}

#[test]
fn it_is_bounded_and_keeps_what_is_used() {
    let mut cache = Cache::new(100, 40_000);
    let hot = cache.extended("INSERT INTO hot VALUES ($1)", &[]);
    for n in 0..10_000 {
        cache.extended(&format!("INSERT INTO t{n} VALUES ($1)"), &[]);
        let again = cache.extended("INSERT INTO hot VALUES ($1)", &[]);
        assert!(Arc::ptr_eq(&hot, &again));
        assert!(
            cache.len() <= 100 && cache.bytes() <= 40_000,
            "{} {}",
            cache.len(),
            cache.bytes()
        );
    }
    assert!(cache.len() > 10);
    let long = format!("SELECT '{}'", "x".repeat(MAX_TEXT));
    let before = cache.len();
    assert!(!joined(&cache.extended(&long, &[])));
    assert_eq!(cache.len(), before);
}

#[test]
fn an_entry_larger_than_the_cache_is_not_kept() {
    let mut cache = Cache::new(100, 100);
    cache.extended("SELECT 1", &[]);
    assert!(cache.is_empty());
}
