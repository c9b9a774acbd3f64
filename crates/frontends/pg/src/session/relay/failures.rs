//! Failures of messages that define or use a statement: updates the session's statements as the
//! server does.

use windrow_core::Fault;

use super::ends::Ends;
use super::expect::{Expect, PreparedAs, Undo, What};
use super::rewrite;
use super::statements::StatementsHere;
use crate::statements::ClientName;

impl StatementsHere {
    /// Refuses the message at the front of the inbox.
    pub(super) fn refuse(&mut self, ends: &mut Ends<'_>, tag: u8, total: usize, fault: Fault) {
        let is_unnamed = ends.session.connection.body(0, total).first() == Some(&0);
        ends.session.connection.take(total);
        match tag {
            b'P' | b'B' | b'D' | b'E' | b'C' => {
                ends.is_open = true;
                match tag == b'P' && is_unnamed {
                    true => self.fail_unnamed(ends, fault),
                    false => ends.fail(fault),
                }
            }
            _ => self.fail_query(ends, fault),
        }
    }

    /// Answers a simple query with an error. The transaction fails as well, and the unnamed
    /// statement is removed as by any query.
    pub(super) fn fail_query(&mut self, ends: &mut Ends<'_>, fault: Fault) {
        self.remove_unnamed(ends);
        ends.is_open = false;
        rewrite::query(ends.out(), b"windrow fails");
        let cached = ends.session.simple_query(b"").cached;
        let what = What::Query(cached, Some(Box::new(fault)));
        ends.queue.push(what, false);
    }

    /// Sends a Parse of the unnamed statement that fails with this error. Like any such Parse, it
    /// removes the existing unnamed statement.
    pub(super) fn fail_unnamed(&mut self, ends: &mut Ends<'_>, fault: Fault) {
        let undo = Undo {
            name: ClientName::new(),
            before: ends.session.statements.set(b"", None),
        };
        self.is_unnamed_new = true;
        rewrite::parse(ends.out(), b"", b"windrow fails", &[]);
        let parse = What::Parse(PreparedAs::Unnamed, Some(undo));
        ends.queue.push(parse, false);
        ends.queue.note_fault(fault);
    }

    /// Handles an error: the server skips the rest of the segment.
    pub(super) fn pass_over(&mut self, ends: &mut Ends<'_>) {
        let front = ends.queue.front().map(|expect| &expect.what);
        let simple = front.map(|what| matches!(what, What::Query(..) | What::Function));
        // The server removes the unnamed statement before it reads the text of another one.
        let removes = matches!(front, Some(What::Parse(PreparedAs::Unnamed, Some(_))));
        if simple == Some(false) {
            for passed_over in ends.queue.skip_to_sync() {
                self.undo(ends, passed_over);
            }
        }
        if removes {
            let undo = Undo {
                name: ClientName::new(),
                before: None,
            };
            self.set_back(ends, undo);
        }
    }

    /// Reverts the effect on the session of a message that the server has skipped, or that failed.
    fn undo(&mut self, ends: &mut Ends<'_>, expect: Expect) {
        let undo = match expect.what {
            What::Parse(place, undo) => {
                match place {
                    PreparedAs::Named(key) => ends.loan.names.remove(key),
                    PreparedAs::Unnamed => ends.loan.names.unnamed = None,
                    PreparedAs::Passing => {}
                }
                undo
            }
            What::Close(undo) | What::LocalAnswer(_, undo) => undo,
            _ => None,
        };
        if let Some(undo) = undo {
            self.set_back(ends, undo);
        }
    }

    fn set_back(&mut self, ends: &mut Ends<'_>, undo: Undo) {
        if let Some(Undo { name, before }) = ends.queue.undo_under_later(undo) {
            if name.is_empty() {
                self.unfixed = None;
            }
            ends.session.statements.set(&name, before);
        }
    }
}
