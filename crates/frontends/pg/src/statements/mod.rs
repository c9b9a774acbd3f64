//! The statements of clients, and their meanings.
//!
//! | what | key | kept |
//! | --- | --- | --- |
//! | the content of a text, parsed once for all sessions | text and types of its parameters | by [`StatementCache`], in two generations |
//! | its meaning in a lane: types, or the reason why it is not joined | lane | with its text, as long as the lane is open |
//! | the name of a prepared statement, and the types that were reported to its client | name | by its session |
//!
//! A lane is a role with its settings: only the sessions in it use its descriptions. A session's
//! prepared statement points to its text and to its meaning in the session's lane, so Bind and
//! Execute look nothing up, and the cache may drop both.
//!
//! Three similar things are kept elsewhere. Proofs about relayed statements (`proofs`) are about
//! the names in a text, not the text, and end with a change of the catalog. Statements prepared on
//! a server connection (`pool`) end with that connection. The server's answers about roles and
//! settings (`cache`) are asked for again after some time.
//!
//! | module | content |
//! | --- | --- |
//! | `cached` | a text, with what it says and what it means in each lane |
//! | `cache` | all texts, and what is forgotten |
//! | `lifting` | texts whose literals are lifted out |
//! | `prepared` | the prepared statements of one session, and the types that were fixed for them |

mod cache;
mod cached;
mod lifting;
mod prepared;

pub(crate) use cache::{Answer, StatementCache};
pub(crate) use cached::CachedStatement;
pub(crate) use lifting::{NOT_LIFTED, PreparedText, SimpleQuery};
pub(crate) use prepared::{
    ClientName, FixedTypes, NotJoined, PreparedStatement, PreparedStatements, in_lane, name_key,
    too_many,
};
