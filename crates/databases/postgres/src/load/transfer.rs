//! Sends a portion, encoded piece by piece while the server reads it.

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use windrow_core::{Claim, OnConflict};

use super::answers::{Answers, Step};
use super::data::{Data, push_break};
use super::layout::Layout;
use super::marks::{push_hold, push_marks};
use super::message::push_statement;
use windrow_pgwire::wire::{Answer, Dialogue};

/// A statement that fails, so that its transaction is rolled back.
const TAKE_BACK: &str = "SELECT 1 / 0";

/// The next part of a portion to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begin,
    Rows,
    /// All rows were sent, and the number written is not known yet.
    Count,
    End,
}

/// One attempt to write a portion.
pub(super) struct Transfer<'a, D> {
    layout: &'a Layout,
    /// The statement that moves rows from the stage into the table, if there is a stage.
    merge: Option<&'a str>,
    /// The claim to marks for the rows that are written.
    claim: Option<&'a Claim<'a>>,
    pub(super) data: D,
    stage: Stage,
    /// The statement that must have written every row.
    counted: Option<Step>,
    /// True if the counted statement wrote too few rows, so that all are rolled back.
    pub(super) dropped: bool,
    /// Number of bytes appended so far.
    said: usize,
    pub(super) steps: Vec<Step>,
    pub(super) answers: Answers,
}

impl<'a, D: Data> Transfer<'a, D> {
    /// Makes an attempt. `merge`: the statement that moves rows from the stage into the table, if
    /// there is a stage.
    pub(super) fn new(
        layout: &'a Layout,
        merge: Option<&'a str>,
        claim: Option<&'a Claim<'a>>,
        data: D,
    ) -> Self {
        let counted = match &layout.staged {
            _ if !layout.drops => None,
            None => Some(Step::Copy),
            Some(staged) => (staged.on_conflict == OnConflict::Update).then_some(Step::Merge),
        };
        let mut steps = Vec::with_capacity(6);
        steps.extend(claim.map(|_| Step::Hold));
        steps.extend(merge.map(|_| Step::Stage));
        steps.push(Step::Copy);
        steps.extend(merge.map(|_| Step::Merge));
        steps.extend(claim.map(|_| Step::Mark));
        steps.push(Step::Check);
        Self {
            layout,
            merge,
            claim,
            data,
            stage: Stage::Begin,
            counted,
            dropped: false,
            said: 0,
            steps,
            answers: Answers::default(),
        }
    }

    /// Returns the number of bytes of the whole portion, once all were appended.
    pub(super) fn said(&self) -> Option<usize> {
        (self.stage == Stage::End).then_some(self.said)
    }

    fn begin(&mut self, out: &mut BytesMut) {
        if let Some(claim) = self.claim {
            push_hold(out, &claim.mark.load);
        }
        if let Some(staged) = &self.layout.staged {
            push_statement(out, &staged.create, &[]);
        }
        let sql = format!("{}{}", self.layout.copy, self.data.options());
        push_statement(out, &sql, &[]);
        self.data.head(out);
        self.stage = Stage::Rows;
    }

    /// Appends rows as one message, and the end of the portion if no rows are left.
    fn rows(&mut self, out: &mut BytesMut) {
        // After an error the server skips everything up to the Sync.
        if self.answers.error.is_none() && self.data.has_more() {
            self.data.piece(out);
        }
        if self.data.misspelled().is_some() {
            push_break(out);
        } else if self.answers.error.is_some() {
            self.data.stop();
        } else if self.data.has_more() {
            return;
        } else {
            self.end(out);
            if self.counted.is_some() {
                frontend::flush(out);
                self.stage = Stage::Count;
                return;
            }
            self.seal(out);
        }
        frontend::sync(out);
        self.stage = Stage::End;
    }

    fn end(&mut self, out: &mut BytesMut) {
        self.data.tail(out);
        frontend::copy_done(out);
        if let Some(merge) = self.merge {
            push_statement(out, merge, &[]);
        }
    }

    /// Returns the row count of the counted statement, once it has ended.
    fn written(&self) -> Option<u64> {
        self.answers.rows(&self.steps, self.counted?)
    }

    /// Goes on if all rows were written. Otherwise makes the server roll them back.
    fn count(&mut self, out: &mut BytesMut) {
        match self.written() {
            Some(written) if written < self.data.sent() as u64 => {
                self.dropped = true;
                push_statement(out, TAKE_BACK, &[]);
            }
            Some(_) => self.seal(out),
            // The statement has failed.
            None => {}
        }
        frontend::sync(out);
        self.stage = Stage::End;
    }

    /// Appends the marks and the check, which precede the commit.
    fn seal(&self, out: &mut BytesMut) {
        if let Some(claim) = self.claim {
            push_marks(out, &claim.mark.load, &claim.spans(self.data.left()));
        }
        let Layout {
            check,
            table,
            print,
            ..
        } = self.layout;
        push_statement(out, check, &[table, print]);
    }
}

impl<D: Data> Dialogue for Transfer<'_, D> {
    fn more(&mut self, out: &mut BytesMut) -> bool {
        let before = out.len();
        match self.stage {
            Stage::Begin => {
                self.begin(out);
                self.rows(out);
            }
            Stage::Rows => self.rows(out),
            Stage::Count => self.count(out),
            Stage::End => {}
        }
        self.said += out.len() - before;
        self.stage != Stage::End
    }

    fn waits(&self) -> bool {
        self.stage == Stage::Count && self.answers.error.is_none() && self.written().is_none()
    }

    fn receive(&mut self, answer: Answer<'_>) {
        self.answers.take(answer);
    }
}
