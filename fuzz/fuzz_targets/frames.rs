//! Messages of PostgreSQL clients.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windrow_pg::trial::frames(bytes));
