//! What connections of PostgreSQL clients begin with.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windrow_pg::trial::startup(bytes));
