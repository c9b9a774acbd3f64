//! The statements that a connection knows.
//!
//! - **Compiled** statements are matched with one version of a table's description. Their key is a
//!   shape, or the number of a statement of SQL clients.
//! - **Prepared** statements have a name on the server. Each belongs to a compiled statement or to
//!   a version of a table.
//! - **Planned** function bodies are kept by the server itself.
//!
//! A compiled statement is dropped, with all its prepared ones, when its key is used with another
//! version of its table. Beyond a limit, the least recently used prepared statements are closed,
//! and all compiled ones are dropped at once (batches under way hold their own). Only the server
//! drops planned bodies: with the session, or by `DISCARD PLANS`.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use windrow_core::Shape;

use super::prepared::{Prepared, StatementKey};
use crate::catalog::check::Check;
use crate::catalog::table::Table;
use crate::compiled::{Compiled, Numbers};

/// Limit on the number of compiled statements of a connection.
const MOST: usize = 1024;

/// The key by which a connection finds a compiled statement again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CompiledKey {
    /// The shape of writes with Windrow's own values.
    Shape(Arc<Shape>),
    /// The number of a statement of SQL clients, and true if its types are the current ones.
    Statement(u64, bool),
}

/// A statement on one version of its table.
#[derive(Debug)]
struct Known {
    version: u64,
    /// The number of the single statement, which is the same for all forms.
    single_id: u64,
    /// A statement for each way in which the values are encoded.
    forms: Vec<Arc<Compiled>>,
}

/// The statements that a connection knows.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    compiled: HashMap<CompiledKey, Known, RandomState>,
    numbers: u64,
    pub(crate) prepared: Prepared,
    /// The columns of tables with user-defined functions when these functions last ran here, by the
    /// OID of the table.
    planned: HashMap<u32, Box<str>>,
}

impl Statements {
    /// Returns the compiled statement of this key and version that `fits`, or makes a new one.
    pub(crate) fn compile(
        &mut self,
        key: &CompiledKey,
        version: u64,
        fits: impl Fn(&Compiled) -> bool,
        make: impl FnOnce(Numbers) -> Compiled,
    ) -> Arc<Compiled> {
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
    fn begin(&mut self, key: &CompiledKey, version: u64) {
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

    fn forget_prepared(&mut self, old: &Known) {
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

    /// Returns true if triggers of these tables may have been planned in this session for columns
    /// of other types. The server keeps such PL/pgSQL plans, and would refuse writes that would
    /// succeed in a session without them. Records the columns for which the triggers are planned
    /// from now on.
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

    /// Drops what was prepared and planned, because another session has replaced the previous one.
    pub(crate) fn session_is_new(&mut self) {
        self.prepared.clear();
        self.planned.clear();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;
    use windrow_core::shape::ShapeParts;
    use windrow_core::{Key, OnConflict, Op, Returning, TableName};
    use windrow_proof::Trusted;

    use super::*;
    use crate::catalog::table::Facts;
    use crate::dialect::POSTGRES;
    use crate::executor::prepared::State;

    fn made(numbers: Numbers, version: u64) -> Compiled {
        let name = TableName::bare("t");
        let table = Arc::new(Table {
            version,
            read_at: Instant::now(),
            facts: Facts::unread(&name, &POSTGRES),
        });
        let shape = Arc::new(Shape::new(ShapeParts {
            op: Op::Insert,
            table: name,
            columns: Box::default(),
            key: Key::Primary,
            on_conflict: OnConflict::Error,
            returning: Returning::Nothing,
        }));
        Compiled::of_shape(numbers, false, &shape, &table, &Trusted::default())
    }

    #[test]
    fn what_was_prepared_goes_with_the_version_of_its_table() {
        let (mut statements, key) = (Statements::default(), CompiledKey::Statement(1, false));
        let compile = |statements: &mut Statements, version, fits: bool| {
            let make = |numbers| made(numbers, version);
            statements.compile(&key, version, |_| fits, make).numbers
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
