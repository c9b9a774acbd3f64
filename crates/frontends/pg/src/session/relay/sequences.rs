//! Questions for the values taken from sequences, on the session's server connection and elsewhere.
//!
//! Values taken elsewhere were taken earlier, because everything that a session sends goes through
//! its connection as long as it has one. So a question is replaced by SQL that checks, when the
//! server executes it, if a value was taken on the connection, and otherwise returns the known
//! value. The check needs a function, because the server's own question is an error if no value was
//! taken ([`Loan::watch`](crate::pool::Loan::watch)).

use windrow_sql::{Effect, Reading, Sequences};

use super::ends::{Ends, lost};
use super::leftovers::Leftovers;
use super::used_sequences::Look;
use crate::codec::message::{Front, Message};
use crate::session::state::End;
use crate::statements::CachedStatement;

/// Returns the sequences from which a statement takes values by their names. `text`: with its
/// literals.
pub(super) fn named_in(cached: &CachedStatement, text: &[u8]) -> Option<Sequences> {
    let names = cached.names()?;
    let takes = names.calls("nextval") || names.calls("setval");
    let text = std::str::from_utf8(text).ok();
    takes.then(|| text.map(windrow_sql::sequences).unwrap_or_default())
}

/// Returns true for a text that asks for the values taken from sequences.
fn asks(cached: &CachedStatement) -> bool {
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

/// Returns true if a statement asks for a value taken from a sequence that is not known before the
/// spool is applied.
pub(super) fn asks_for_spooled(ends: &mut Ends<'_>, cached: &CachedStatement) -> bool {
    let mut executed = ends.executed_by(cached).into_iter();
    let asks = asks(cached) || executed.any(|one| asks(&one));
    asks && ends.session.values.asks_for_lost()
}

/// Returns true for a text that takes no value from a sequence itself.
fn only_reads(cached: &CachedStatement) -> bool {
    const CALLED: [&str; 3] = ["currval", "lastval", "pg_get_serial_sequence"];
    let names = cached.names();
    names.is_some_and(|names| {
        !names.writes() && names.called.iter().all(|name| CALLED.contains(&&**name))
    })
}

impl Leftovers {
    /// Returns the sequences to ask for before the connection is given back.
    pub(super) fn drawn_from(&self, ends: &Ends<'_>) -> Vec<String> {
        let known = ends.session.values.sequences();
        self.sequences.to_ask(known, !self.unjudged.is_empty())
    }

    /// Returns a question in which known values replace those taken elsewhere; `None` if the server
    /// answers it unchanged.
    pub(super) fn answerable(
        &self,
        ends: &Ends<'_>,
        cached: &CachedStatement,
        text: &[u8],
    ) -> Option<String> {
        let (session, values) = (&*ends.session, &ends.session.values);
        if values.is_empty() || !asks(cached) {
            return None;
        }
        let looks = self.look == Look::Can;
        // Without the check, no value may have been taken here, nor may the text itself take one.
        let is_judged = self.unjudged.is_empty() && self.unproven.is_none();
        let is_known = looks || (!self.generates && is_judged && only_reads(cached));
        if !is_known {
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

    /// Returns true if the next query or segment asks for a value taken elsewhere, and the check is
    /// not available yet.
    pub(super) fn needs_look(&self, ends: &Ends<'_>) -> bool {
        self.look == Look::Unknown
            && !self.is_listening()
            && !ends.is_open
            // A statement under way may leave a failed transaction.
            && (ends.status != b'E' || !ends.queue.is_empty())
            && !ends.session.values.is_empty()
            && asks_ahead(ends)
    }

    /// Makes the check available. Nothing may be under way.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) async fn watch(&mut self, ends: &mut Ends<'_>) -> Result<(), End> {
        ends.begin_questions().await?;
        let can = ends.loan.watch(ends.status == b'T').await;
        self.look = match can.map_err(|_| End::Fatal(lost()))? {
            true => Look::Can,
            false => Look::Cannot,
        };
        ends.end_questions().await;
        Ok(())
    }
}

/// Returns true if an available message asks for such a value, up to the end of its segment.
fn asks_ahead(ends: &Ends<'_>) -> bool {
    let (connection, mut at) = (&ends.session.connection, 0);
    while let Ok(Front::Whole { tag, total }) = connection.front(at) {
        let message = Message::read(tag, connection.body(at, total));
        let text = match &message {
            Message::Query(text) => Some(*text),
            Message::Parse(parse) => Some(parse.text),
            _ => None,
        };
        let may_ask = text.is_none_or(names_a_question);
        if may_ask && ends.statement_of(&message).is_some_and(|one| asks(&one)) {
            return true;
        }
        if matches!(tag, b'Q' | b'S') {
            break;
        }
        at += total;
    }
    false
}

/// Returns true if the name of such a question occurs in a text.
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
