//! The statements of clients, and their meanings.
//!
//! | what | key | kept |
//! | --- | --- | --- |
//! | what a text says, read once for all sessions | text and types of its parameters | by [`StatementCache`], in two generations |
//! | what it means in a lane: types, or why it is not joined | lane | with its text, as long as the lane is open |
//! | the name of a prepared statement, and the types that were reported to its client | name | by its session |
//!
//! A lane is a role with its settings: what was described in one is used by the sessions that are
//! in it, and by no others. A session's prepared statement points to its text and to what that
//! means in the session's lane: its Bind and Execute look nothing up, and what they need stays when
//! the cache forgets it.
//!
//! Three things that look alike are kept elsewhere. What is proven of relayed statements
//! (`proofs`) is about the names in a text, not the text, and ends with a change of the catalog.
//! What is prepared on a server connection (`pool`) ends with that connection. What the server
//! says of roles and settings (`cache`) is asked again after some time.
//!
//! | module | what is there |
//! | --- | --- |
//! | `cached` | a text, with what it says and what it means in each lane |
//! | `cache` | all texts, and what is forgotten |
//! | `long_text` | long texts, which are read while other clients go on |
//! | `lifting` | texts whose literals are lifted out |
//! | `prepared` | the prepared statements of one session, and the types that were fixed for them |

mod cache;
mod cached;
mod lifting;
mod long_text;
mod prepared;

pub(crate) use cache::{Answer, StatementCache};
pub(crate) use cached::CachedStatement;
pub(crate) use lifting::{NOT_LIFTED, PreparedText, SimpleQuery};
pub(crate) use prepared::{
    ClientName, FixedTypes, NotJoined, PreparedStatement, PreparedStatements, in_lane, name_key,
    too_many,
};
