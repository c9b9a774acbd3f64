//! SQL calls: their raw values as they came, or as one array a parameter.

use bytes::{BufMut, BytesMut};
use postgres_protocol::message::frontend;
use windrow_core::statement::Formats;

use super::{Sender, Sent};
use crate::calls::{BoundCall, Check, types_of};
use crate::catalog::column::oid;
use crate::catalog::table::Print;
use crate::ladder::batch::Placed;
use crate::ladder::form::Compiled;
use crate::ladder::prepared::StatementKey;
use crate::ladder::segment::Segment;
use crate::values::encode::{Unfit, put_i32_at};

/// A Bind message that is open: `put` its parts, then `close` it.
struct Bind<'o> {
    out: &'o mut BytesMut,
    start: usize,
}

impl<'o> Bind<'o> {
    /// Of a prepared statement, or of the unnamed one.
    fn open(out: &'o mut BytesMut, statement: Option<u64>) -> Self {
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

    fn formats(&mut self, formats: &Formats) -> Result<(), Unfit> {
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

    fn all_binary(&mut self) {
        self.out.put_i16(1);
        self.out.put_i16(1);
    }

    fn count(&mut self, count: usize) -> Result<(), Unfit> {
        self.out.put_u16(u16::try_from(count).map_err(|_| Unfit)?);
        Ok(())
    }

    /// A parameter whose length is known when it is written.
    fn parameter(
        &mut self,
        write: impl FnOnce(&mut BytesMut) -> Result<(), Unfit>,
    ) -> Result<(), Unfit> {
        let at = self.out.len();
        self.out.put_i32(0);
        write(self.out)?;
        put_i32_at(self.out, at, self.out.len() - at - size_of::<i32>())
    }

    /// Ends it, and executes the portal.
    fn close(self) -> Result<(), Unfit> {
        put_i32_at(self.out, self.start + 1, self.out.len() - self.start - 1)?;
        frontend::execute("", 0, self.out).map_err(|_| Unfit)
    }
}

impl Sender<'_, '_> {
    /// A simple query in its client's own text, where one failed that was lifted out of it: so
    /// errors point into it.
    pub(super) fn send_query(
        &mut self,
        segment: &Segment,
    ) -> Option<Result<(Vec<Sent>, bool), Unfit>> {
        let [unit] = segment.units.as_slice() else {
            return None;
        };
        let origin = self.batch.origin(*unit)?;
        if !self.batch.goes_by_text(segment) {
            return None;
        }
        let item = u32::try_from(self.batch.writes_of(*unit).start).ok()?;
        let sent = frontend::query(origin, self.out).map_err(|_| Unfit);
        Some(sent.map(|()| (vec![Sent::Single(item)], false)))
    }

    pub(super) fn send_call(
        &mut self,
        compiled: &Compiled,
        bound: &BoundCall,
        placed: &Placed,
        fresh: bool,
    ) -> Result<(), Unfit> {
        let call = self.batch.call(placed).ok_or(Unfit)?;
        let ready = self
            .prepared
            .ready(StatementKey::Single(compiled.single_id));
        let statement = ready.filter(|_| !fresh);
        if statement.is_none() {
            let types = types_of(call).iter().copied();
            frontend::parse("", &compiled.single, types, self.out).map_err(|_| Unfit)?;
        }
        let mut bind = Bind::open(self.out, statement);
        bind.formats(&call.formats)?;
        bind.count(bound.statement().parameters().len())?;
        bind.out.put_slice(call.arguments.as_bytes());
        bind.formats(&call.results)?;
        bind.close()
    }

    /// The statement of many calls. `heads`: how many columns of its rows are ours.
    pub(super) fn send_calls(
        &mut self,
        bound: &BoundCall,
        number: u64,
        items: &[u32],
        heads: u8,
    ) -> Result<(), Unfit> {
        let width = bound.carriers.len();
        // Call by call, parameter by parameter: each call's bytes are walked once.
        let mut values: Vec<Option<&[u8]>> = Vec::with_capacity(items.len() * width);
        for item in items {
            let placed = self.batch.placed.get(*item as usize).ok_or(Unfit)?;
            values.extend(self.batch.call(placed).ok_or(Unfit)?.arguments.iter());
        }
        if values.len() != items.len() * width {
            return Err(Unfit);
        }
        let mut bind = Bind::open(self.out, Some(number));
        bind.all_binary();
        bind.count(width)?;
        for (place, carrier) in bound.carriers.iter().enumerate() {
            let column = values.iter().skip(place).step_by(width).copied();
            bind.parameter(|out| carrier.push_array(column, out))?;
        }
        bind.results(bound, heads)?;
        bind.close()
    }

    /// What the call before took from a sequence; false: it cannot be asked.
    pub(super) fn send_lastval(&mut self) -> Result<bool, Unfit> {
        let Some(number) = self.prepared.ready(StatementKey::Lastval) else {
            return Ok(false);
        };
        let mut bind = Bind::open(self.out, Some(number));
        bind.out.put_i16(0);
        bind.out.put_i16(0);
        bind.all_binary();
        bind.close()?;
        Ok(true)
    }

    pub(super) fn send_check(
        &mut self,
        check: Check,
        number: u64,
        print: &Print,
    ) -> Result<(), Unfit> {
        let mut bind = Bind::open(self.out, Some(number));
        bind.all_binary();
        bind.count(5 + check.lists(print).count())?;
        bind.parameter(|out| match &*print.oids {
            [oid] => {
                out.put_u32(*oid);
                Ok(())
            }
            oids => push_oids(oids, out),
        })?;
        bind.parameter(|out| {
            for (number, piece) in check.expected(print).enumerate() {
                if number > 0 {
                    out.put_u8(b' ');
                }
                out.put_slice(piece.as_bytes());
            }
            Ok(())
        })?;
        bind.parameter(|out| {
            out.put_slice(print.spelling.as_bytes());
            Ok(())
        })?;
        for text in [&print.written, &print.file] {
            bind.parameter(|out| {
                out.put_slice(text.as_bytes());
                Ok(())
            })?;
        }
        for oids in check.lists(print) {
            bind.parameter(|out| push_oids(oids, out))?;
        }
        bind.out.put_i16(0);
        bind.close()
    }
}

fn push_oids(oids: &[u32], out: &mut BytesMut) -> Result<(), Unfit> {
    out.put_i32(1);
    out.put_i32(0);
    out.put_u32(oid::OID);
    out.put_i32(i32::try_from(oids.len()).map_err(|_| Unfit)?);
    out.put_i32(1);
    for number in oids {
        out.put_i32(4);
        out.put_u32(*number);
    }
    Ok(())
}

impl Bind<'_> {
    /// Our own columns are binary, the client's as it asked for them.
    fn results(&mut self, bound: &BoundCall, heads: u8) -> Result<(), Unfit> {
        if heads == 0 {
            self.out.put_i16(0);
            return Ok(());
        }
        self.count(usize::from(heads) + usize::from(bound.width))?;
        for _ in 0..heads {
            self.out.put_i16(1);
        }
        for place in 0..usize::from(bound.width) {
            self.out.put_i16(i16::from(bound.result_is_binary(place)));
        }
        Ok(())
    }
}
