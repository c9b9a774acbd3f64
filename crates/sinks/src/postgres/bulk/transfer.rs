//! A portion on its way: encoded piece by piece while the server takes it in.

use bytes::{BufMut, BytesMut};
use postgres_protocol::message::frontend;
use windrow_core::load::Fields;
use windrow_core::{Field, Mark, Rows};

use super::heard::{Heard, Step};
use super::layout::{Layout, Target};
use super::marks::push_mark;
use super::message::push_statement;
use super::odd::Odd;
use super::{binary, plain};
use windrow_pgwire::wire::{Answer, Dialogue};

/// Bytes of a piece, unless a single row has more.
const PIECE: usize = 128 * 1024;

/// The most bytes of one message (`PQ_LARGE_MESSAGE_LIMIT` of `src/include/libpq/libpq.h`).
const LONGEST: usize = (1 << 30) - 1024;

/// The form of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    Binary,
    Text,
}

/// What is still to be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begin,
    Rows,
    End,
}

/// One attempt to write a portion.
pub(super) struct Transfer<'a> {
    layout: &'a Layout,
    /// From the stage into the table, if there is one.
    merge: Option<&'a str>,
    mark: Option<&'a Mark>,
    spelling: Spelling,
    fields: Fields<'a>,
    /// Rows that are not encoded yet, and the place of the next one.
    left: usize,
    next: u64,
    stage: Stage,
    scratch: Vec<u8>,
    /// Bytes appended so far.
    said: usize,
    pub(super) steps: Vec<Step>,
    pub(super) heard: Heard,
    /// Why it was broken off.
    pub(super) odd: Option<Odd>,
}

impl<'a> Transfer<'a> {
    pub(super) fn new(
        layout: &'a Layout,
        merge: Option<&'a str>,
        mark: Option<&'a Mark>,
        spelling: Spelling,
        rows: &'a Rows,
    ) -> Self {
        let mut steps = Vec::with_capacity(5);
        steps.extend(merge.map(|_| Step::Stage));
        steps.push(Step::Copy);
        steps.extend(merge.map(|_| Step::Merge));
        steps.extend(mark.map(|_| Step::Mark));
        steps.push(Step::Check);
        Self {
            layout,
            merge,
            mark,
            spelling,
            fields: rows.fields(),
            left: rows.len(),
            next: 0,
            stage: Stage::Begin,
            scratch: Vec::new(),
            said: 0,
            steps,
            heard: Heard::default(),
            odd: None,
        }
    }

    /// Bytes of all that was to be said, once it was.
    pub(super) fn said(&self) -> Option<usize> {
        (self.stage == Stage::End).then_some(self.said)
    }

    fn begin(&mut self, out: &mut BytesMut) {
        if let Some(staged) = &self.layout.staged {
            push_statement(out, &staged.create, &[]);
        }
        match self.spelling {
            Spelling::Text => push_statement(out, &self.layout.copy, &[]),
            Spelling::Binary => {
                let sql = format!("{} (FORMAT binary)", self.layout.copy);
                push_statement(out, &sql, &[]);
                self.piece(out, |_, out| {
                    out.put_slice(binary::HEADER);
                    Ok(())
                });
            }
        }
        self.stage = Stage::Rows;
    }

    /// Appends rows as one message, and the end where none are left.
    fn rows(&mut self, out: &mut BytesMut) {
        // After an error the server passes over all up to the Sync.
        if self.heard.error.is_none() && self.left > 0 {
            self.piece(out, Self::encode);
        }
        if self.odd.is_some() {
            let failed = frontend::copy_fail("a value is not spelled as COPY needs it", out);
            debug_assert!(failed.is_ok(), "no zero byte is in it");
        } else if self.heard.error.is_some() {
            self.left = 0;
        } else if self.left == 0 {
            self.end(out);
        } else {
            return;
        }
        frontend::sync(out);
        self.stage = Stage::End;
    }

    fn end(&mut self, out: &mut BytesMut) {
        if self.spelling == Spelling::Binary {
            self.piece(out, |_, out| {
                out.put_i16(binary::TRAILER);
                Ok(())
            });
        }
        frontend::copy_done(out);
        if let Some(merge) = self.merge {
            push_statement(out, merge, &[]);
        }
        if let Some(mark) = self.mark {
            push_mark(out, mark);
        }
        let Layout {
            check,
            table,
            print,
            ..
        } = self.layout;
        push_statement(out, check, &[table, print]);
    }

    /// One CopyData message; cut off again where it cannot be filled.
    fn piece(
        &mut self,
        out: &mut BytesMut,
        fill: impl FnOnce(&mut Self, &mut BytesMut) -> Result<(), Odd>,
    ) {
        let start = out.len();
        out.put_slice(b"d\0\0\0\0");
        let filled = fill(self, out).and_then(|()| {
            let length = out.len() - start - 1;
            if length > LONGEST {
                return Err(Odd::TooLong);
            }
            let length = u32::try_from(length).map_err(|_| Odd::TooLong)?;
            let place = out.get_mut(start + 1..start + 5).ok_or(Odd::TooLong)?;
            place.copy_from_slice(&length.to_be_bytes());
            Ok(())
        });
        if let Err(odd) = filled {
            out.truncate(start);
            self.odd = Some(odd);
        }
    }

    /// Appends rows, until there are enough of them.
    fn encode(&mut self, out: &mut BytesMut) -> Result<(), Odd> {
        let columns = &self.layout.columns;
        let staged = self.layout.staged.is_some();
        let count = columns.len() + usize::from(staged);
        let count = i16::try_from(count).map_err(|_| Odd::TooLong)?;
        let start = out.len();
        while self.left > 0 && out.len() - start < PIECE {
            self.left -= 1;
            let place = staged.then_some(self.next);
            self.next += 1;
            let fields = &mut self.fields;
            match self.spelling {
                Spelling::Binary => {
                    out.put_i16(count);
                    row_in_binary(columns, place, fields, out, &mut self.scratch)?;
                }
                Spelling::Text => row_in_text(columns, place, fields, out, &mut self.scratch)?,
            }
        }
        Ok(())
    }
}

fn row_in_binary(
    columns: &[Target],
    place: Option<u64>,
    fields: &mut Fields<'_>,
    out: &mut BytesMut,
    scratch: &mut Vec<u8>,
) -> Result<(), Odd> {
    if let Some(place) = place {
        out.put_i32(8);
        out.put_u64(place);
    }
    for column in columns {
        let form = column.form.ok_or(Odd::Spelling)?;
        let field = fields.next().unwrap_or(Field::Null);
        binary::push(form, &field, out, scratch)?;
    }
    Ok(())
}

fn row_in_text(
    columns: &[Target],
    place: Option<u64>,
    fields: &mut Fields<'_>,
    out: &mut BytesMut,
    scratch: &mut Vec<u8>,
) -> Result<(), Odd> {
    if let Some(place) = place {
        out.put_slice(itoa::Buffer::new().format(place).as_bytes());
        out.put_u8(plain::DELIMITER);
    }
    for (number, column) in columns.iter().enumerate() {
        if number > 0 {
            out.put_u8(plain::DELIMITER);
        }
        let field = fields.next().unwrap_or(Field::Null);
        plain::push(&column.kind, &field, out, scratch)?;
    }
    out.put_u8(plain::END);
    Ok(())
}

impl Dialogue for Transfer<'_> {
    fn more(&mut self, out: &mut BytesMut) -> bool {
        let before = out.len();
        match self.stage {
            Stage::Begin => {
                self.begin(out);
                self.rows(out);
            }
            Stage::Rows => self.rows(out),
            Stage::End => {}
        }
        self.said += out.len() - before;
        self.stage != Stage::End
    }

    fn hear(&mut self, answer: Answer<'_>) {
        self.heard.hear(answer);
    }
}
