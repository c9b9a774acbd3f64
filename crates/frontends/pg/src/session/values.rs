//! The values that a session's statements took from sequences: the answers of `lastval()` and
//! `currval()`.

use smallvec::SmallVec;
use windrow_core::{Generated, WriteDone};

use crate::pool::{DRAWN, Drawn};

/// The most sequences of which the last value is kept; those used longest ago are dropped first.
const MAX_SEQUENCES: usize = 64;

/// Values that a session took from sequences, except those that only its server connection knows.
#[derive(Debug, Default)]
pub(crate) struct Values {
    last: Option<LastValue>,
    by_sequence: SmallVec<[Generated; 1]>,
    /// True if values were taken from unknown sequences, or were dropped.
    incomplete: bool,
    /// True if values will be taken when the spool is applied, and none was taken since in another
    /// way.
    in_spool: bool,
    last_in_spool: bool,
    /// True if the session has asked for values of sequences.
    asked: bool,
}

/// The answer of `lastval()`.
#[derive(Clone, Copy, Debug)]
struct LastValue {
    value: i64,
    /// The sequence of the value, if it is known.
    sequence: Option<u32>,
}

impl Values {
    /// Notes the value that a joined call took.
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

    /// Notes that a row in the spool takes a value when it is written.
    pub(crate) fn note_spooled(&mut self) {
        (self.in_spool, self.last_in_spool) = (true, true);
    }

    /// Returns true if the answer of `lastval()` is not known yet. From now on, the session counts
    /// as one that asks.
    pub(crate) fn asks_for_lost_last(&mut self) -> bool {
        self.asked = true;
        self.last_in_spool
    }

    /// Returns the same for any question.
    pub(crate) fn asks_for_lost(&mut self) -> bool {
        self.asked = true;
        self.in_spool
    }

    /// Returns true if the session has asked for values of sequences, so that it has to get them.
    pub(crate) fn was_asked(&self) -> bool {
        self.asked
    }

    /// Notes the values taken on a server connection. Returns false if the sequence of `lastval()`
    /// is not known.
    pub(crate) fn note_drawn(&mut self, drawn: &Drawn) -> bool {
        for generated in &drawn.current {
            // setval() changes the value of lastval() for the sequence used last.
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

    /// Notes that values were taken from unknown sequences.
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

    /// Returns the last value of a sequence, if it is known.
    pub(crate) fn current(&self, sequence: u32) -> Option<i64> {
        let mut known = self.by_sequence.iter();
        let known = known.find(|known| known.sequence == sequence);
        known.map(|known| known.value)
    }

    /// Returns the answer of `lastval()`; `None` if no value was taken in this session.
    pub(crate) fn last(&self) -> Option<i64> {
        self.last.map(|last| last.value)
    }

    /// Returns the sequence of `lastval()`, if it is known.
    pub(crate) fn last_sequence(&self) -> Option<u32> {
        self.last?.sequence
    }

    /// Notes that the sequence used last was dropped.
    pub(crate) fn forget_last(&mut self) {
        self.last = None;
    }

    /// Returns the sequences of which a value is known.
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

    /// Returns SQL that replaces `lastval()`, under that name. `looks`: true if it first checks
    /// whether a value was taken on the server connection meanwhile
    /// ([`DRAWN`](crate::pool::DRAWN)), which the server then returns. It also reports if the
    /// sequence was dropped.
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
                // setval() there changes the value of lastval().
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

    /// Returns SQL that replaces `currval(..)` of an argument, under that name. The server answers
    /// for sequences that are not known here.
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

    /// Drops all values, as DISCARD SEQUENCES does.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
