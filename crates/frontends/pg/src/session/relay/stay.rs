//! Staying on a server connection that could be given back.
//!
//! What a statement took from sequences its server connection tells in full: `currval()` asked
//! right behind it is answered there. Whoever else needs the connection gets it.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use windrow_sql::Effect;

use super::state::Relay;
use crate::codec::frame::Front;
use crate::codec::message::Message;
use crate::session::state::End;
use crate::statements::CachedStatement;

/// How long a silent session stays.
const LONGEST: Duration = Duration::from_secs(60);

impl Relay<'_> {
    /// True where the session had better stay for a while.
    pub(super) fn may_stay(&self) -> bool {
        let server_state = &self.server_state;
        let plain = !server_state.unknown && server_state.unproven.is_none();
        server_state.generates && plain && !self.session.connection.ended
    }

    /// Waits for what the client does next. True: it goes on here.
    pub(super) async fn stay(&mut self) -> Result<bool, End> {
        let stop = self.session.stop.clone();
        let ends = async {
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(LONGEST) => {}
            }
        };
        let mut ends = std::pin::pin!(ends);
        loop {
            if let Some(stays) = self.stays() {
                return Ok(stays);
            }
            let Self { session, loan, .. } = self;
            let connection = &mut session.connection;
            let reading = poll_fn(|cx| {
                if let Poll::Ready(Err(error)) = connection.poll_flush(cx) {
                    return Poll::Ready(Err(End::from(error)));
                }
                connection.poll_read(cx).map_err(End::from)
            });
            tokio::select! {
                biased;
                () = ends.as_mut() => return Ok(false),
                read = reading => drop(read?),
                () = loan.wanted() => return Ok(false),
            }
        }
    }

    /// Whether the session stays for what its client has sent; `None`: that is not there yet.
    fn stays(&self) -> Option<bool> {
        if self.session.connection.ended {
            return Some(false);
        }
        match self.session.connection.front(0) {
            Ok(Front::Whole { tag, total }) => {
                let body = self.session.connection.body(0, total);
                Some(self.is_for_here(&Message::read(tag, body)))
            }
            Ok(Front::Part { .. }) => None,
            Err(_) => Some(false),
        }
    }

    fn is_for_here(&self, message: &Message<'_>) -> bool {
        if matches!(message, Message::Terminate) {
            return false;
        }
        let statement = self.statement_of(message);
        statement.is_none_or(|cached| is_for_server(&cached))
    }
}

/// False for what is known once the connection is given back, and for what can be joined.
fn is_for_server(cached: &CachedStatement) -> bool {
    match cached.effect() {
        None => cached.asks(),
        Some(effect) => *effect != Effect::Lastval,
    }
}
