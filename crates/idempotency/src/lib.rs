//! Requests that are sent twice are executed once.
//!
//! A client gives its request a key, and sends it again with the same key where it has got no
//! answer. Each unit of the request has a row of its own in the table
//! [`windrow_bookkeeping::IDEMPOTENCY`], which is inserted in the unit's own transaction: so
//! the database itself decides whether the unit was executed, whichever side has crashed, and
//! keeps a second execution out. The row keeps what the client was told.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`key`] | a client's key |
//! | [`keys`] | begins requests with keys |
//! | [`request`] | one request: its parts in their order |
//! | `under_way` | what all of them share, and which have not ended |
//! | `part`, `commit` | one unit of a request; having units committed that were not before |
//! | [`refused`] | why a request is not executed |
//! | `fingerprint` | what tells two requests apart that have the same key |
//! | `stored` | what a client was told, as bytes |
//! | [`mod@sweep`] | forgetting keys that are old |
//!
//! **What is promised.** A unit is executed once, however often its request is sent, until its key
//! is forgotten. A request that is sent again gets what the first one was told: what was done, and
//! errors of the database too. What a database that was away or a full memory budget refused was
//! not executed, and is tried again.
//!
//! **What is not.** What an insert without returned values is told is foretold, and stored in the
//! transaction that executes it. What all others are told is stored behind it: where Windrow is
//! killed between the two, the next request is told that it was executed, and not what it gave.

mod commit;
mod fingerprint;
pub mod key;
pub mod keys;
mod part;
pub mod refused;
pub mod request;
mod stored;
pub mod sweep;
mod under_way;

pub use key::IdempotencyKey;
pub use keys::Keys;
pub use part::without_mark;
pub use refused::Refused;
pub use request::{Extent, KeyedRequest};
pub use sweep::sweep;
