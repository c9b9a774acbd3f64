//! The rows of a portion as COPY's data, piece by piece.

use bytes::{BufMut, BytesMut};
use windrow_core::load::Fields;
use windrow_core::{Field, Rows};

use super::data::Data;
use super::misspelled::Misspelled;
use super::target::Target;
use super::{binary, plain};

/// Maximum number of bytes of a piece, unless a single row has more.
const PIECE: usize = 128 * 1024;

/// Maximum number of bytes of one message (`PQ_LARGE_MESSAGE_LIMIT` of
/// `src/include/libpq/libpq.h`).
const MAX_MESSAGE_BYTES: usize = (1 << 30) - 1024;

/// One row of this many may be left out because the encoder of the binary form does not know its
/// spelling. If there are more, the file uses that spelling on purpose, and the server has to read
/// it.
const ODD_ONES: usize = 20;

/// The form of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    Binary,
    Text,
}

/// The part of a portion that is sent, and its form.
#[derive(Clone, Copy)]
pub(super) struct Choice<'a> {
    pub(super) targets: &'a [Target],
    /// True for each target that is sent; `None` if all are.
    pub(super) only: Option<&'a [bool]>,
    /// True if the row's place in the portion goes before its fields.
    pub(super) placed: bool,
    pub(super) spelling: Spelling,
    /// Rows that are left out, by their places in order.
    pub(super) without: &'a [usize],
    /// True if rows that a column would not take are left out, instead of breaking off the stream.
    pub(super) leaves_out: bool,
}

impl Choice<'_> {
    /// Returns true if the column at this place is sent.
    #[inline]
    fn sends(&self, at: usize) -> bool {
        self.only.is_none_or(|only| only.get(at) == Some(&true))
    }

    /// Returns the number of fields that are sent for each row, including its place.
    fn count(&self) -> usize {
        let columns = (0..self.targets.len()).filter(|at| self.sends(*at));
        columns.count() + usize::from(self.placed)
    }
}

/// A portion's rows, encoded one after the other.
pub(super) struct Stream<'a> {
    choice: Choice<'a>,
    fields: Fields<'a>,
    rows: usize,
    /// Number of fields that are sent for each row.
    count: usize,
    /// The place of the next row.
    next: usize,
    scratch: Vec<u8>,
    /// The rows that were left out so far.
    left: Vec<usize>,
    /// Number of rows that were left out because of the encoder's own guess.
    odd_ones: usize,
    /// The reason why the stream was broken off, if it was.
    misspelled: Option<Misspelled>,
}

impl<'a> Stream<'a> {
    pub(super) fn new(choice: Choice<'a>, rows: &'a Rows) -> Self {
        Self {
            choice,
            fields: rows.fields(),
            rows: rows.len(),
            count: choice.count(),
            next: 0,
            scratch: Vec::new(),
            left: Vec::new(),
            odd_ones: 0,
            misspelled: None,
        }
    }

    /// Appends one CopyData message, and removes it again if it cannot be filled.
    fn message(
        &mut self,
        out: &mut BytesMut,
        fill: impl FnOnce(&mut Self, &mut BytesMut) -> Result<(), Misspelled>,
    ) {
        let start = out.len();
        out.put_slice(b"d\0\0\0\0");
        let filled = fill(self, out).and_then(|()| {
            let length = out.len() - start - 1;
            if length > MAX_MESSAGE_BYTES {
                return Err(Misspelled::TooLong);
            }
            let length = u32::try_from(length).map_err(|_| Misspelled::TooLong)?;
            let place = out
                .get_mut(start + 1..start + 5)
                .ok_or(Misspelled::TooLong)?;
            place.copy_from_slice(&length.to_be_bytes());
            Ok(())
        });
        if let Err(misspelled) = filled {
            out.truncate(start);
            self.misspelled = Some(misspelled);
        }
    }

    /// Appends rows, until there are enough of them.
    fn encode(&mut self, out: &mut BytesMut) -> Result<(), Misspelled> {
        let start = out.len();
        while self.has_more() && out.len() - start < PIECE {
            let place = self.next;
            self.next += 1;
            let known = self.choice.without.get(self.left.len() - self.odd_ones);
            if known == Some(&place) {
                self.pass(self.choice.targets.len());
                self.left.push(place);
                continue;
            }
            let row = out.len();
            match self.row(place, out) {
                Ok(()) => {}
                Err(misspelled) if self.leaves_out(&misspelled) => {
                    out.truncate(row);
                    self.left.push(place);
                    self.odd_ones += 1;
                }
                Err(misspelled) => return Err(misspelled),
            }
        }
        Ok(())
    }

    fn leaves_out(&self, misspelled: &Misspelled) -> bool {
        self.choice.leaves_out
            && *misspelled != Misspelled::TooLong
            && self.odd_ones <= self.rows / ODD_ONES
    }

    fn pass(&mut self, fields: usize) {
        for _ in 0..fields {
            self.fields.next();
        }
    }

    fn row(&mut self, place: usize, out: &mut BytesMut) -> Result<(), Misspelled> {
        let choice = self.choice;
        let mut row = Row {
            spelling: choice.spelling,
            scratch: &mut self.scratch,
            begun: false,
            out,
        };
        let mut done = row.begin(self.count);
        if choice.placed && done.is_ok() {
            row.place(place as u64);
        }
        // All fields of a row are consumed, even if the row is not sent.
        for (at, target) in choice.targets.iter().enumerate() {
            let field = self.fields.next().unwrap_or(Field::Null);
            if done.is_ok() && choice.sends(at) {
                done = match &field {
                    field if !target.keeps(field) => Err(Misspelled::Misfit),
                    field if choice.leaves_out && !target.takes(field) => Err(Misspelled::Spelling),
                    field => row.field(target, field),
                };
            }
        }
        done.map(|()| row.end())
    }
}

impl Data for Stream<'_> {
    fn options(&self) -> String {
        match self.choice.spelling {
            Spelling::Binary => " (FORMAT binary)".to_owned(),
            Spelling::Text => String::new(),
        }
    }

    fn has_more(&self) -> bool {
        self.next < self.rows
    }

    fn sent(&self) -> usize {
        self.next - self.left.len()
    }

    fn stop(&mut self) {
        self.next = self.rows;
    }

    fn head(&mut self, out: &mut BytesMut) {
        if self.choice.spelling == Spelling::Binary {
            self.message(out, |_, out| {
                out.put_slice(binary::HEADER);
                Ok(())
            });
        }
    }

    fn piece(&mut self, out: &mut BytesMut) {
        self.message(out, Self::encode);
    }

    fn tail(&mut self, out: &mut BytesMut) {
        if self.choice.spelling == Spelling::Binary {
            self.message(out, |_, out| {
                out.put_i16(binary::TRAILER);
                Ok(())
            });
        }
    }

    fn misspelled(&self) -> Option<&Misspelled> {
        self.misspelled.as_ref()
    }

    fn left(&self) -> &[usize] {
        &self.left
    }
}

/// A row that is being encoded.
struct Row<'o> {
    spelling: Spelling,
    scratch: &'o mut Vec<u8>,
    /// True if a field was appended already.
    begun: bool,
    out: &'o mut BytesMut,
}

impl Row<'_> {
    fn begin(&mut self, fields: usize) -> Result<(), Misspelled> {
        if self.spelling == Spelling::Binary {
            let fields = i16::try_from(fields).map_err(|_| Misspelled::TooLong)?;
            self.out.put_i16(fields);
        }
        Ok(())
    }

    fn place(&mut self, place: u64) {
        match self.spelling {
            Spelling::Binary => {
                self.out.put_i32(8);
                self.out.put_u64(place);
            }
            Spelling::Text => {
                let mut digits = itoa::Buffer::new();
                self.out.put_slice(digits.format(place).as_bytes());
            }
        }
        self.begun = true;
    }

    #[inline]
    fn field(&mut self, target: &Target, field: &Field<'_>) -> Result<(), Misspelled> {
        match self.spelling {
            Spelling::Binary => {
                let form = target.form.ok_or(Misspelled::Spelling)?;
                binary::push(form, field, self.out, self.scratch)
            }
            Spelling::Text => {
                if std::mem::replace(&mut self.begun, true) {
                    self.out.put_u8(plain::DELIMITER);
                }
                plain::push(&target.kind, field, self.out, self.scratch)
            }
        }
    }

    fn end(self) {
        if self.spelling == Spelling::Text {
            self.out.put_u8(plain::END);
        }
    }
}
