//! Configuration files.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windrow::settings::trial::configuration(bytes));
