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
use crate::statements::Prepared;

/// How long a silent session stays.
const LONGEST: Duration = Duration::from_secs(60);

impl Relay<'_> {
    /// True where the session had better stay for a while.
    pub(super) fn lingers(&self) -> bool {
        let residue = &self.residue;
        let plain = !residue.unknown && residue.unproven.is_none();
        residue.generates && plain && !self.session.line.ended
    }

    /// Waits for what the client does next. True: it goes on here.
    pub(super) async fn linger(&mut self) -> Result<bool, End> {
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
            let line = &mut session.line;
            let reading = poll_fn(|cx| {
                if let Poll::Ready(Err(error)) = line.poll_flush(cx) {
                    return Poll::Ready(Err(End::from(error)));
                }
                line.poll_read(cx).map_err(End::from)
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
        if self.session.line.ended {
            return Some(false);
        }
        match self.session.line.front(0) {
            Ok(Front::Whole { tag, total }) => {
                let body = self.session.line.body(0, total);
                Some(self.is_for_here(&Message::read(tag, body)))
            }
            Ok(Front::Part { .. }) => None,
            Err(_) => Some(false),
        }
    }

    fn is_for_here(&self, message: &Message<'_>) -> bool {
        let session = &*self.session;
        match message {
            Message::Query(text) => is_for_server(&session.readings_of_query(text).prepared),
            Message::Parse(parse) => {
                let readings = &session.shared.readings;
                is_for_server(&readings.get(parse.text, parse.type_oids(), session.utf8))
            }
            Message::Bind(bind) => {
                let entry = session.statements.get(bind.statement);
                entry.is_none_or(|entry| is_for_server(&entry.prepared))
            }
            Message::Terminate => false,
            _ => true,
        }
    }
}

/// False for what is known once the connection is given back, and for what can be joined.
fn is_for_server(prepared: &Prepared) -> bool {
    match prepared.effect() {
        None => prepared.asks(),
        Some(effect) => *effect != Effect::Lastval,
    }
}
