//! How fast a file is read, and in how much memory: `cargo run --release -p windrow-load
//! --example read -- FILE`.

use std::io::Write;
use std::time::Instant;

use windrow_load::source::{Options, PortionLimits, open};
use windrow_load::source::{Portion, SourceFault};

const MOST: PortionLimits = PortionLimits {
    records: 10_000,
    bytes: 16 << 20,
};

fn main() -> Result<(), SourceFault> {
    let mut out = std::io::stdout();
    for path in std::env::args().skip(1) {
        let mut source = open(&path, &Options::default())?;
        let mut portion = Portion::new(source.columns().unwrap_or_default());
        let (start, mut rows, mut bad, mut bytes) = (Instant::now(), 0, 0, 0);
        while source.read(&mut portion, MOST)? {
            rows += portion.rows.len();
            bad += portion.bad.len();
            bytes += portion.rows.bytes();
        }
        let (time, millis) = (start.elapsed(), start.elapsed().as_millis().max(1));
        let rate = rows as u128 * 1000 / millis;
        let memory = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let memory = memory.lines().find(|line| line.starts_with("VmHWM"));
        // Nothing is to be done if nobody reads it.
        writeln!(
            out,
            "{path}: {rows} rows and {bad} bad ones with {bytes} bytes of values in {time:.2?}, {rate} rows/s, {}",
            memory.unwrap_or_default()
        )
        .ok();
    }
    Ok(())
}
