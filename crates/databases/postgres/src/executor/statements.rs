//! All that a connection knows of statements.
//!
//! - **Compiled** statements are joined with one version of a table's description. They are found
//!   by what their clients asked for (`K`: a shape, or the number of a described SQL statement).
//! - **Prepared** ones are known to the server by a name; each belongs to a compiled statement or
//!   to a version of a table.
//! - **Planned** is what the server has planned by itself: the bodies of functions.
//!
//! One rule says when something is forgotten: a compiled statement goes when it is asked for on
//! another version of its table, and all that was prepared for it goes with it. Besides, both have
//! a bound; past it, prepared statements that were not used for the longest time go, and compiled
//! ones all at once (what is under way holds its own). What is planned is forgotten by the server
//! alone, with the session or by `DISCARD PLANS`.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::prepared::{Prepared, StatementKey};
use crate::catalog::check::Check;
use crate::catalog::table::Table;
use crate::compiled::{Compiled, Numbers};

/// The most statements that a connection keeps compiled.
const MOST: usize = 1024;

/// One statement on one version of its table.
#[derive(Debug)]
struct Known<F> {
    version: u64,
    /// The same for all forms of it.
    single_id: u64,
    /// A statement for each way in which the values are encoded.
    forms: Vec<Arc<Compiled<F>>>,
}

/// What a connection knows of statements.
#[derive(Debug)]
pub(crate) struct Statements<K, F> {
    compiled: HashMap<K, Known<F>, RandomState>,
    numbers: u64,
    pub(crate) prepared: Prepared,
    /// What the columns of tables with functions of somebody's own were when these ran here last,
    /// by the table's number.
    planned: HashMap<u32, Box<str>>,
}

impl<K, F> Default for Statements<K, F> {
    fn default() -> Self {
        Self {
            compiled: HashMap::default(),
            numbers: 0,
            prepared: Prepared::default(),
            planned: HashMap::new(),
        }
    }
}

impl<K: Clone + Eq + Hash, F> Statements<K, F> {
    /// The compiled statement of this key and version that `fits`, or else what is made of it.
    pub(crate) fn compile(
        &mut self,
        key: &K,
        version: u64,
        fits: impl Fn(&Compiled<F>) -> bool,
        make: impl FnOnce(Numbers) -> Compiled<F>,
    ) -> Arc<Compiled<F>> {
        let known = self.compiled.get(key).filter(|k| k.version == version);
        let mut forms = known.iter().flat_map(|known| &known.forms);
        if let Some(compiled) = forms.find(|compiled| fits(compiled)) {
            return compiled.clone();
        }
        if known.is_none() {
            self.begin(key, version);
        }
        self.numbers += 1;
        let id = self.numbers;
        let known = self.compiled.get_mut(key);
        let single_id = known.as_ref().map_or(id, |known| known.single_id);
        let compiled = Arc::new(make(Numbers { id, single_id }));
        if let Some(known) = known {
            known.forms.push(compiled.clone());
        }
        compiled
    }

    /// A statement of which nothing is compiled on this version of its table.
    fn begin(&mut self, key: &K, version: u64) {
        if let Some(old) = self.compiled.remove(key) {
            self.forget_prepared(&old);
        }
        if self.compiled.len() >= MOST {
            self.compiled.clear();
            self.prepared.forget(|key| key != StatementKey::FollowUp);
        }
        self.numbers += 1;
        let known = Known {
            version,
            single_id: self.numbers,
            forms: Vec::new(),
        };
        self.compiled.insert(key.clone(), known);
    }

    fn forget_prepared(&mut self, old: &Known<F>) {
        let is_of = |id: u64| old.forms.iter().any(|compiled| compiled.numbers.id == id);
        self.prepared.forget(|key| match key {
            StatementKey::Single(id) => id == old.single_id,
            StatementKey::Fused(id) | StatementKey::Telling(id) => is_of(id),
            StatementKey::Guard(version) | StatementKey::Check(Check { version, .. }) => {
                let mut forms = old.forms.iter();
                forms.any(|compiled| compiled.table.version == version)
            }
            StatementKey::FollowUp => false,
        });
    }
}

impl<K, F> Statements<K, F> {
    /// Whether triggers of these tables may have been planned here for columns of other types: the
    /// server keeps such plans of PL/pgSQL, and would refuse writes of clients who have never
    /// run them. Takes note of what they are planned for from here on.
    pub(crate) fn has_old_plans<'t>(&mut self, tables: impl Iterator<Item = &'t Table>) -> bool {
        let prints = tables.filter_map(|table| table.print.as_ref());
        let mut old = false;
        for print in prints.filter(|p| !p.relied.functions.is_empty()) {
            let Some(oid) = print.oid() else { continue };
            match self.planned.get(&oid) {
                Some(known) if *known == print.columns => {}
                known => {
                    old |= known.is_some();
                    self.planned.insert(oid, print.columns.clone());
                }
            }
        }
        old
    }

    /// Another session has taken the place of the one before: nothing is prepared or planned there.
    pub(crate) fn session_is_new(&mut self) {
        self.prepared.clear();
        self.planned.clear();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;
    use windrow_core::{Op, TableName};
    use windrow_database::plan::Fence;

    use super::*;
    use crate::catalog::table::Facts;
    use crate::dialect::POSTGRES;
    use crate::executor::prepared::State;

    fn made(numbers: Numbers, version: u64) -> Compiled<()> {
        Compiled {
            numbers,
            failure_key: 0,
            op: Op::Insert,
            plain: true,
            table: Arc::new(Table {
                version,
                read_at: Instant::now(),
                facts: Facts::unread(&TableName::bare("t"), &POSTGRES),
            }),
            single: "".into(),
            fused: None,
            telling: None,
            fence: Fence::None,
            order_shows: false,
            moment: crate::moment::Moment::default(),
            apart: None,
            signature: None,
            generates: None,
            form: (),
        }
    }

    #[test]
    fn what_was_prepared_goes_with_the_version_of_its_table() {
        let mut statements: Statements<u8, ()> = Statements::default();
        let compile = |statements: &mut Statements<u8, ()>, version, fits: bool| {
            let make = |numbers| made(numbers, version);
            statements.compile(&1, version, |_| fits, make).numbers
        };
        let first = compile(&mut statements, 5, true);
        assert_eq!(compile(&mut statements, 5, true).id, first.id);
        let other_form = compile(&mut statements, 5, false);
        assert_ne!(other_form.id, first.id);
        assert_eq!(other_form.single_id, first.single_id);
        let keys = [
            StatementKey::Single(first.single_id),
            StatementKey::Fused(first.id),
            StatementKey::Telling(other_form.id),
            StatementKey::Guard(5),
        ];
        for (key, number) in keys.into_iter().zip(1..) {
            statements.prepared.put(key, number, State::Ready);
        }
        compile(&mut statements, 5, true);
        assert!(statements.prepared.evict(0, u64::MAX).is_empty());
        let next = compile(&mut statements, 6, true);
        assert_ne!(next.single_id, first.single_id);
        let mut closed = statements.prepared.evict(0, u64::MAX);
        closed.sort_unstable();
        assert_eq!(closed, [1, 2, 3, 4]);
    }
}
