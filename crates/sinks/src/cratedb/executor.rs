//! One connection that executes batches.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{
    Executor, Fault, FaultClass, Name, Op, Report, Shape, TableName, Tally, Unit, Verdict,
};

use super::catalog::Catalog;
use super::create::{self, Wish};
use super::place::{Plan, place};
use super::session::Session;
use super::statement::Statement;
use super::table::Table;
use crate::web::{Batch, Placed};

/// The most statements that a connection keeps.
const STATEMENTS: usize = 1_000;

/// A connection and what it has learned.
pub(super) struct Connection {
    pub(super) session: Session,
    catalog: Arc<Catalog>,
    creates: bool,
    statements: HashMap<Arc<Shape>, Arc<Statement>>,
}

/// Why a batch ended before all of its writes were sent: none of the others was.
#[derive(Debug)]
pub(super) struct Stop(pub(super) Fault);

/// The tables of a batch.
pub(super) struct Knowledge {
    tables: HashMap<TableName, Result<Option<Arc<Table>>, Fault>>,
    /// Why a table could not be created or extended.
    not_grown: HashMap<TableName, Fault>,
    pub(super) statements: HashMap<Arc<Shape>, Arc<Statement>>,
}

impl Knowledge {
    /// # Errors
    /// There is none, or it cannot be looked at.
    pub(super) fn table(&self, name: &TableName) -> Result<Arc<Table>, Fault> {
        match self.tables.get(name) {
            Some(Ok(Some(table))) => Ok(table.clone()),
            Some(Err(fault)) => Err(fault.clone()),
            Some(Ok(None)) | None => Err(self.not_grown.get(name).cloned().unwrap_or_else(|| {
                let message = format!("no such table: {name}");
                Fault::new(FaultClass::NoTable, "42P01", message).with_table(Some(&*name.table))
            })),
        }
    }

    /// Why a column is not there although columns may be created.
    pub(super) fn not_grown(&self, table: &TableName, column: &Name) -> Fault {
        let known = self
            .not_grown
            .iter()
            .find(|(name, _)| name.table == table.table);
        known.map(|(_, fault)| fault.clone()).unwrap_or_else(|| {
            let message = format!("table {table} has no column named {column}");
            Fault::new(FaultClass::NoColumn, "42703", message)
                .with_table(Some(&*table.table))
                .with_column(Some(&**column))
        })
    }

    pub(super) fn remember(&mut self, shape: Arc<Shape>, statement: Arc<Statement>) {
        if self.statements.len() >= STATEMENTS {
            self.statements.clear();
        }
        self.statements.insert(shape, statement);
    }
}

impl Connection {
    pub(super) fn new(session: Session, catalog: Arc<Catalog>, creates: bool) -> Self {
        Self {
            session,
            catalog,
            creates,
            statements: HashMap::new(),
        }
    }

    async fn drive(&mut self, batch: &mut Batch<'_>) -> Result<(), Stop> {
        let mut knowledge = Knowledge {
            tables: HashMap::new(),
            not_grown: HashMap::new(),
            statements: std::mem::take(&mut self.statements),
        };
        let driven = self.run(batch, &mut knowledge).await;
        self.statements = knowledge.statements;
        driven
    }

    async fn run(&mut self, batch: &mut Batch<'_>, knowledge: &mut Knowledge) -> Result<(), Stop> {
        self.learn(batch, knowledge).await?;
        if self.creates {
            self.grow(batch, knowledge).await?;
        }
        let Plan { statements, placed } = place(batch, knowledge, self.creates);
        for (group, items) in Placed::steps(batch, &placed) {
            let items = batch.not_held(items);
            if items.is_empty() {
                continue;
            }
            let Some(statement) = statements.get(group as usize / 2) else {
                continue;
            };
            let alone = !group.is_multiple_of(2);
            if statement.reads {
                self.read(batch, statement, &items).await?;
            } else {
                self.write(batch, statement, items, alone).await?;
            }
        }
        Ok(())
    }

    /// Reads the tables that are not known.
    async fn learn(
        &mut self,
        batch: &mut Batch<'_>,
        knowledge: &mut Knowledge,
    ) -> Result<(), Stop> {
        let mut tables: Vec<&TableName> = Vec::new();
        for (_, write) in batch.pending() {
            if !tables.contains(&&write.shape.table) {
                tables.push(&write.shape.table);
            }
        }
        for name in tables {
            let known = match self.catalog.fresh(name) {
                Some(table) => Ok(Some(table)),
                None => self.look_at(name, &mut batch.tally).await?,
            };
            knowledge.tables.insert(name.clone(), known);
        }
        Ok(())
    }

    async fn look_at(
        &mut self,
        name: &TableName,
        tally: &mut Tally,
    ) -> Result<Result<Option<Arc<Table>>, Fault>, Stop> {
        let whole = self.session.whole_name(name);
        match self.session.read(&whole, tally).await {
            Ok(facts) => Ok(Ok(self.catalog.put(name, facts))),
            Err(fault) if fault.class.may_retry() => Err(Stop(fault)),
            Err(fault) => Ok(Err(fault)),
        }
    }

    /// Makes what the rows ask for.
    async fn grow(&mut self, batch: &mut Batch<'_>, knowledge: &mut Knowledge) -> Result<(), Stop> {
        let mut wishes: Vec<(&TableName, Wish)> = Vec::new();
        for (_, write) in batch.pending() {
            let shape = &write.shape;
            if !matches!(shape.op, Op::Insert | Op::Update) {
                continue;
            }
            let place = wishes.iter().position(|(name, _)| **name == shape.table);
            let place = place.unwrap_or_else(|| {
                wishes.push((&shape.table, Wish::default()));
                wishes.len() - 1
            });
            if let Some((_, wish)) = wishes.get_mut(place) {
                wish.see(shape, write.values());
            }
        }
        for (name, wish) in wishes {
            let Some(Ok(table)) = knowledge.tables.get(name) else {
                continue;
            };
            let whole = self.session.whole_name(name);
            let facts = table.as_ref().map(|table| &table.facts);
            let statements = create::statements(&whole, facts, &wish);
            if statements.is_empty() {
                continue;
            }
            for sql in statements {
                if let Err(fault) = self.make(&whole, &sql, &mut batch.tally).await? {
                    // Somebody else may have been quicker: what is read now decides.
                    knowledge.not_grown.insert(name.clone(), fault);
                }
            }
            let known = self.look_at(name, &mut batch.tally).await?;
            knowledge.tables.insert(name.clone(), known);
        }
        Ok(())
    }

    /// The server says something else of a table than what is known.
    pub(super) fn forget(&self, statement: &Statement) {
        let whole = &statement.table.name;
        self.catalog.put(whole, None);
        self.catalog
            .put(&TableName::bare(whole.table.clone()), None);
    }
}

#[async_trait]
impl Executor for Connection {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        let mut batch = Batch::new(units, "CrateDB");
        match self.drive(&mut batch).await {
            Ok(()) => batch.report(true),
            Err(Stop(fault)) => {
                batch.again_rest(&fault);
                batch.report(false)
            }
        }
    }
}

/// Units that were certainly not written, because of what the fault says.
pub(super) fn again(fault: &Fault) -> Verdict {
    Verdict::Again(fault.clone())
}
