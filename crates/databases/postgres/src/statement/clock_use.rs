//! Finds where a statement reads the transaction's clock, and what a set-based statement makes of
//! it.

use windrow_core::{Expression, Name, Op, ParsedStatement, Piece};
use windrow_proof::{Clock, Clocked, clock};

use super::defaults::used_defaults;
use super::parsed::given;
use crate::catalog::column::{Column, oid};
use crate::catalog::table::Facts;
use crate::moment::{MOMENT, Moment};

/// A statement's use of the transaction's clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClockUse {
    pub(crate) moment: Moment,
    /// True if set-based statements have a moment for each unit.
    pub(crate) is_carried: bool,
    /// True if no set-based statement gives the correct times.
    pub(crate) no_sets: bool,
    /// Columns without a given value whose defaults read the clock, with their values over
    /// [`MOMENT`].
    pub(crate) defaults: Vec<(Name, String)>,
    /// Columns whose value is the moment itself: different for different units.
    pub(crate) exact: Vec<Name>,
    /// The column of `excluded` that holds the moment for DO UPDATE.
    pub(crate) excluded: Option<Name>,
}

/// The findings about a statement.
#[derive(Default)]
struct Finder<'a> {
    found: ClockUse,
    /// Columns whose values are computed from the clock.
    written: Vec<&'a Name>,
    /// Columns that get the transaction's own time.
    shared: Vec<Name>,
    /// True if a condition, or the answer to the client, depends on the clock.
    looks: bool,
}

impl ClockUse {
    /// Examines a statement. `clocked`: code that the table runs for its writes and that reads the
    /// clock.
    pub(crate) fn of(parsed: &ParsedStatement, facts: &Facts, clocked: &Clocked) -> Self {
        let mut finder = Finder::default();
        let given = given(parsed, facts);
        if given.is_none() && clock(&parsed.text, MOMENT) != Clock::Unread {
            // The statement runs unchanged.
            finder.looks = true;
        }
        let set = parsed.assignments.iter().map(|(name, value)| (name, value));
        for (name, value) in given.iter().flatten().copied().chain(set) {
            finder.value(name, value, facts);
        }
        finder.defaults(parsed, facts);
        let conditions = parsed.keys.iter().map(|(_, value)| value);
        for condition in conditions.chain(&parsed.conditions) {
            finder.condition(condition);
        }
        finder.conflict(parsed, facts);
        finder.returning(parsed);
        finder.end(facts, clocked)
    }
}

impl<'a> Finder<'a> {
    fn value(&mut self, name: &'a Name, value: &Expression, facts: &Facts) {
        match read(value) {
            Clock::Unread => {}
            Clock::Read { exact, .. } => {
                self.found.is_carried = true;
                self.written.push(name);
                self.exact(name, exact, facts);
            }
            Clock::Unclear => self.shared.push(name.clone()),
        }
    }

    fn exact(&mut self, name: &Name, exact: bool, facts: &Facts) {
        let column = facts.place_of(name).and_then(|p| facts.columns.get(p));
        if exact && column.is_some_and(Column::holds_moments) {
            self.found.exact.push(name.clone());
        }
    }

    fn defaults(&mut self, parsed: &ParsedStatement, facts: &Facts) {
        for column in used_defaults(parsed, facts).unwrap_or_default() {
            let default = column.default.as_deref().unwrap_or_default();
            match clock(default, MOMENT) {
                Clock::Unread => {}
                Clock::Read { sql, exact } if column.may_give && parsed.op == Op::Insert => {
                    self.found.is_carried = true;
                    self.exact(&column.name, exact, facts);
                    self.found.defaults.push((column.name.clone(), sql));
                }
                Clock::Read { .. } | Clock::Unclear => self.shared.push(column.name.clone()),
            }
        }
    }

    fn condition(&mut self, condition: &Expression) {
        match read(condition) {
            Clock::Unread => {}
            Clock::Read { .. } => (self.found.is_carried, self.looks) = (true, true),
            Clock::Unclear => (self.found.no_sets, self.looks) = (true, true),
        }
    }

    /// Makes DO UPDATE read the moment from a column that was to be inserted. If there is none, the
    /// columns that it sets get the transaction's time.
    fn conflict(&mut self, parsed: &ParsedStatement, facts: &Facts) {
        let Some(conflict) = &parsed.conflict else {
            return;
        };
        let clear = match read(&conflict.sql) {
            Clock::Unread => return,
            Clock::Read { .. } => !facts.has_hooks,
            Clock::Unclear => false,
        };
        let of_zone = |name: &&Name| {
            let column = facts.place_of(name).and_then(|p| facts.columns.get(p));
            column.is_some_and(|column| column.type_oid == oid::TIMESTAMPTZ)
        };
        let looks = conflict.has_condition;
        match self.found.exact.iter().find(of_zone).filter(|_| clear) {
            Some(name) => {
                self.found.excluded = Some(name.clone());
                self.looks |= looks;
            }
            None => {
                self.found.no_sets |= looks;
                self.looks |= looks;
                let set = conflict.assignments.iter();
                let stamped = set.filter(|(_, value)| read(value) != Clock::Unread);
                self.shared.extend(stamped.map(|(name, _)| name.clone()));
            }
        }
    }

    fn returning(&mut self, parsed: &ParsedStatement) {
        let Some(returning) = &parsed.returning else {
            return;
        };
        match clock(returning, MOMENT) {
            Clock::Unread => {}
            Clock::Read { .. } if parsed.op != Op::Insert => {
                (self.found.is_carried, self.looks) = (true, true);
            }
            Clock::Read { .. } | Clock::Unclear => (self.found.no_sets, self.looks) = (true, true),
        }
    }

    fn end(mut self, facts: &Facts, clocked: &Clocked) -> ClockUse {
        let stamps = clocked.stamps.iter().map(|name| Name::from(&**name));
        self.shared.extend(stamps);
        let looked = |name: &Name| facts.looks_at(name);
        let defaults = self.found.defaults.iter().map(|(name, _)| name);
        let carried = defaults.chain(self.written.iter().copied()).any(looked);
        let shared = self.shared.iter().any(looked);
        let uses = self.found.is_carried || self.looks || !self.shared.is_empty();
        let compared = clocked.looks.is_some() && uses;
        self.found.no_sets |= shared || compared;
        self.found.is_carried &= !self.found.no_sets;
        self.found.moment = match () {
            () if self.looks || carried || shared || compared => Moment::Own,
            () if !self.shared.is_empty() => Moment::Shared,
            () if self.found.is_carried => Moment::Carried,
            () => Moment::Unread,
        };
        self.found
    }
}

/// Reads all pieces of an expression together.
fn read(expression: &Expression) -> Clock {
    let Expression::Sql(pieces) = expression else {
        return Clock::Unread;
    };
    let mut found = Clock::Unread;
    for piece in pieces {
        let Piece::Text(sql) = piece else {
            continue;
        };
        match clock(sql, MOMENT) {
            Clock::Unread => {}
            Clock::Unclear => return Clock::Unclear,
            Clock::Read { sql, exact } => {
                let exact = exact && pieces.len() == 1;
                found = Clock::Read { sql, exact };
            }
        }
    }
    found
}
