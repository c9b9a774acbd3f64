//! The messages of single writes and of set-based statements: the values of a row as text, those of
//! a call as its client sent them, or one array for each column or parameter.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};
use postgres_protocol::message::frontend;
use windrow_core::{Formats, Signature, SqlCall, Write};
use windrow_database::quote::push_table;

use crate::calls::bound_call::BoundCall;
use crate::calls::renew::types_of;
use crate::catalog::column::{ArrayForm, Column};
use crate::compiled::{Compiled, CompiledForm};
use crate::moment::push_distances;
use crate::row_statement::RowStatement;
use crate::statement::set::Fused;
use crate::values::encode::{Unfit, push_array, put_i32_at};
use crate::values::text;

/// The buffers to which a statement is appended.
pub(crate) struct Buffers<'b> {
    pub(crate) out: &'b mut BytesMut,
    pub(crate) scratch: &'b mut Vec<u8>,
}

/// The types by which a client knows the statement of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KnownTypes<'w> {
    /// The client does not ask for types.
    Unasked,
    /// The types at the time of execution, to be reported with the answer.
    AtUse,
    /// The types that were reported before, and that must stay.
    Reported(&'w Signature),
}

impl<'w> KnownTypes<'w> {
    /// Returns the types by which the client of a write knows its statement.
    pub(crate) fn of(write: &'w Write) -> Self {
        match write.call() {
            None => Self::Unasked,
            Some(call) if call.fresh => Self::AtUse,
            Some(call) => Self::Reported(call.statement.signature()),
        }
    }

    /// Returns the types that were reported before, if the statement gives rows.
    pub(crate) fn of_rows(self) -> Option<&'w Signature> {
        match self {
            Self::Reported(types) => Some(types).filter(|types| types.fields.is_some()),
            Self::Unasked | Self::AtUse => None,
        }
    }
}

/// Returns a statement to be parsed in place of one that could not be built without the table: the
/// server then reports what is wrong.
pub(crate) fn probe(write: &Write) -> Cow<'_, str> {
    match write.call() {
        Some(call) => Cow::Borrowed(&*call.statement.parsed().text),
        None => {
            let mut sql = String::from("SELECT 1 FROM ");
            push_table(&mut sql, &write.shape.table);
            Cow::Owned(sql)
        }
    }
}

/// Appends one write: by the prepared statement of this number, or by a statement parsed now.
pub(crate) fn send_one(
    compiled: &Compiled,
    write: &Write,
    statement: Option<u64>,
    Buffers { out, scratch }: Buffers<'_>,
) -> Result<(), Unfit> {
    if statement.is_none() {
        let types = write.call().map(types_of).unwrap_or_default();
        frontend::parse("", &compiled.single, types.iter().copied(), out).map_err(|_| Unfit)?;
    }
    let mut bind = Bind::open(out, statement);
    match (&compiled.form, write.call()) {
        (CompiledForm::Row(row_statement), _) => {
            bind.formats(&Formats::Text)?;
            push_row(&mut bind, (row_statement, compiled), write, scratch)?;
            bind.formats(&Formats::Text)?;
        }
        (CompiledForm::Call(_), Some(call)) => {
            bind.formats(&call.formats)?;
            bind.count(call.statement.parameters().len())?;
            bind.out.put_slice(call.arguments.as_bytes());
            bind.formats(&call.results)?;
        }
        (CompiledForm::Call(_), None) => return Err(Unfit),
    }
    bind.close()
}

/// Appends the values of a row as texts.
fn push_row(
    bind: &mut Bind<'_>,
    (row_statement, compiled): (&RowStatement, &Compiled),
    write: &Write,
    scratch: &mut Vec<u8>,
) -> Result<(), Unfit> {
    let spelled = row_statement.spelled_from();
    let columns = row_statement.columns(&compiled.table);
    let values = columns.zip(write.row());
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
    Ok(())
}

/// Appends one write as its client's own text, if that differs from the statement. Returns true if
/// it does.
pub(crate) fn send_origin(write: &Write, Buffers { out, .. }: Buffers<'_>) -> Result<bool, Unfit> {
    let Some(call) = write.call() else {
        return Ok(false);
    };
    let Some(origin) = &call.origin else {
        return Ok(false);
    };
    let own = origin.own.unwrap_or_default();
    let types = types_of(call);
    let types = types.iter().take(own).copied();
    frontend::parse("", origin.as_str(), types, out).map_err(|_| Unfit)?;
    let mut bind = Bind::open(out, None);
    let formats = (0..own).map(|place| call.formats.is_binary(place));
    bind.formats(&Formats::of(formats))?;
    bind.count(own)?;
    for value in call.arguments.iter().take(own) {
        match value {
            Some(value) => bind.parameter(|out| {
                out.put_slice(value);
                Ok(())
            })?,
            None => bind.out.put_i32(-1),
        }
    }
    bind.formats(&call.results)?;
    bind.close()?;
    Ok(true)
}

/// Appends many writes of a prepared statement. Returns the number of Windrow's own columns in its
/// rows. `distances`: the offset of each write's time from the transaction's start, if the
/// statement takes one.
pub(crate) fn send_set<'w>(
    compiled: &Compiled,
    set: &Fused,
    statement: u64,
    writes: impl ExactSizeIterator<Item = Option<&'w Write>> + Clone,
    distances: &[i64],
    Buffers { out, scratch }: Buffers<'_>,
) -> Result<u8, Unfit> {
    let mut bind = Bind::open(out, Some(statement));
    match &compiled.form {
        CompiledForm::Row(row_statement) => {
            let columns = row_statement.columns(&compiled.table);
            push_columns(&mut bind, columns, set, &writes, distances, scratch)?;
            // The position of a write, and whether it was executed.
            let heads = if set.counted { 0 } else { 2 };
            bind.results(heads, row_statement.result_kinds.iter().map(|_| false))?;
            bind.close()?;
            Ok(heads)
        }
        CompiledForm::Call(bound) => {
            let calls = writes.map(|write| write?.call());
            push_carriers(&mut bind, bound, set, calls, distances)?;
            // The call's position, whether it was executed, and the value that it took from a
            // sequence.
            let heads = match set.counted {
                true => 0,
                false => 2 + u8::from(compiled.generates.is_some()),
            };
            let own = (0..bound.width).map(|place| bound.results.is_binary(usize::from(place)));
            bind.results(heads, own)?;
            bind.close()?;
            Ok(heads)
        }
    }
}

/// Appends the values of many rows as one array for each column.
fn push_columns<'c, 'w>(
    bind: &mut Bind<'_>,
    columns: impl Iterator<Item = &'c Column> + Clone,
    set: &Fused,
    writes: &(impl Iterator<Item = Option<&'w Write>> + Clone),
    distances: &[i64],
    scratch: &mut Vec<u8>,
) -> Result<(), Unfit> {
    let count = columns.clone().count() + usize::from(set.moments);
    bind.count(count)?;
    let is_binary = |column: &Column| column.form != ArrayForm::Literal;
    let formats = columns.clone().map(is_binary);
    for format in formats.chain(set.moments.then_some(true)) {
        bind.out.put_i16(i16::from(format));
    }
    bind.count(count)?;
    for (place, column) in columns.enumerate() {
        let values = writes.clone().filter_map(|write| write?.row().get(place));
        bind.parameter(|out| push_array(column, values, scratch, out))?;
    }
    if set.moments {
        bind.parameter(|out| push_distances(distances, out))?;
    }
    Ok(())
}

/// Appends the values of many calls as one array for each parameter.
fn push_carriers<'w>(
    bind: &mut Bind<'_>,
    bound: &BoundCall,
    set: &Fused,
    calls: impl ExactSizeIterator<Item = Option<&'w SqlCall>>,
    distances: &[i64],
) -> Result<(), Unfit> {
    let (width, count) = (bound.carriers.len(), calls.len());
    // Call by call, parameter by parameter, so that each call's bytes are read once.
    let mut values: Vec<Option<&[u8]>> = Vec::with_capacity(count * width);
    for call in calls {
        values.extend(call.ok_or(Unfit)?.arguments.iter());
    }
    if values.len() != count * width {
        return Err(Unfit);
    }
    bind.all_binary();
    bind.count(width + usize::from(set.moments))?;
    for (place, carrier) in bound.carriers.iter().enumerate() {
        let column = values.iter().skip(place).step_by(width).copied();
        bind.parameter(|out| carrier.push_array(column, out))?;
    }
    if set.moments {
        bind.parameter(|out| push_distances(distances, out))?;
    }
    Ok(())
}

/// A Bind message under construction. Open it, append its parameters, then close it.
pub(crate) struct Bind<'o> {
    pub(crate) out: &'o mut BytesMut,
    start: usize,
}

impl<'o> Bind<'o> {
    /// Begins the message for a prepared statement, or for the unnamed one.
    pub(crate) fn open(out: &'o mut BytesMut, statement: Option<u64>) -> Self {
        let start = out.len();
        out.put_u8(b'B');
        out.put_i32(0);
        out.put_u8(0);
        if let Some(number) = statement {
            out.put_u8(b'w');
            out.put_slice(itoa::Buffer::new().format(number).as_bytes());
        }
        out.put_u8(0);
        Self { out, start }
    }

    pub(crate) fn formats(&mut self, formats: &Formats) -> Result<(), Unfit> {
        match formats {
            Formats::Text => self.out.put_i16(0),
            Formats::Binary => self.all_binary(),
            Formats::Each(each) => {
                self.count(each.len())?;
                for binary in each {
                    self.out.put_i16(i16::from(*binary));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn all_binary(&mut self) {
        self.out.put_i16(1);
        self.out.put_i16(1);
    }

    /// Appends the formats of a set-based statement's rows. Windrow's own columns, `heads` in
    /// number, are binary, and those of the writes are as given. If `heads` is 0, all are text.
    pub(crate) fn results(
        &mut self,
        heads: u8,
        own: impl ExactSizeIterator<Item = bool>,
    ) -> Result<(), Unfit> {
        if heads == 0 {
            self.out.put_i16(0);
            return Ok(());
        }
        self.count(usize::from(heads) + own.len())?;
        for is_binary in (0..heads).map(|_| true).chain(own) {
            self.out.put_i16(i16::from(is_binary));
        }
        Ok(())
    }

    pub(crate) fn count(&mut self, count: usize) -> Result<(), Unfit> {
        self.out.put_u16(u16::try_from(count).map_err(|_| Unfit)?);
        Ok(())
    }

    /// Appends a parameter. Its length is filled in after it is written.
    pub(crate) fn parameter(
        &mut self,
        write: impl FnOnce(&mut BytesMut) -> Result<(), Unfit>,
    ) -> Result<(), Unfit> {
        let at = self.out.len();
        self.out.put_i32(0);
        write(self.out)?;
        put_i32_at(self.out, at, self.out.len() - at - size_of::<i32>())
    }

    /// Ends a message without parameters, whose rows are read as text.
    pub(crate) fn close_bare(self) -> Result<(), Unfit> {
        // No formats, no parameters, no formats of results.
        self.out.put_slice(&[0; 6]);
        self.close()
    }

    /// Ends the message, and appends the Execute of its portal.
    pub(crate) fn close(self) -> Result<(), Unfit> {
        put_i32_at(self.out, self.start + 1, self.out.len() - self.start - 1)?;
        frontend::execute("", 0, self.out).map_err(|_| Unfit)
    }
}
