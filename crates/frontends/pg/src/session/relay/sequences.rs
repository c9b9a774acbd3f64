//! What sequences gave to a session that has a server connection: what the connection knows, and
//! what was taken elsewhere.
//!
//! What was taken elsewhere was taken before: all that a session sends goes through its connection
//! as long as it has one. So in a question's place stands SQL that looks, at the moment when the
//! server comes to it, whether something was taken on the connection, and says what is known from
//! elsewhere if not. No order in which a statement is evaluated needs to be known, nor what its
//! functions and triggers do. Looking takes a function: to ask a connection on which nothing
//! was taken is an error ([`Loan::watch`](crate::pool::Loan::watch)).

use std::sync::Arc;

use windrow_sql::{Effect, Reading, Sequences};

use super::server_state::Look;
use super::state::{Relay, lost};
use crate::codec::frame::Front;
use crate::codec::message::Message;
use crate::session::state::End;
use crate::session_info::Interrupt;
use crate::statements::CachedStatement;

/// What a statement takes from sequences that it names itself. `text`: with its literals.
pub(super) fn named(cached: &CachedStatement, text: &[u8]) -> Option<Sequences> {
    let names = cached.names()?;
    let takes = names.calls("nextval") || names.calls("setval");
    let text = std::str::from_utf8(text).ok();
    takes.then(|| text.map(windrow_sql::sequences).unwrap_or_default())
}

/// True for a text that asks what sequences gave.
pub(super) fn asks(cached: &CachedStatement) -> bool {
    fn asks(effect: &Effect) -> bool {
        match effect {
            Effect::Lastval | Effect::Currval(_) | Effect::AsksForGenerated => true,
            Effect::Several(effects) => effects.iter().any(asks),
            _ => false,
        }
    }
    match &cached.reading {
        Reading::Join(_) => cached.asks(),
        Reading::Apart(apart) => asks(&apart.effect),
    }
}

/// True for a text that itself takes nothing from a sequence, whatever else does.
fn only_reads(cached: &CachedStatement) -> bool {
    const CALLED: [&str; 3] = ["currval", "lastval", "pg_get_serial_sequence"];
    let names = cached.names();
    names.is_some_and(|names| {
        !names.writes() && names.called.iter().all(|name| CALLED.contains(&&**name))
    })
}

impl Relay<'_> {
    /// The sequences to ask for, before nobody can any more.
    pub(super) fn drawn_from(&self) -> Vec<String> {
        let used = &self.server_state.sequences;
        let mut numbers = used.numbers.clone();
        if used.others || !self.server_state.unjudged.is_empty() {
            numbers.extend(self.session.values.sequences());
        }
        let numbers = numbers.iter().map(u32::to_string);
        numbers
            .chain(used.names.iter().map(ToString::to_string))
            .collect()
    }

    /// A question with what is known from elsewhere in its place. `None`: the server answers it as
    /// it is.
    pub(super) fn answerable(&self, cached: &CachedStatement, text: &[u8]) -> Option<String> {
        let (session, values) = (&*self.session, &self.session.values);
        let looks = self.server_state.look == Look::Can;
        // Where it cannot look, nothing may have been taken here, nor be taken by the text itself.
        let is_known = looks || (!self.server_state.generates && only_reads(cached));
        if !asks(cached) || !is_known || values.is_empty() {
            return None;
        }
        let last = values.sql_of_last(looks);
        let current = |argument: &str| values.sql_of_current(looks, argument);
        let text = std::str::from_utf8(text).ok()?;
        windrow_sql::answered(
            text,
            session.standard_strings,
            last.as_deref(),
            Some(&current),
        )
    }

    /// True where what begins with the next message asks what was taken elsewhere, and has yet to
    /// be made able to look.
    pub(super) fn needs_look(&self) -> bool {
        let server_state = &self.server_state;
        server_state.look == Look::Unknown
            && !server_state.listens
            && !self.open
            && self.status != b'E'
            && !self.session.values.is_empty()
            && self.asks_ahead()
    }

    /// True where a message that has come asks, up to the end of its segment.
    fn asks_ahead(&self) -> bool {
        let (connection, mut at) = (&self.session.connection, 0);
        while let Ok(Front::Whole { tag, total }) = connection.front(at) {
            let message = Message::read(tag, connection.body(at, total));
            let text = match &message {
                Message::Query(text) => Some(*text),
                Message::Parse(parse) => Some(parse.text),
                _ => None,
            };
            let may_ask = text.is_none_or(names_a_question);
            if may_ask && self.statement_of(&message).is_some_and(|one| asks(&one)) {
                return true;
            }
            if matches!(tag, b'Q' | b'S') {
                break;
            }
            at += total;
        }
        false
    }

    /// True where what comes next waits until it can look, and that can be seen to now.
    pub(super) fn waits_for_look(&mut self) -> bool {
        self.is_quiet() && self.needs_look()
    }

    /// Makes questions able to look. Nothing is under way.
    pub(super) async fn look(&mut self) -> Result<(), End> {
        let info = Arc::clone(&self.session.info);
        // A cancel request that is on its way must not meet the question.
        info.set_interrupt(Interrupt::Nothing).await;
        if !self.loan.wire.settle() {
            return Err(End::Fatal(lost()));
        }
        let can = self.loan.watch(self.status == b'T').await;
        self.server_state.look = match can.map_err(|_| End::Fatal(lost()))? {
            true => Look::Can,
            false => Look::Cannot,
        };
        self.loan.wire.take_over();
        let key = self.loan.wire.cancel_key();
        info.set_interrupt(Interrupt::Server(key)).await;
        Ok(())
    }
}

/// True where the name of a question stands somewhere in a text.
fn names_a_question(text: &[u8]) -> bool {
    let named = |at: usize| {
        let name = at.checked_sub(4).and_then(|from| text.get(from..at + 3));
        name.is_some_and(|name| {
            name.eq_ignore_ascii_case(b"currval") || name.eq_ignore_ascii_case(b"lastval")
        })
    };
    memchr::memchr2_iter(b'v', b'V', text).any(named)
}

#[cfg(test)]
mod tests {
    use super::names_a_question;

    #[test]
    fn the_name_of_a_question_is_seen_anywhere_in_a_text() {
        for text in [
            "currval",
            "select LASTVAL()",
            "vvlastVal",
            "select \"currval\"('s')",
        ] {
            assert!(names_a_question(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "val",
            "nextval('s')",
            "insert into t values (1)",
            "last val",
        ] {
            assert!(!names_a_question(text.as_bytes()), "{text}");
        }
    }
}
