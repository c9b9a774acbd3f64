//! Paths and parameters of requests.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    windrow_http::trial::path(bytes);
    windrow_arango_api::trial::path(bytes);
});
