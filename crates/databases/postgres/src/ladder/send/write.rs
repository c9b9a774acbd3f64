//! Writes: values as text, or as one array a column.

use bytes::{BufMut, BytesMut};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use windrow_core::Value;

use super::Sender;
use crate::catalog::column::{ArrayForm, Column};
use crate::catalog::table::Table;
use crate::ladder::batch::Placed;
use crate::ladder::form::Compiled;
use crate::ladder::prepared;
use crate::ladder::prepared::StatementKey;
use crate::rows::row_statement::RowStatement;
use crate::values::encode::{Unfit, push_array};
use crate::values::text;

impl Sender<'_, '_> {
    pub(super) fn send_write(
        &mut self,
        compiled: &Compiled,
        row_statement: &RowStatement,
        placed: &Placed,
        fresh: bool,
    ) -> Result<(), Unfit> {
        let write = self.batch.write(placed).ok_or(Unfit)?;
        let ready = self
            .prepared
            .ready(StatementKey::Single(compiled.single_id));
        let name = match ready.filter(|_| !fresh) {
            Some(number) => prepared::name(number),
            None => {
                frontend::parse("", &compiled.single, [], self.out).map_err(|_| Unfit)?;
                String::new()
            }
        };
        let scratch = &mut *self.scratch;
        let spelled = row_statement.spelled_from();
        let push = |(place, (column, value)): (usize, (&Column, &Value)), out: &mut BytesMut| {
            if value.is_null() {
                return Ok(IsNull::Yes);
            }
            scratch.clear();
            let push = match place < spelled {
                true => text::push,
                false => text::push_spelled,
            };
            push(&column.kind, value, scratch).map_err(|why| why.0)?;
            out.put_slice(scratch);
            Ok(IsNull::No)
        };
        let values = row_statement.columns(&compiled.table).zip(write.row.iter());
        let values = values.enumerate();
        frontend::bind("", &name, [], values, push, [], self.out).map_err(|_| Unfit)?;
        frontend::execute("", 0, self.out).map_err(|_| Unfit)
    }

    pub(super) fn send_writes(
        &mut self,
        table: &Table,
        row_statement: &RowStatement,
        number: u64,
        items: &[u32],
    ) -> Result<(), Unfit> {
        let batch = self.batch;
        let scratch = &mut *self.scratch;
        let push = |(place, column): (usize, &Column), out: &mut BytesMut| {
            let values = items.iter().filter_map(|item| {
                let write = batch.write(batch.placed.get(*item as usize)?)?;
                write.row.get(place)
            });
            push_array(column, values, scratch, out).map_err(|Unfit| "a value does not fit")?;
            Ok(IsNull::No)
        };
        frontend::bind(
            "",
            &prepared::name(number),
            formats(table, row_statement),
            row_statement.columns(table).enumerate(),
            push,
            [],
            self.out,
        )
        .map_err(|_| Unfit)?;
        frontend::execute("", 0, self.out).map_err(|_| Unfit)
    }
}

fn formats<'t>(
    table: &'t Table,
    row_statement: &'t RowStatement,
) -> impl Iterator<Item = i16> + 't {
    let format = |column: &Column| i16::from(column.form != ArrayForm::Literal);
    row_statement.columns(table).map(format)
}
