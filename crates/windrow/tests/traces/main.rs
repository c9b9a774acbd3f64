//! Traces, as a collector of OpenTelemetry gets them: each test's gateway sends them to a collector
//! in the test's own process, which reads them with OpenTelemetry's own messages.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test ends where something is not as expected, in its helpers too"
)]

mod away;
mod collector;
mod gateway;
mod http;
mod mysql;
mod postgres;
mod sql;
