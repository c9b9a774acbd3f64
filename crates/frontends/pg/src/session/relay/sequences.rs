//! What sequences gave to a session that has a server connection: what the connection knows, and
//! what was taken elsewhere.
//!
//! A question for it gets what is known from elsewhere in its place; of all other sequences the
//! connection knows. Where both may know of one, the connection is asked first.

use std::collections::BTreeSet;
use std::sync::Arc;

use windrow_sql::{Effect, Reading, Sequences};

use super::own::Own;
use super::state::{Relay, lost};
use crate::codec::frame::Front;
use crate::codec::message::Message;
use crate::proofs::writes;
use crate::session::state::End;
use crate::session_info::Interrupt;
use crate::statements::Prepared;

/// What a statement takes from sequences that it names itself. `text`: with its literals.
pub(super) fn named(prepared: &Prepared, text: &[u8]) -> Option<Sequences> {
    let names = prepared.names()?;
    let takes = names.calls("nextval") || names.calls("setval");
    let text = std::str::from_utf8(text).ok();
    takes.then(|| text.map(windrow_sql::sequences).unwrap_or_default())
}

/// True for a text that asks what sequences gave.
fn asks(prepared: &Prepared) -> bool {
    match &prepared.reading {
        Reading::Join(_) => prepared.asks(),
        Reading::Apart(apart) => matches!(
            &apart.effect,
            Effect::Lastval | Effect::Currval(_) | Effect::AsksForGenerated
        ),
    }
}

impl Relay<'_> {
    /// Takes note of what a statement that is sent may take besides what its effect says. `named`:
    /// from these sequences.
    pub(super) fn note_taken(&mut self, prepared: &Prepared, named: Option<Sequences>) {
        let names = prepared.names();
        let asks = prepared.effect() == Some(&Effect::AsksForGenerated);
        if named.is_some() || (asks && names.is_none_or(|names| writes(names))) {
            self.residue.generates();
        }
        if let Some(named) = named {
            self.residue.taken.note_named(named);
        }
    }

    /// The sequences to ask for, before nobody can any more.
    pub(super) fn drawn_from(&self) -> Vec<String> {
        let taken = &self.residue.taken;
        let mut numbers = taken.numbers.clone();
        if taken.others || !self.residue.unjudged.is_empty() {
            numbers.extend(self.session.values.sequences());
        }
        let numbers = numbers.iter().map(u32::to_string);
        numbers
            .chain(taken.names.iter().map(ToString::to_string))
            .collect()
    }

    /// A question with what is known from elsewhere in its place. `None`: the server answers it as
    /// it is. `named`: what it takes from by name.
    pub(super) fn answerable(
        &self,
        prepared: &Prepared,
        text: &[u8],
        named: Option<&Sequences>,
    ) -> Option<String> {
        let (session, residue) = (&*self.session, &self.residue);
        let is_known = !residue.generates || residue.taken.is_known;
        if !asks(prepared) || !is_known || session.values.is_empty() {
            return None;
        }
        let (own, values) = (Own::of(prepared, named)?, &session.values);
        let last = values.sql_of_last();
        let last = last.and_then(|last| own.last(last, values.last_sequence()));
        let current = values.sql_of_current(own.sequences().as_deref());
        let current = current
            .as_ref()
            .map(|(before, behind)| (&**before, *behind));
        let text = std::str::from_utf8(text).ok()?;
        windrow_sql::answered(text, session.standard_strings, last.as_deref(), current)
    }

    /// True where a message asks what the connection and the session may both know of.
    pub(super) fn needs_drawn_values(&self, tag: u8, total: usize) -> bool {
        let (session, residue) = (&*self.session, &self.residue);
        if !residue.generates
            || residue.taken.is_known
            || residue.listens
            || self.open
            || self.status == b'E'
            || session.values.is_empty()
        {
            return false;
        }
        match Message::read(tag, session.line.body(0, total)) {
            Message::Query(text) => asks(&session.readings_of_query(text).prepared),
            Message::Parse(parse) => {
                let readings = &session.shared.readings;
                asks(&readings.get(parse.text, parse.type_oids(), session.utf8))
            }
            Message::Bind(bind) => {
                let entry = session.statements.get(bind.statement);
                entry.is_some_and(|entry| asks(&entry.prepared))
            }
            _ => false,
        }
    }

    /// True where what comes next waits until the connection has been asked, and that can be done.
    pub(super) fn waits_for_drawn_values(&mut self) -> bool {
        let Ok(Front::Whole { tag, total }) = self.session.line.front(0) else {
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
        let mut asked: BTreeSet<String> = known.map(|sequence| sequence.to_string()).collect();
        asked.extend(self.drawn_from());
        let asked: Vec<String> = asked.into_iter().collect();
        let drawn = self.loan.drawn(&asked, self.status == b'T').await;
        let drawn = drawn.map_err(|_| End::Fatal(lost()))?;
        // Of which sequence it is the connection still knows.
        self.session.values.note_drawn(&drawn);
        self.residue.taken.is_known = true;
        self.loan.wire.take_over();
        let key = self.loan.wire.cancel_key();
        info.set_interrupt(Interrupt::Server(key)).await;
        Ok(())
    }
}
