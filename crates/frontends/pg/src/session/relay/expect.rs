//! The answers expected from the server, in order.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use windrow_core::Fault;

use super::renames::Renames;
use super::unconfirmed::Unconfirmed;
use crate::pool::StatementKey;
use crate::statements::{CachedStatement, ClientName, FixedTypes, PreparedStatement};

/// A message that was sent to the server, or an answer that stands for one.
#[derive(Debug)]
pub(super) struct Expect {
    pub(super) what: What,
    /// True if the client does not get the answer.
    pub(super) muted: bool,
    /// The statement that was answered early, before the server's answer.
    pub(super) early: Option<Answered>,
    /// True if the message rolls back the transaction, or a part of it.
    pub(super) undoes: bool,
    /// An error to replace the server's.
    pub(super) fault: Option<Box<Fault>>,
    /// The names in its text that replace the session's.
    pub(super) renames: Option<Box<Renames>>,
    /// The statement that an Execute runs, if it is known.
    pub(super) runs: Option<Arc<CachedStatement>>,
}

/// The subject of an early answer, for the error if it was wrong.
#[derive(Clone)]
pub(super) enum Answered {
    /// A statement of the extended protocol.
    Statement(Arc<CachedStatement>),
    /// A statement of the extended protocol with the types of its parameters that were reported:
    /// the body of ParameterDescription.
    Types(Arc<CachedStatement>, Bytes),
    /// A simple query, and the beginning of its text.
    Query(Arc<CachedStatement>, Box<[u8]>),
    /// The end of a segment.
    Sync,
}

impl Answered {
    /// Returns the text of the statement.
    pub(super) fn text(&self) -> &[u8] {
        match self {
            Self::Statement(cached) | Self::Types(cached, _) => &cached.text,
            Self::Query(_, text) => text,
            Self::Sync => &[],
        }
    }

    /// Returns the statement.
    pub(super) fn cached(&self) -> Option<&Arc<CachedStatement>> {
        match self {
            Self::Statement(cached) | Self::Types(cached, _) | Self::Query(cached, _) => {
                Some(cached)
            }
            Self::Sync => None,
        }
    }
}

impl std::fmt::Debug for Answered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answered")
    }
}

/// A message that was sent, by the kind of answers that it gets.
pub(super) enum What {
    /// Parse: the place of the statement, and the session's state before.
    Parse(PreparedAs, Option<Undo>),
    /// Bind: the client's name for the statement, if it has another name here.
    Bind(Option<ClientName>),
    DescribeStatement,
    DescribePortal,
    /// A question of Windrow's own: the types of a statement.
    Types(FixedTypes),
    /// Execute, with the statement if that changes a setting.
    Execute(Option<Arc<CachedStatement>>),
    Close(Option<Undo>),
    /// Execute of a statement that begins a block, which was answered already.
    Opens,
    /// A text of Windrow's own that leaves a failed transaction.
    FailsBlock,
    /// An answer of Windrow's own.
    LocalAnswer(Bytes, Option<Undo>),
    /// A message that must fail, with this error instead of the server's.
    Fails(Option<Box<Fault>>),
    /// CopyDone or CopyFail. It has no answer of its own.
    CopyEnd,
    Sync,
    /// A question of Windrow's own: whether the session listens to a channel.
    Channels,
    /// A question of Windrow's own, with its Sync: the values taken from sequences.
    Values,
    /// A simple query, and the error with which it must fail.
    Query(Arc<CachedStatement>, Option<Box<Fault>>),
    Function,
}

impl What {
    /// Returns true if the message changes the set of prepared statements.
    fn changes(&self) -> bool {
        matches!(
            self,
            Self::Parse(..) | Self::Close(Some(_)) | Self::LocalAnswer(_, Some(_))
        )
    }

    /// Returns the state of the statement before this message, if it changes one.
    fn undo(&mut self) -> Option<&mut Undo> {
        match self {
            Self::Parse(_, undo) | Self::Close(undo) | Self::LocalAnswer(_, undo) => undo.as_mut(),
            _ => None,
        }
    }

    /// Returns true if the message belongs to a block's beginning, before the first statement of
    /// its client.
    fn begins(&self) -> bool {
        matches!(self, Self::Opens | Self::FailsBlock)
    }

    /// Returns true if the message may remove all statements.
    fn clears(&self) -> bool {
        match self {
            Self::Execute(Some(cached)) | Self::Query(cached, _) => cached.clears(),
            _ => false,
        }
    }
}

impl std::fmt::Debug for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Parse(..) => "Parse",
            Self::Bind(_) => "Bind",
            Self::DescribeStatement => "DescribeStatement",
            Self::DescribePortal => "DescribePortal",
            Self::Types(_) => "Types",
            Self::Execute(_) => "Execute",
            Self::Close(_) => "Close",
            Self::Opens => "Opens",
            Self::FailsBlock => "FailsBlock",
            Self::LocalAnswer(..) => "LocalAnswer",
            Self::Fails(_) => "Fails",
            Self::CopyEnd => "CopyEnd",
            Self::Sync => "Sync",
            Self::Channels => "Channels",
            Self::Values => "Values",
            Self::Query(..) => "Query",
            Self::Function => "Function",
        })
    }
}

/// The place of a statement that is prepared on the server connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PreparedAs {
    /// Under a name of the process.
    Named(StatementKey),
    /// As the unnamed statement.
    Unnamed,
    /// Under the name for a single use.
    Passing,
}

/// A statement of the session before a message that the server may skip.
pub(super) struct Undo {
    pub(super) name: ClientName,
    pub(super) before: Option<PreparedStatement>,
}

/// The expected answers, in order.
#[derive(Debug, Default)]
pub(super) struct Queue {
    expected: VecDeque<Expect>,
    /// Number of messages whose answers the client gets.
    awaited: usize,
    /// Number of messages whose answers the client got early.
    early: usize,
    /// True if the server skips everything up to a Sync that was not sent yet.
    pub(super) skipping: bool,
    /// True if the server expects COPY data, and the client has not ended it yet.
    pub(super) copying: bool,
    /// True if the client has got an error that ends its connection.
    passed_fatal: bool,
    /// The number of messages that change the set of prepared statements, unless the server skips
    /// them: in segments that have ended, and in the current one.
    unsettled: usize,
    unsettled_here: usize,
    /// Number of Executes that may remove all statements.
    clearing: usize,
    /// Number of statements that open a block, and of texts that leave a failed one.
    beginning: usize,
    /// The statements that may be committed without confirmation.
    pub(super) unconfirmed: Unconfirmed,
}

impl Queue {
    pub(super) fn push(&mut self, what: What, muted: bool) {
        self.clearing += usize::from(what.clears());
        self.beginning += usize::from(what.begins());
        match &what {
            What::Sync | What::Query(..) | What::Function => {
                self.unsettled += std::mem::take(&mut self.unsettled_here);
                self.unconfirmed.end_cycle();
            }
            what if what.changes() => self.unsettled_here += 1,
            _ => {}
        }
        self.awaited += usize::from(!muted);
        self.expected.push_back(Expect {
            what,
            muted,
            early: None,
            undoes: false,
            fault: None,
            renames: None,
            runs: None,
        });
    }

    /// Returns true while the set of prepared statements is uncertain: the server may skip a part
    /// of a segment that has ended, or is about to remove all statements.
    pub(super) fn is_unsettled(&self) -> bool {
        self.unsettled > 0 || self.clearing > 0
    }

    /// Reverts a change of a statement below later changes: the later state stays, and returns to
    /// `undo` if it is reverted itself. Returns `undo` if there are no later changes.
    pub(super) fn undo_under_later(&mut self, undo: Undo) -> Option<Undo> {
        for expect in &mut self.expected {
            if let Some(later) = expect.what.undo().filter(|later| later.name == undo.name) {
                later.before = undo.before;
                return None;
            }
            // The server removes the unnamed statement with any simple query.
            if undo.name.is_empty() && matches!(expect.what, What::Query(..)) {
                return None;
            }
        }
        Some(undo)
    }

    /// Notes that the last message sent rolls back the transaction, or a part of it.
    pub(super) fn note_undoing(&mut self) {
        if let Some(last) = self.expected.back_mut() {
            last.undoes = true;
        }
    }

    /// Notes the names that replace the session's in the last message sent.
    pub(super) fn note_renames(&mut self, renames: Box<Renames>) {
        if let Some(last) = self.expected.back_mut() {
            self.clearing += usize::from(renames.removes);
            last.renames = Some(renames);
        }
    }

    /// Notes the statement that the last Execute sent runs.
    pub(super) fn note_running(&mut self, cached: Option<Arc<CachedStatement>>) {
        if let Some(last) = self.expected.back_mut() {
            last.runs = cached;
        }
    }

    /// Notes the error that replaces the server's if the last message sent fails.
    pub(super) fn note_fault(&mut self, fault: Fault) {
        if let Some(last) = self.expected.back_mut() {
            last.fault = Some(Box::new(fault));
        }
    }

    /// Returns true if the client has all answers that it gets.
    pub(super) fn is_answered(&self) -> bool {
        self.awaited == 0 && !self.skipping && !self.copying
    }

    /// Returns true if the client waits for answers.
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited > 0
    }

    /// Returns true while the server has not begun a block whose beginning was sent.
    pub(super) fn is_beginning(&self) -> bool {
        self.beginning > 0
    }

    /// Returns the number of statements of a block's beginning that the server has not executed.
    pub(super) fn beginning(&self) -> usize {
        self.beginning
    }

    /// Returns true if the last message sent ends a cycle by itself, as all but Sync do.
    pub(super) fn ends_with_query(&self) -> bool {
        let last = self.expected.back().map(|expect| &expect.what);
        matches!(last, Some(What::Query(..) | What::Function))
    }

    /// Notes that the client got the answers to all messages after the first `before`. Returns
    /// false if it gets some of them from the server.
    pub(super) fn answer_early(&mut self, before: usize, about: &Answered) -> bool {
        if self.awaited > 0 {
            return false;
        }
        for expect in self.expected.iter_mut().skip(before) {
            self.early += usize::from(expect.early.is_none());
            expect.early = Some(about.clone());
        }
        true
    }

    /// Returns true if the client got an answer that the server has not sent yet.
    pub(super) fn has_early(&self) -> bool {
        self.early > 0
    }

    fn settle(&mut self, expect: &Expect) {
        self.awaited -= usize::from(!expect.muted);
        self.early -= usize::from(expect.early.is_some());
        let removes = expect
            .renames
            .as_ref()
            .is_some_and(|renames| renames.removes);
        self.clearing -= usize::from(expect.what.clears()) + usize::from(removes);
        self.beginning -= usize::from(expect.what.begins());
        if expect.what.changes() {
            match self.unsettled {
                0 => self.unsettled_here = self.unsettled_here.saturating_sub(1),
                _ => self.unsettled -= 1,
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.expected.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.expected.is_empty() && !self.skipping
    }

    /// Returns true if an answer will come without another message of the client. The server holds
    /// back the answers of an unfinished segment, and after an error in it sends nothing at all.
    pub(super) fn is_owed(&self) -> bool {
        let ends = |expect: &Expect| {
            matches!(
                expect.what,
                What::Sync
                    | What::Channels
                    | What::Values
                    | What::FailsBlock
                    | What::Query(..)
                    | What::Function
            )
        };
        !self.copying && self.expected.iter().any(ends)
    }

    pub(super) fn note_fatal(&mut self) {
        self.passed_fatal = true;
    }

    pub(super) fn has_passed_fatal(&self) -> bool {
        self.passed_fatal
    }

    /// Returns the next message that the server answers.
    pub(super) fn front(&mut self) -> Option<&Expect> {
        while let Some(Expect {
            what: What::CopyEnd,
            ..
        }) = self.expected.front()
        {
            self.expected.pop_front();
            self.awaited -= 1;
        }
        self.expected.front()
    }

    /// Returns the renames of the next message that the server answers.
    pub(super) fn renames(&mut self) -> Option<&mut Renames> {
        self.front()?;
        self.expected.front_mut()?.renames.as_deref_mut()
    }

    /// Returns true if the next answer reports the types of a statement to Windrow, or shows if
    /// reported types were right.
    pub(super) fn asks_for_types(&mut self) -> bool {
        self.front().is_some_and(|front| {
            matches!(
                (&front.what, &front.early),
                (What::Types(_), _) | (_, Some(Answered::Types(..)))
            )
        })
    }

    /// Returns true if the last expected answer reports the values taken from sequences.
    pub(super) fn ends_with_values(&self) -> bool {
        let last = self.expected.back().map(|expect| &expect.what);
        matches!(last, Some(What::Values))
    }

    /// Returns true if only that answer is expected.
    pub(super) fn has_only_values(&self) -> bool {
        self.expected.len() == 1 && self.ends_with_values()
    }

    /// Takes the next message out, if it is of this kind.
    pub(super) fn pop_if(&mut self, is_it: impl FnOnce(&What) -> bool) -> Option<Expect> {
        let front = self.front()?;
        if !is_it(&front.what) {
            return None;
        }
        let front = self.expected.pop_front()?;
        self.settle(&front);
        Some(front)
    }

    /// Removes everything up to the next Sync, which the server skips. Newest first, for reverting.
    pub(super) fn skip_to_sync(&mut self) -> Vec<Expect> {
        let sync = |expect: &Expect| matches!(expect.what, What::Sync);
        let count = self.expected.iter().position(sync);
        self.skipping = count.is_none();
        self.copying = false;
        let count = count.unwrap_or(self.expected.len());
        let passed_over: Vec<_> = self.expected.drain(..count).rev().collect();
        passed_over.iter().for_each(|expect| self.settle(expect));
        // A query is skipped together with the end of its cycle.
        let is_end = |expect: &&Expect| matches!(expect.what, What::Query(..) | What::Function);
        let ends = passed_over.iter().filter(is_end).count();
        if ends > 0 {
            self.unconfirmed.pass_over(ends);
            self.unconfirmed.failed();
        }
        passed_over
    }

    /// Notes that the server expects COPY data: it skips each Sync up to their end.
    pub(super) fn begin_copy(&mut self) {
        self.front();
        let end = |expect: &Expect| matches!(expect.what, What::CopyEnd);
        let found = self.expected.iter().position(end);
        self.copying = found.is_none();
        let end = found.unwrap_or(self.expected.len());
        let (mut place, awaited, before) = (0, &mut self.awaited, self.expected.len());
        self.expected.retain(|expect| {
            place += 1;
            let stays = place > end || !matches!(expect.what, What::Sync);
            *awaited -= usize::from(!stays && !expect.muted);
            stays
        });
        self.unconfirmed.pass_over(before - self.expected.len());
    }
}
