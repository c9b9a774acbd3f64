//! Files to be loaded: CSV, NDJSON.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windrow_load::trial::file(bytes));
