//! The values that a session's statements took from sequences: the answers of `lastval()` and
//! `currval()`.

use smallvec::SmallVec;
use windrow_core::{Generated, WriteDone};

use crate::pool::{DRAWN, Drawn};

/// Sequences of which the newest value is kept; those used longest ago are forgotten first.
const MAX_SEQUENCES: usize = 64;

/// Values that a session took from sequences, other than those that only its server connection
/// knows.
#[derive(Debug, Default)]
pub(crate) struct Values {
    last: Option<LastValue>,
    by_sequence: SmallVec<[Generated; 1]>,
    /// Values were taken of which the sequence is not known, or were forgotten.
    incomplete: bool,
    /// Values are taken when the spool is applied; and nothing was taken since in another way.
    in_spool: bool,
    last_in_spool: bool,
    /// The session has asked what sequences gave.
    asked: bool,
}

/// The answer of `lastval()`.
#[derive(Clone, Copy, Debug)]
struct LastValue {
    value: i64,
    /// Where it was taken from, if that is known.
    sequence: Option<u32>,
}

impl Values {
    /// Takes note of what a joined call took.
    pub(crate) fn note(&mut self, done: &WriteDone) {
        let Some(generated) = done
            .extra
            .as_ref()
            .and_then(|extra| extra.generated.as_ref())
        else {
            return;
        };
        self.last = Some(LastValue {
            value: generated.value,
            sequence: Some(generated.sequence),
        });
        self.last_in_spool = false;
        self.keep(generated.clone());
    }

    /// Takes note that a row in the spool takes a value when it is written.
    pub(crate) fn note_spooled(&mut self) {
        (self.in_spool, self.last_in_spool) = (true, true);
    }

    /// Returns true if what `lastval()` says is not known yet. From now on the session is one that
    /// asks.
    pub(crate) fn asks_for_lost_last(&mut self) -> bool {
        self.asked = true;
        self.last_in_spool
    }

    /// The same of any question.
    pub(crate) fn asks_for_lost(&mut self) -> bool {
        self.asked = true;
        self.in_spool
    }

    /// Returns true if the session has asked for values of sequences: it has to get them.
    pub(crate) fn was_asked(&self) -> bool {
        self.asked
    }

    /// Takes note of what was taken on a server connection. False: the sequence is not known that
    /// `lastval()` is about.
    pub(crate) fn note_drawn(&mut self, drawn: &Drawn) -> bool {
        for generated in &drawn.current {
            // setval() changes what lastval() says of the sequence that was used last.
            if let Some(last) = &mut self.last
                && last.sequence == Some(generated.sequence)
            {
                last.value = generated.value;
            }
            self.keep(generated.clone());
        }
        let Some(value) = drawn.last else {
            return true;
        };
        let mut same = drawn.current.iter().filter(|one| one.value == value);
        let (first, second) = (same.next(), same.next());
        let sequence = first.filter(|_| second.is_none()).map(|one| one.sequence);
        self.last = Some(LastValue { value, sequence });
        first.is_some()
    }

    /// Takes note that values were taken of which the sequence is not known.
    pub(crate) fn note_unknown(&mut self) {
        self.incomplete = true;
    }

    fn keep(&mut self, generated: Generated) {
        self.by_sequence
            .retain(|known| known.sequence != generated.sequence);
        if self.by_sequence.len() >= MAX_SEQUENCES {
            self.by_sequence.remove(0);
            self.incomplete = true;
        }
        self.by_sequence.push(generated);
    }

    /// Returns the last number of a sequence, if it is known.
    pub(crate) fn current(&self, sequence: u32) -> Option<i64> {
        let mut known = self.by_sequence.iter();
        let known = known.find(|known| known.sequence == sequence);
        known.map(|known| known.value)
    }

    /// Returns the answer of `lastval()`; `None`: no value was taken in this session.
    pub(crate) fn last(&self) -> Option<i64> {
        self.last.map(|last| last.value)
    }

    /// The sequence that `lastval()` is about, where it is known.
    pub(crate) fn last_sequence(&self) -> Option<u32> {
        self.last?.sequence
    }

    /// The sequence that was used last is gone.
    pub(crate) fn forget_last(&mut self) {
        self.last = None;
    }

    /// The sequences of which a value is known.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = u32> {
        self.by_sequence.iter().map(|known| known.sequence)
    }

    /// Returns true if nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_none() && self.by_sequence.is_empty()
    }

    /// Returns true if `currval()` of a sequence that is not known here may still have a value.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// SQL that stands for `lastval()`, under that name. `looks`: it asks first whether something
    /// was taken on the server connection meanwhile ([`DRAWN`](crate::pool::DRAWN)), which the
    /// server says then. It also says that the sequence is gone.
    pub(crate) fn sql_of_last(&self, looks: bool) -> Option<String> {
        let LastValue { value, sequence } = self.last?;
        let taken = |of: u32| format!("WHEN {DRAWN}({of}) THEN pg_catalog.");
        let newer = if looks {
            taken(0) + "lastval() "
        } else {
            String::new()
        };
        let known = match sequence {
            Some(sequence) => {
                // setval() there changes what lastval() says.
                let set = format!("{}currval({sequence}) ", taken(sequence));
                let set = if looks { &*set } else { "" };
                format!(
                    "{set}WHEN EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = {sequence}) THEN"
                )
            }
            None => "WHEN true THEN".to_owned(),
        };
        Some(format!(
            "CASE {newer}{known} {value}::pg_catalog.int8 ELSE pg_catalog.lastval() END"
        ))
    }

    /// SQL that stands for `currval(..)` of an argument, under that name. Of sequences that are not
    /// known here the server says it.
    pub(crate) fn sql_of_current(&self, looks: bool, argument: &str) -> String {
        if self.by_sequence.is_empty() {
            return format!("pg_catalog.currval({argument})");
        }
        let mut sql = format!("CASE ({argument})::pg_catalog.regclass::pg_catalog.oid ");
        for Generated { sequence, value } in &self.by_sequence {
            let known = match looks {
                true => format!(
                    "CASE WHEN {DRAWN}({sequence}) THEN pg_catalog.currval({sequence}) \
                     ELSE {value}::pg_catalog.int8 END"
                ),
                false => format!("{value}::pg_catalog.int8"),
            };
            sql.push_str(&format!("WHEN {sequence} THEN {known} "));
        }
        sql + &format!("ELSE pg_catalog.currval({argument}) END")
    }

    /// Forgets everything, as DISCARD SEQUENCES does.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
