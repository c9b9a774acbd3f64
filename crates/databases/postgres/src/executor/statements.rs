//! The statements that a connection knows.
//!
//! - **Compiled** statements are joined with one version of a table's description. Their key (`K`)
//!   is a shape, or the number of a described SQL statement.
//! - **Prepared** statements have a name on the server. Each belongs to a compiled statement or to
//!   a version of a table.
//! - **Planned** function bodies are kept by the server itself.
//!
//! A compiled statement is dropped, with all its prepared ones, when its key is used with another
//! version of its table. Past a limit, the least recently used prepared statements are closed, and
//! all compiled ones are dropped at once (batches under way hold their own). Only the server drops
//! planned bodies: with the session, or by `DISCARD PLANS`.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::prepared::{Prepared, StatementKey};
use crate::catalog::check::Check;
use crate::catalog::table::Table;
use crate::compiled::{Compiled, Numbers};

/// Limit on the number of compiled statements of a connection.
const MOST: usize = 1024;

/// A statement on one version of its table.
#[derive(Debug)]
struct Known<F> {
    version: u64,
    /// The number of the single statement, which is the same for all forms.
    single_id: u64,
    /// A statement for each way in which the values are encoded.
    forms: Vec<Arc<Compiled<F>>>,
}

/// The statements that a connection knows.
#[derive(Debug)]
pub(crate) struct Statements<K, F> {
    compiled: HashMap<K, Known<F>, RandomState>,
    numbers: u64,
    pub(crate) prepared: Prepared,
    /// The columns of tables with user-defined functions when these functions last ran here, by the
    /// OID of the table.
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
    /// Returns the compiled statement of this key and version that `fits`, or makes a new one.
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

    /// Adds an entry for a statement that is not compiled for this version of its table.
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
    /// Returns true if triggers of these tables may have been planned in this session for columns
    /// of other types. The server keeps such plans of PL/pgSQL, and would refuse writes of clients
    /// that have never run them. Records the columns for which the triggers are planned from now
    /// on.
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

    /// Forgets what was prepared and planned, because another session has replaced the previous
    /// one.
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
