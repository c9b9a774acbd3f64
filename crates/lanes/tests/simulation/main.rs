//! Databases in simulation: whatever they cost, the pace settles within 10 % of the best fixed
//! setting.

mod calm;
mod cases;
mod database;
mod gather;
mod neighbours;
#[expect(
    clippy::unwrap_used,
    reason = "helpers of tests: failing is what they are for"
)]
mod run;
