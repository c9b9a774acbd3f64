//! The loop of one client: messages in, answers out in their order; what is joined and what is
//! relayed.
//!
//! | room | what happens there |
//! | --- | --- |
//! | `engine`, `seat` | the session: its state, its loop; units handed to their lane |
//! | `line` | the client's connection and its buffers |
//! | [`charge`] | memory for long messages |
//! | `readings`, `lane` | what texts say, and what they mean in a lane: shared by all sessions |
//! | `extended`, `segment` | Parse, Bind, Describe, Execute, Close up to their Sync |
//! | `simple` | simple queries |
//! | `pending` | answers that wait for an outcome |
//! | `asked`, `local`, `values` | what a session answers by itself |
//! | [`crate::relay`] | everything else, over a server connection |

mod asked;
pub(crate) mod charge;
mod engine;
mod extended;
mod lane;
mod line;
pub(crate) mod local;
mod pending;
mod readings;
mod seat;
mod segment;
mod simple;
mod statements;
mod values;

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use windrow_core::Name;
use windrow_pgwire::target::Credential;

use crate::client::{Identity, Settings};
use crate::client_stream::ClientStream;
use crate::house::House;
use crate::presence::Presence;

pub(crate) use engine::{End, Session, shutdown};
pub(crate) use lane::LaneBook;
pub(crate) use line::HIGH;
pub(crate) use readings::{Prepared, Readings};
pub(crate) use segment::ClientName;
pub(crate) use statements::{Entry, Told, too_many as too_many_statements};

/// How long a client is given to take the last words.
const FAREWELL: Duration = Duration::from_secs(5);

/// A client that was let in.
#[derive(Debug)]
pub(crate) struct Client {
    /// Its connection.
    pub(crate) stream: ClientStream,
    /// What was read from it behind the startup packet.
    pub(crate) received: BytesMut,
    /// Who it is.
    pub(crate) identity: Identity,
    /// Under which settings it starts.
    pub(crate) settings: Settings,
    /// What it calls itself.
    pub(crate) application_name: Name,
    /// What lets it into the server.
    pub(crate) credential: Credential,
    /// `windrow.join` at the start.
    pub(crate) join: bool,
    /// What it was told of `standard_conforming_strings` (true: on), which decides how literals
    /// read.
    pub(crate) standard_strings: bool,
    /// True where it was told that `client_encoding` is UTF8.
    pub(crate) utf8: bool,
    /// How others see it.
    pub(crate) presence: Arc<Presence>,
}

/// Runs a session to its end. AuthenticationOk, ParameterStatus and BackendKeyData are sent
/// already; this begins with ReadyForQuery.
pub(crate) fn run(client: Client, house: Arc<House>) -> impl Future<Output = ()> + Send {
    // Made outside of the future, which would otherwise hold both the client and the session.
    let mut session = Session::new(client, house);
    async move {
        let end = session.serve().await;
        // What is rare is not held for as long as somebody is in.
        Box::pin(session.leave(end, FAREWELL)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<A, B, F: Future>(_: fn(A, B) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_silent_session_is_small() {
        let (future, state) = (size(run), size_of::<Session>());
        assert!(
            future <= 3072,
            "{future} bytes, of which {state} are its state"
        );
    }
}
