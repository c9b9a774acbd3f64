//! Writes of rows as messages: values as text, or as one array a column; and what their clients are
//! told.

use bytes::{BufMut, BytesMut};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use windrow_core::{Returned, RowDone, RowWrite, Value};
use windrow_pgwire::wire::DataRow;

use super::row_statement::RowStatement;
use crate::catalog::column::{ArrayForm, Column};
use crate::compiled::Compiled;
use crate::ladder::answers::{Answers, Framed};
use crate::ladder::form::{Buffers, Messages};
use crate::ladder::prepared;
use crate::moment::push_distances;
use crate::statement::set::Fused;
use crate::values::encode::{Unfit, push_array};
use crate::values::{decode, text};

impl Messages for RowStatement {
    type Work = RowWrite;

    fn send_one(
        compiled: &Compiled<Self>,
        write: &RowWrite,
        statement: Option<u64>,
        Buffers { out, scratch }: Buffers<'_>,
    ) -> Result<(), Unfit> {
        let name = match statement {
            Some(number) => prepared::name(number),
            None => {
                frontend::parse("", &compiled.single, [], out).map_err(|_| Unfit)?;
                String::new()
            }
        };
        let row_statement = &compiled.form;
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
        frontend::bind("", &name, [], values, push, [], out).map_err(|_| Unfit)?;
        frontend::execute("", 0, out).map_err(|_| Unfit)
    }

    fn send_set<'w>(
        compiled: &Compiled<Self>,
        set: &Fused,
        statement: u64,
        writes: impl ExactSizeIterator<Item = Option<&'w RowWrite>> + Clone,
        distances: &[i64],
        Buffers { out, scratch }: Buffers<'_>,
    ) -> Result<u8, Unfit> {
        let (table, row_statement) = (&*compiled.table, &compiled.form);
        let push = |(place, column): (usize, Option<&Column>), out: &mut BytesMut| {
            let Some(column) = column else {
                push_distances(distances, out).map_err(|Unfit| "too many rows")?;
                return Ok(IsNull::No);
            };
            let values = writes.clone().filter_map(|write| write?.row.get(place));
            push_array(column, values, scratch, out).map_err(|Unfit| "a value does not fit")?;
            Ok(IsNull::No)
        };
        let name = prepared::name(statement);
        let format = |column: &Column| i16::from(column.form != ArrayForm::Literal);
        let moments = set.moments.then_some(1);
        let formats = row_statement.columns(table).map(format).chain(moments);
        let columns = row_statement.columns(table).map(Some);
        let columns = columns.chain(set.moments.then_some(None)).enumerate();
        let heads: u8 = if set.counted { 0 } else { 2 };
        let results = (0..heads).map(|_| 1);
        let texts = row_statement.result_kinds.iter().map(|_| 0);
        let results = results.chain(texts.filter(|_| heads > 0));
        frontend::bind("", &name, formats, columns, push, results, out).map_err(|_| Unfit)?;
        frontend::execute("", 0, out).map_err(|_| Unfit)?;
        Ok(heads)
    }

    fn done_one(compiled: &Compiled<Self>, answers: &Answers, at: usize) -> RowDone {
        let statement = &compiled.form;
        let mut done = nothing(statement);
        done.rows = answers.count(at);
        if let Some(returned) = &mut done.returned {
            let rows = answers.rows_of(at);
            returned.rows = rows.map(|row| decoded(statement, row.columns())).collect();
        }
        done
    }

    fn begin_of_set(compiled: &Compiled<Self>, is_counted: bool) -> RowDone {
        match is_counted {
            true => RowDone::rows(1),
            false => nothing(&compiled.form),
        }
    }

    fn take_row(compiled: &Compiled<Self>, answers: &Answers, framed: &Framed, done: &mut RowDone) {
        if !framed.done {
            return;
        }
        done.rows = 1;
        if let Some(returned) = &mut done.returned {
            let row = answers.own_row(framed);
            let values = row.iter().flat_map(DataRow::columns);
            returned.rows = vec![decoded(&compiled.form, values)];
        }
    }
}

/// The answer to a write that did nothing.
fn nothing(statement: &RowStatement) -> RowDone {
    let columns = &statement.result_names;
    let returned = (!columns.is_empty()).then(|| {
        Box::new(Returned {
            columns: columns.clone(),
            rows: Vec::new(),
        })
    });
    RowDone { rows: 0, returned }
}

fn decoded<'r>(
    statement: &RowStatement,
    row: impl Iterator<Item = Option<&'r [u8]>>,
) -> Box<[Value]> {
    let kinds = statement.result_kinds.iter();
    let values = kinds.zip(row).map(|(kind, text)| decode::value(kind, text));
    values.collect()
}
