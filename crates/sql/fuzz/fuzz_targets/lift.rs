//! Lifting and the cache take any text, under both settings, without a panic; what is lifted is whole.

#![no_main]

use libfuzzer_sys::fuzz_target;
use windrow_core::statement::Arguments;
use windrow_sql::{Cache, Lifter};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (mut lifter, mut cache) = (Lifter::default(), Cache::new(8, 4096));
    for standard in [true, false] {
        if let Some(lifted) = lifter.lift(text, standard) {
            assert!(Arguments::of(lifted.values, lifted.count()).is_some());
            for at in 1..=lifted.count() {
                assert!(lifted.template.contains(&format!("${at}")));
            }
        }
        let first = cache.simple(text, standard, &mut lifter);
        let again = cache.simple(text, standard, &mut lifter);
        assert_eq!(first.effect(), again.effect());
        cache.extended(text, &[23]);
        assert!(cache.len() <= 8);
    }
});
