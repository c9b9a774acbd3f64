//! Tables and columns that are made because the rows of a batch name them.

use windrow_core::{Fault, Op, TableName, Tally};
use windrow_database::web::{Batch, Loss, Meaning};

use super::connection::{Connection, Stop};
use super::knowledge::Knowledge;
use crate::catalog::create;
use crate::catalog::create::Wish;
use crate::fault::meaning;

impl Connection {
    /// Makes what the rows ask for.
    pub(super) async fn grow(
        &mut self,
        batch: &mut Batch<'_>,
        knowledge: &mut Knowledge,
    ) -> Result<(), Stop> {
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

    /// Changes the schema.
    ///
    /// # Errors
    /// Outside: no batch can go on. Inside: the server refuses, in its own words.
    async fn make(
        &mut self,
        table: &TableName,
        sql: &str,
        tally: &mut Tally,
    ) -> Result<Result<(), Fault>, Stop> {
        let heard = self.session.single(sql, b"", tally).await;
        let heard = heard.map_err(Loss::harmless).map_err(Stop)?;
        let Err(failure) = heard else {
            tracing::info!(sql, "created");
            return Ok(Ok(()));
        };
        match meaning(&failure, table) {
            Meaning::Away(fault) => Err(Stop(fault)),
            other => {
                let mut fault = other.into_fault();
                fault.message = format!(
                    "the table {table} cannot be fitted to its rows: {}",
                    fault.message
                )
                .into();
                Ok(Err(fault))
            }
        }
    }
}
