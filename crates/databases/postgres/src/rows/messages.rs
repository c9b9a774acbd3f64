//! Messages of row writes: values as text, or one array for each column; and the answers to their
//! clients.

use bytes::BufMut;
use postgres_protocol::message::frontend;
use windrow_calls::Formats;
use windrow_core::{Returned, RowDone, RowWrite, Value};
use windrow_pgwire::wire::DataRow;

use super::row_statement::RowStatement;
use crate::catalog::column::{ArrayForm, Column};
use crate::compiled::Compiled;
use crate::executor::answers::{Answers, Framed};
use crate::executor::bind::Bind;
use crate::executor::form::{Buffers, Messages};
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
        if statement.is_none() {
            frontend::parse("", &compiled.single, [], out).map_err(|_| Unfit)?;
        }
        let row_statement = &compiled.form;
        let spelled = row_statement.spelled_from();
        let values = row_statement.columns(&compiled.table).zip(write.row.iter());
        let mut bind = Bind::open(out, statement);
        bind.formats(&Formats::Text)?;
        bind.count(values.clone().count())?;
        for (place, (column, value)) in values.enumerate() {
            if value.is_null() {
                bind.out.put_i32(-1);
                continue;
            }
            scratch.clear();
            let push = match place < spelled {
                true => text::push,
                false => text::push_spelled,
            };
            push(&column.kind, value, scratch).map_err(|_| Unfit)?;
            bind.parameter(|out| {
                out.put_slice(scratch);
                Ok(())
            })?;
        }
        bind.formats(&Formats::Text)?;
        bind.close()
    }

    fn send_set<'w>(
        compiled: &Compiled<Self>,
        set: &Fused,
        statement: u64,
        writes: impl ExactSizeIterator<Item = Option<&'w RowWrite>> + Clone,
        distances: &[i64],
        Buffers { out, scratch }: Buffers<'_>,
    ) -> Result<u8, Unfit> {
        let row_statement = &compiled.form;
        let columns = row_statement.columns(&compiled.table);
        let count = row_statement.width() + usize::from(set.moments);
        let mut bind = Bind::open(out, Some(statement));
        bind.count(count)?;
        let is_binary = |column: &Column| column.form != ArrayForm::Literal;
        let formats = columns.clone().map(is_binary);
        for format in formats.chain(set.moments.then_some(true)) {
            bind.out.put_i16(i16::from(format));
        }
        bind.count(count)?;
        for (place, column) in columns.enumerate() {
            let values = writes.clone().filter_map(|write| write?.row.get(place));
            bind.parameter(|out| push_array(column, values, scratch, out))?;
        }
        if set.moments {
            bind.parameter(|out| push_distances(distances, out))?;
        }
        // The place of a write, and if it took place.
        let heads = if set.counted { 0 } else { 2 };
        bind.results(heads, row_statement.result_kinds.iter().map(|_| false))?;
        bind.close()?;
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

/// Returns the answer to a write that did nothing.
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
