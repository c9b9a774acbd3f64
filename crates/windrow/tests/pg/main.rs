//! The gateway as a PostgreSQL client sees it, message by message, against a real server.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "a test ends where something is not as expected, in its helpers too"
)]

mod appearing;
mod away;
mod block_reasons;
mod bounds;
mod defer;
mod deferred_keys;
mod described;
mod differential;
mod extensions;
mod faults;
mod hostile;
mod interleaved;
mod kept;
mod kept_edges;
mod kept_forms;
mod kept_kills;
mod late;
mod late_reads;
mod load;
mod many;
mod moments;
mod notices;
mod order;
mod restless;
mod sequences;
mod session_values;
mod sessions;
mod spooled;
mod standings;
mod support;
mod texts;
mod types;
mod unnamed;
mod unread;
mod waiting;
mod warrants;
