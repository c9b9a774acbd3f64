//! Experiments that drive the `windrow` program from outside, and keep their figures under
//! `benchmarks/runs/`.

pub mod awake;
pub mod baseline;
pub mod experiments;
pub mod figures;
pub mod http;
pub mod limit;
pub mod load_report;
pub mod number;
pub mod pg;
pub mod reading;
pub mod say;
pub mod servers;
pub mod weather;
