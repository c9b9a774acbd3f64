//! Any text is read as PostgreSQL's own parser reads it, or not joined.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/differential/agree.rs"]
mod agree;
#[path = "../../tests/differential/tree.rs"]
mod tree;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Err(error) = agree::agree(text)
    {
        panic!("{text}\n  {error}");
    }
});
