//! What sequences gave to a session that has a server connection: what the connection knows, and
//! what was taken elsewhere.
//!
//! A question for it gets what is known from elsewhere in its place; of all other sequences the
//! connection knows. Where both may know of one, the connection is asked first.

use std::collections::BTreeSet;
use std::sync::Arc;

use windrow_sql::{Effect, Reading, Sequences};

use super::state::{Relay, lost};
use super::statement_sequences::StatementSequences;
use crate::codec::frame::Front;
use crate::codec::message::Message;
use crate::proofs::writes;
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
    match &cached.reading {
        Reading::Join(_) => cached.asks(),
        Reading::Apart(apart) => matches!(
            &apart.effect,
            Effect::Lastval | Effect::Currval(_) | Effect::AsksForGenerated
        ),
    }
}

impl Relay<'_> {
    /// Takes note of what a statement that is sent may take besides what its effect says. `named`:
    /// from these sequences.
    pub(super) fn note_sequences(&mut self, cached: &CachedStatement, named: Option<Sequences>) {
        let names = cached.names();
        let asks = cached.effect() == Some(&Effect::AsksForGenerated);
        if named.is_some() || (asks && names.is_none_or(|names| writes(names))) {
            self.server_state.generates();
        }
        if let Some(named) = named {
            self.server_state.sequences.note_named(named);
        }
    }

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
    /// it is. `named`: what it takes from by name.
    pub(super) fn answerable(
        &self,
        cached: &CachedStatement,
        text: &[u8],
        named: Option<&Sequences>,
    ) -> Option<String> {
        let (session, server_state) = (&*self.session, &self.server_state);
        let is_known = !server_state.generates || server_state.sequences.is_known;
        if !asks(cached) || !is_known || session.values.is_empty() {
            return None;
        }
        let (itself, values) = (StatementSequences::of(cached, named)?, &session.values);
        let last = values.sql_of_last();
        let last = last.and_then(|last| itself.last(last, values.last_sequence()));
        let current = values.sql_of_current(itself.sequences().as_deref());
        let current = current
            .as_ref()
            .map(|(before, behind)| (&**before, *behind));
        let text = std::str::from_utf8(text).ok()?;
        windrow_sql::answered(text, session.standard_strings, last.as_deref(), current)
    }

    /// True where a message asks what the connection and the session may both know of.
    pub(super) fn needs_drawn_values(&self, tag: u8, total: usize) -> bool {
        let (session, server_state) = (&*self.session, &self.server_state);
        if !server_state.generates
            || server_state.sequences.is_known
            || server_state.listens
            || self.open
            || self.status == b'E'
            || session.values.is_empty()
        {
            return false;
        }
        let message = Message::read(tag, session.connection.body(0, total));
        self.statement_of(&message)
            .is_some_and(|cached| asks(&cached))
    }

    /// True where what comes next waits until the connection has been asked, and that can be done.
    pub(super) fn waits_for_drawn_values(&mut self) -> bool {
        let Ok(Front::Whole { tag, total }) = self.session.connection.front(0) else {
            return false;
        };
        self.is_quiet() && self.needs_drawn_values(tag, total)
    }

    /// Asks the connection what sequences gave there. Nothing is under way.
    pub(super) async fn ask_for_drawn_values(&mut self) -> Result<(), End> {
        let info = Arc::clone(&self.session.info);
        // A cancel request that is on its way must not meet the question.
        info.set_interrupt(Interrupt::Nothing).await;
        if !self.loan.wire.settle() {
            return Err(End::Fatal(lost()));
        }
        let known = self.session.values.sequences();
        let mut names: BTreeSet<String> = known.map(|sequence| sequence.to_string()).collect();
        names.extend(self.drawn_from());
        let names: Vec<String> = names.into_iter().collect();
        let drawn = self.loan.drawn(&names, self.status == b'T').await;
        let drawn = drawn.map_err(|_| End::Fatal(lost()))?;
        // Of which sequence it is the connection still knows.
        self.session.values.note_drawn(&drawn);
        self.server_state.sequences.is_known = true;
        self.loan.wire.take_over();
        let key = self.loan.wire.cancel_key();
        info.set_interrupt(Interrupt::Server(key)).await;
        Ok(())
    }
}
