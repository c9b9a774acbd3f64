//! Texts of SQL.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windrow_sql::trial::text(bytes));
