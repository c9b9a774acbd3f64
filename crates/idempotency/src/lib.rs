//! Requests that are sent twice are executed once.
//!
//! A client gives its request a key, and sends it again with the same key if it got no answer. Each
//! unit of the request has a row of its own in the table [`windrow_bookkeeping::IDEMPOTENCY`],
//! which is inserted in the unit's own transaction. So the database itself decides if the unit was
//! executed, whichever side has crashed, and prevents a second execution. The row keeps the outcome
//! that the client got.
//!
//! | module | content |
//! | --- | --- |
//! | [`key`] | a client's key |
//! | [`keys`] | begins requests with keys |
//! | [`request`] | one request: its parts in their order |
//! | `under_way` | the state that all of them share, and those that have not ended |
//! | `part`, `commit` | one unit of a request; committing units |
//! | [`refused`] | the reason why a request is not executed |
//! | `fingerprint` | distinguishes requests with the same key |
//! | `stored` | outcomes that clients got, as bytes |
//! | [`mod@sweep`] | deletes old keys |
//!
//! **Promised.** A unit is executed once, however often its request is sent, until its key is
//! deleted. A repeated request gets the outcomes of the first one: results, and errors of the
//! database too. A refusal by a database that was away or a full memory budget means that nothing
//! was executed, and the unit is tried again.
//!
//! **Not promised.** The outcome of an insert without returned values is predicted, and stored in
//! the transaction that executes the insert. All other outcomes are stored after it: if Windrow is
//! killed between the two, a repetition is answered that the unit was executed, without its values.

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
