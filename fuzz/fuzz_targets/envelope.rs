//! Requests within a request.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windrow_envelopes::trial::envelope(bytes));
