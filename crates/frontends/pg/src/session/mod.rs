//! The loop of one client: messages in, answers out in their order; what is joined and what is
//! relayed.
//!
//! | module | what happens there |
//! | --- | --- |
//! | `engine` | the loop: what is done next |
//! | `simple` | simple queries |
//! | `extended`, `segment` | Parse, Bind, Describe, Execute, Close up to their Sync |
//! | `describe`, `meaning` | what a statement means to the session: joined, relayed, its own |
//! | `submit` | units handed to their lane |
//! | `spool`, `spooled` | rows that are answered by the spool, and waiting until the database has them |
//! | `keyed` | writes that are executed once, under a key |
//! | `traces` | writes that are traced: what their client says of its own span |
//! | `handover` | going over to a server connection, and coming back |
//! | `retryable` | errors of writes that can be sent again |
//! | `relay` | everything that is not joined, over a server connection |
//! | `asked`, `local`, `values` | what a session answers by itself |
//! | `answers`, `pending` | answers that wait for an outcome, and saying them in order |
//! | `state` | the state of a session |
//! | `shared` | what all sessions share |
//! | `lane` | the lanes that sessions have opened, and what texts mean in them |
//! | `client_connection` | the client's connection and its buffers |
//! | [`charge`] | memory for long messages, and who holds it without getting on |
//! | `room` | room for long answers |

mod answers;
mod client_connection;
mod describe;
mod engine;
mod extended;
mod handover;
mod keyed;
mod local;
mod local_reply;
mod meaning;
mod pending;
mod relay;
mod retryable;
mod room;
mod segment;
mod simple;
mod spool;
mod spooled;
mod state;
mod submit;
mod traces;
mod values;

use std::sync::Arc;
use std::time::Duration;

use crate::admitted_client::AdmittedClient;
use crate::shared::Shared;
use state::Session;

/// How long a client is given to take the last words.
const FAREWELL: Duration = Duration::from_secs(5);

/// Runs a session to its end. AuthenticationOk, ParameterStatus and BackendKeyData are sent
/// already; this begins with ReadyForQuery.
pub(crate) fn run(client: AdmittedClient, shared: Arc<Shared>) -> impl Future<Output = ()> + Send {
    // Made outside of the future, which would otherwise hold both the client and the session.
    let mut session = Session::new(client, shared);
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
            future <= 3144,
            "{future} bytes, of which {state} are its state"
        );
    }
}
