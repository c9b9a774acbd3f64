//! Experiments that drive the `windrow` program from outside, and keep their figures under
//! `benchmarks/runs/`.

pub mod awake;
pub mod baseline;
pub mod cores;
pub mod experiments;
pub mod figures;
pub mod generator;
pub mod number;
pub mod reading;
pub mod runtime;
pub mod say;
pub mod servers;
pub mod weather;
