//! Proves which level of sharing a statement on a table permits.

use std::sync::Arc;

use windrow_core::Apart;

use crate::body::{self, Body};
use crate::catalog::{Called, Catalog, Function, Kind, Reach, Relation, Trigger};
use crate::clock::reads_clock;
use crate::list::{self, Company, company};
use crate::reason;
use crate::settings;
use crate::trusted::Trusted;

/// Bits of `pg_trigger.tgtype`, from `src/include/catalog/pg_trigger.h`.
const ROW: u16 = 1;
const BEFORE: u16 = 2;
const INSERT: u16 = 4;
const DELETE: u16 = 8;
const UPDATE: u16 = 16;

/// The level of sharing that is proven for a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Level {
    /// A statement: nothing evaluated for one row can see another.
    Fused,
    /// A transaction: nothing evaluated in the statements or at the commit can detect it. Contains
    /// the reason why they may not share a statement.
    Grouped(Arc<Apart>),
    /// The statement may share neither a statement nor a transaction, for this reason.
    Apart(Arc<Apart>),
}

/// The operations of a statement on its table.
#[derive(Clone, Copy)]
pub struct Action<'a> {
    /// True if the statement inserts rows.
    pub inserts: bool,
    /// True if the statement updates rows, also by ON CONFLICT.
    pub updates: bool,
    /// True if the statement deletes rows.
    pub deletes: bool,
    /// Returns true if the default of a column may be evaluated.
    pub defaults: &'a dyn Fn(&str) -> bool,
    /// Returns true if an update sets a column.
    pub sets: &'a dyn Fn(&str) -> bool,
    /// Returns true if a column is part of a unique key.
    pub is_key: &'a dyn Fn(&str) -> bool,
}

impl Catalog {
    /// Returns the level that is proven for a statement.
    pub fn judge(&self, action: &Action<'_>, trusted: &Trusted) -> Level {
        let judge = Judge {
            catalog: self,
            action,
            trusted,
        };
        match judge.level() {
            Ok(None) => Level::Fused,
            Ok(Some(why)) => Level::Grouped(Arc::new(why)),
            Err(apart) => Level::Apart(Arc::new(apart)),
        }
    }
}

/// The code that a statement runs beyond its own text and that reads the transaction's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clocked {
    /// A check, a condition or a trigger that compares the clock with something.
    pub looks: Option<Box<str>>,
    /// The columns that triggers set to the clock's value.
    pub stamps: Vec<Box<str>>,
}

impl Catalog {
    /// Finds the code beyond the statement's own text, except for defaults of columns, that reads
    /// the transaction's clock.
    pub fn clocked(&self, action: &Action<'_>, trusted: &Trusted) -> Clocked {
        let judge = Judge {
            catalog: self,
            action,
            trusted,
        };
        let mut clocked = Clocked::default();
        let reads = |called: &&Called| {
            let read = called.function.built_in && reads_clock(called.function.bare());
            read && called.kind != Kind::Default && judge.applies(called)
        };
        let read = self.called.iter().find(reads);
        clocked.looks = read.map(|called| called.object.clone());
        for trigger in self.triggers.iter().filter(|trigger| judge.fires(trigger)) {
            let body = body::read(&trigger.body, &trigger.shadows, &self.operators);
            if let Ok(body) = body {
                clocked.stamps.extend(body.stamps);
                let looks = body.looks_at_clock.then(|| trigger.object.clone());
                clocked.looks = clocked.looks.or(looks);
            }
        }
        clocked
    }

    /// Returns the reasons why the triggers that a statement fires isolate it.
    pub(crate) fn triggers_apart<'a>(
        &'a self,
        action: &'a Action<'a>,
        trusted: &'a Trusted,
    ) -> impl Iterator<Item = Apart> + 'a {
        let judge = Judge {
            catalog: self,
            action,
            trusted,
        };
        self.triggers
            .iter()
            .filter_map(move |trigger| judge.of_trigger(trigger).err())
    }
}

struct Judge<'a> {
    catalog: &'a Catalog,
    action: &'a Action<'a>,
    trusted: &'a Trusted,
}

impl Judge<'_> {
    /// Returns the reason why the statement may share only a transaction; `None` if it may share a
    /// statement. The error is the reason why it may share neither.
    fn level(&self) -> Result<Option<Apart>, Apart> {
        let catalog = self.catalog;
        if !catalog.relations.iter().any(|r| r.reach == Reach::Itself) {
            return Err(reason::unknown());
        }
        let found = catalog.relations.iter().find_map(|r| self.of_relation(r));
        let found = found
            .into_iter()
            .chain(catalog.called.iter().filter_map(|c| self.of_called(c)));
        let mut grouped = None;
        let mut triggers = Vec::new();
        for trigger in &catalog.triggers {
            match self.of_trigger(trigger) {
                Ok(why) => grouped = grouped.or(why),
                Err(apart) => triggers.push(apart),
            }
        }
        // Unproven code is reported first, because it has the strictest effect.
        let mut all: Vec<Apart> = found.chain(triggers).collect();
        all.sort_by_key(|apart| !apart.unproven);
        match all.into_iter().next() {
            Some(apart) => Err(apart),
            None => Ok(grouped.or_else(|| self.inherits())),
        }
    }

    /// Refuses inheritance, because the table's keys do not distinguish rows of inheriting tables.
    /// An upsert is allowed: it changes rows of the table itself, or of the chunk of the row, by
    /// the same key.
    fn inherits(&self) -> Option<Apart> {
        let mut relations = self.catalog.relations.iter();
        let heir = relations.find(|r| matches!(r.reach, Reach::Heir | Reach::Chunk))?;
        (!self.action.inserts).then(|| reason::heir(&heir.name))
    }

    fn is_reached(&self, reach: Reach) -> bool {
        reach.is_by_insert() || self.action.updates || self.action.deletes
    }

    fn of_relation(&self, relation: &Relation) -> Option<Apart> {
        if !self.is_reached(relation.reach) || relation.reach == Reach::View {
            return None;
        }
        if !matches!(relation.kind, b'r' | b'p') {
            return Some(reason::kind(relation.kind, &relation.name));
        }
        if let Some(rule) = &relation.rule {
            return Some(reason::rule(rule, &relation.name));
        }
        let by_cascade = relation.reach == Reach::Cascade;
        (relation.secured && !by_cascade).then(|| reason::row_security(&relation.name))
    }

    fn of_called(&self, called: &Called) -> Option<Apart> {
        let of_column = matches!(called.kind, Kind::Default | Kind::Domain);
        self.applies(called)
            .then(|| of_function(called, of_column, self.trusted))
            .flatten()
    }

    /// Returns true if the statement may evaluate the object that calls a function.
    fn applies(&self, called: &Called) -> bool {
        let action = self.action;
        match called.kind {
            Kind::Default if called.reach == Reach::View => true,
            Kind::Default => called.reach == Reach::Itself && (action.defaults)(&called.place),
            Kind::Condition => {
                let mut triggers = self.catalog.triggers.iter();
                triggers.any(|trigger| trigger.oid == called.place && self.fires(trigger))
            }
            Kind::Type if called.is_code_of_type() => false,
            _ => {
                self.is_reached(called.reach)
                    && (action.inserts || action.updates || called.kind != Kind::Always)
            }
        }
    }

    /// Returns true if a trigger may change columns that the statement does not set.
    fn may_be_changed_before(&self) -> bool {
        let mut triggers = self.catalog.triggers.iter();
        triggers.any(|trigger| trigger.kind & BEFORE != 0 && !trigger.function.built_in)
    }

    fn fires(&self, trigger: &Trigger) -> bool {
        if !self.is_reached(trigger.reach) {
            return false;
        }
        // It is not examined what a rule or a view writes, and by which statement.
        if trigger.reach == Reach::View {
            return true;
        }
        // An action of a foreign key may be an update or a delete.
        let by_cascade = trigger.reach == Reach::Cascade;
        let deletes = self.action.deletes || by_cascade;
        let updates = self.action.updates || by_cascade;
        let sets = || {
            let mut columns = trigger.columns.iter();
            by_cascade
                || trigger.columns.is_empty()
                || columns.any(|name| (self.action.sets)(name))
                // A foreign key is checked if its columns have changed, even if a trigger before it
                // changed them.
                || trigger.function.built_in && self.may_be_changed_before()
        };
        (self.action.inserts && trigger.kind & INSERT != 0)
            || (deletes && trigger.kind & DELETE != 0)
            || (updates && trigger.kind & UPDATE != 0 && sets())
    }

    /// Returns the reason why a trigger prevents sharing a statement; the error is the reason why
    /// it prevents sharing a transaction.
    fn of_trigger(&self, trigger: &Trigger) -> Result<Option<Apart>, Apart> {
        if !self.fires(trigger) {
            return Ok(None);
        }
        let name = &trigger.function.name;
        let bare = trigger.function.bare();
        let guards = trigger.function.has_code() && list::guards(bare, trigger.function.built_in);
        let harmless = match () {
            () if guards => Ok(Body::guard()),
            () if self.trusted.has(name) => Ok(Body::unknown()),
            () if trigger.dressed => {
                Err("its function has SET options or is SECURITY DEFINER".to_owned())
            }
            () if &*trigger.function.language != "plpgsql" => Err(format!(
                "its function {name} is written in {}",
                trigger.function.language
            )),
            () => body::read(&trigger.body, &trigger.shadows, &self.catalog.operators)
                .map_err(|why| format!("in its function {name}: {why}")),
        };
        let body = harmless.map_err(|why| reason::trigger(&trigger.object, &why))?;
        let reads =
            &*trigger.function.language == "plpgsql" && settings::are_read_by(&trigger.body);
        if reads && !self.trusted.has(name) {
            return Err(reason::session_function(
                &trigger.object,
                settings::FUNCTION,
            ));
        }
        if trigger.deferred && !trigger.is_reference() {
            return Err(reason::deferred(&trigger.object));
        }
        if trigger.reach == Reach::Cascade && !trigger.function.built_in {
            return Err(reason::cascade(&trigger.object));
        }
        if trigger.kind & ROW == 0 || trigger.transition {
            return Err(reason::statement_trigger(&trigger.object));
        }
        let before = trigger.kind & BEFORE != 0;
        let moves = before && body.assigns.iter().any(|name| (self.action.is_key)(name));
        // A built-in trigger function that drops unchanged rows is known by its name.
        let drops = before && (body.drops || bare == "suppress_redundant_updates_trigger");
        let phrase = match () {
            () if body.speaks => "a trigger that may raise something",
            () if drops => "a trigger that may drop a row",
            () if moves => "a trigger that sets a key",
            () => return Ok(None),
        };
        Ok(Some(Apart::of(phrase).by(&*trigger.object)))
    }
}

impl Function {
    /// Returns the reason why a function that a client's text calls cannot be evaluated together
    /// with other rows. `object` is the caller.
    pub fn apart(&self, object: &str, text: &str, trusted: &Trusted) -> Option<Apart> {
        let reads_own = || settings::are_read_by(text);
        function_apart(self, object, (false, &reads_own), trusted)
    }
}

/// Returns the reason why a function cannot be evaluated together with other rows. `of_column` is
/// true if it computes a column's value, so that it may take it from a sequence.
pub(crate) fn of_function(called: &Called, of_column: bool, trusted: &Trusted) -> Option<Apart> {
    let from = (of_column, &(|| called.reads_own) as &dyn Fn() -> bool);
    function_apart(&called.function, &called.object, from, trusted)
}

/// Returns the reason for a function. `reads_own` is true if it may read a setting that Windrow's
/// connection has for itself.
fn function_apart(
    function: &Function,
    object: &str,
    (of_column, reads_own): (bool, &dyn Fn() -> bool),
    trusted: &Trusted,
) -> Option<Apart> {
    let name = &*function.name;
    let bare = function.bare();
    if trusted.has(name) {
        return None;
    }
    if !function.built_in {
        let proven =
            function.has_code() && (function.volatility == b'i' || list::is_of_extension(bare));
        return (!proven).then(|| reason::function(object, name));
    }
    match company(bare, function.volatility) {
        Company::Same => None,
        Company::Setting if !reads_own() => None,
        Company::Sequence if of_column && bare == "nextval" => None,
        Company::Sequence => Some(reason::sequence_function(object, bare)),
        Company::Setting | Company::Differs => Some(reason::session_function(object, bare)),
        Company::Unknown => Some(reason::function(object, bare)),
    }
}
