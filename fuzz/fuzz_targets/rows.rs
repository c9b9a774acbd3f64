//! Bodies of rows over HTTP: NDJSON, JSON arrays, CSV.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windrow_http::trial::rows(bytes));
