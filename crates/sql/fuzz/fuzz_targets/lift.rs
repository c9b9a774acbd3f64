//! Lifting takes any text, under both settings, without a panic; what is lifted is whole.

#![no_main]

use libfuzzer_sys::fuzz_target;
use windrow_core::statement::Arguments;
use windrow_sql::Lifter;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let mut lifter = Lifter::default();
    for standard in [true, false] {
        if let Some(lifted) = lifter.lift(text, standard) {
            assert!(Arguments::of(lifted.values, lifted.count()).is_some());
            for at in 1..=lifted.count() {
                assert!(lifted.template.contains(&format!("${at}")));
            }
        }
    }
});
