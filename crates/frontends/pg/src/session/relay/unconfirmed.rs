//! Statements sent to the server that may be committed without an answer. They decide between
//! SQLSTATE 08007 and 57P01 when the server connection is lost.

use std::collections::VecDeque;

use smallvec::SmallVec;
use windrow_sql::Commits;

/// The most statements of one cycle that are distinguished: further ones count as ones that may
/// commit.
const MAX_STATEMENTS: usize = 64;

/// The statements of one cycle, which ends with a ReadyForQuery. Those that commit nothing are left
/// out.
type Cycle = SmallVec<[Commits; 2]>;

/// Statements that were sent since the last ReadyForQuery.
#[derive(Debug, Default)]
pub(super) struct Unconfirmed {
    /// Cycles whose end was sent.
    ended: VecDeque<Cycle>,
    /// The cycle whose end was not sent.
    open: Cycle,
}

impl Unconfirmed {
    /// Notes a statement that is sent for execution.
    pub(super) fn sent(&mut self, commits: Commits) {
        if commits == Commits::Nothing || self.open.last() == Some(&commits) {
            return;
        }
        if self.open.len() >= MAX_STATEMENTS {
            self.open.clear();
            self.open.push(Commits::Anytime);
        } else {
            self.open.push(commits);
        }
    }

    /// Notes that the end of a cycle is sent.
    pub(super) fn end_cycle(&mut self) {
        self.ended.push_back(std::mem::take(&mut self.open));
    }

    /// Notes that the server skips this number of ends of cycles, because it expects COPY data.
    pub(super) fn pass_over(&mut self, ends: usize) {
        let behind = (ends + 1).min(self.ended.len());
        let mut passed: SmallVec<[Cycle; 2]> = self.ended.drain(..behind).collect();
        // Without an end of its own, the last of them continues.
        if behind <= ends {
            passed.push(std::mem::take(&mut self.open));
        }
        let joined: Cycle = passed.into_iter().flatten().collect();
        match behind <= ends {
            true => self.open = joined,
            false => self.ended.push_front(joined),
        }
    }

    /// Handles an error: the client knows the results before it, and the rest of the cycle is not
    /// executed.
    pub(super) fn failed(&mut self) {
        self.ended.front_mut().unwrap_or(&mut self.open).clear();
    }

    /// Notes ReadyForQuery.
    pub(super) fn confirmed(&mut self) {
        self.ended.pop_front();
    }

    /// Returns true if something may be committed that the server has not confirmed. `status`: that
    /// of the last ReadyForQuery.
    pub(super) fn may_be_committed(&self, status: u8) -> bool {
        let mut block = Block::of(status);
        let ended = self.ended.iter().any(|cycle| block.takes(cycle, true));
        ended || block.takes(&self.open, false)
    }
}

/// The state of the transaction at a point of the sent statements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Outside,
    Open,
    Failed,
}

impl Block {
    fn of(status: u8) -> Self {
        match status {
            b'T' => Self::Open,
            b'E' => Self::Failed,
            _ => Self::Outside,
        }
    }

    /// Advances over a cycle. Returns true if the cycle may commit something.
    fn takes(&mut self, cycle: &[Commits], has_ended: bool) -> bool {
        // Written in the transaction that the end of the cycle commits.
        let mut has_written = false;
        for commits in cycle {
            match (commits, *self) {
                (Commits::Anytime, _)
                | (Commits::Block, Self::Open)
                | (Commits::AtOnce, Self::Outside) => return true,
                (Commits::Block, Self::Outside) if has_written => return true,
                (Commits::AtSync, Self::Outside) => has_written = true,
                (Commits::Opens, Self::Outside) => {
                    *self = Self::Open;
                    has_written = false;
                }
                (Commits::Block, Self::Failed) | (Commits::Undoes, _) => {
                    *self = Self::Outside;
                    has_written = false;
                }
                (Commits::UndoesPart, Self::Failed) => *self = Self::Open,
                _ => {}
            }
        }
        has_written && has_ended
    }
}

#[cfg(test)]
mod tests {
    use Commits::{Anytime, AtOnce, AtSync, Block, Nothing, Opens, Undoes, UndoesPart};

    use super::*;

    fn of(cycles: &[&[Commits]], open: &[Commits]) -> Unconfirmed {
        let mut sent = Unconfirmed::default();
        for cycle in cycles {
            cycle.iter().for_each(|commits| sent.sent(*commits));
            sent.end_cycle();
        }
        open.iter().for_each(|commits| sent.sent(*commits));
        sent
    }

    #[test]
    fn what_may_be_committed_follows_from_what_was_sent() {
        for (status, cycles, open, expected) in [
            (b'I', &[][..], &[][..], false),
            (b'I', &[&[AtSync][..]], &[], true),
            (b'T', &[&[AtSync]], &[], false),
            (b'I', &[], &[AtSync], false),
            (b'I', &[], &[AtOnce], true),
            (b'T', &[&[AtOnce]], &[], false),
            (b'T', &[&[Block]], &[], true),
            (b'T', &[], &[Block], true),
            (b'E', &[&[Block]], &[], false),
            (b'E', &[&[Undoes], &[AtSync]], &[], true),
            (b'E', &[&[AtSync]], &[], false),
            (b'E', &[&[UndoesPart], &[AtSync]], &[], false),
            (b'E', &[&[UndoesPart], &[Block]], &[], true),
            (b'I', &[&[Opens], &[AtSync]], &[AtSync], false),
            (b'I', &[&[Opens, AtSync, Block]], &[], true),
            (b'I', &[&[AtSync, Opens]], &[], false),
            (b'I', &[&[AtSync, Undoes]], &[], false),
            (b'T', &[&[Undoes]], &[], false),
            (b'T', &[&[Undoes], &[AtSync]], &[], true),
            (b'T', &[&[Anytime]], &[], true),
            (b'I', &[&[Nothing]], &[Nothing], false),
        ] {
            let found = of(cycles, open).may_be_committed(status);
            assert_eq!(found, expected, "{} {cycles:?} {open:?}", status as char);
        }
    }

    #[test]
    fn what_is_confirmed_or_has_failed_counts_no_more() {
        let mut sent = of(&[&[AtSync], &[Opens]], &[]);
        sent.confirmed();
        assert!(!sent.may_be_committed(b'I'));
        let mut sent = of(&[&[AtSync]], &[]);
        sent.failed();
        assert!(!sent.may_be_committed(b'I'));
        let mut sent = of(&[], &[Block]);
        sent.failed();
        assert!(!sent.may_be_committed(b'T'));
    }

    #[test]
    fn the_ends_of_cycles_that_copy_swallows_end_nothing() {
        let mut sent = of(&[&[AtSync], &[]], &[]);
        sent.pass_over(2);
        assert!(!sent.may_be_committed(b'I'));
        sent.end_cycle();
        assert!(sent.may_be_committed(b'I'));
        let mut sent = of(&[&[AtSync], &[], &[Opens]], &[]);
        sent.pass_over(1);
        assert!(sent.may_be_committed(b'I'));
        sent.confirmed();
        assert!(!sent.may_be_committed(b'I'));
    }

    #[test]
    fn a_cycle_without_an_end_is_bounded() {
        let many = [Opens, Block].repeat(1000);
        let sent = of(&[], &many);
        assert!(sent.open.len() <= MAX_STATEMENTS && sent.may_be_committed(b'I'));
    }
}
