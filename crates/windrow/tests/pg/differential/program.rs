//! Random programs.

use proptest::collection::vec;
use proptest::prelude::*;

use super::statements::{Sql, any_sql, block, generating_sql, written_sql};

/// Clients of a program.
const CLIENTS: usize = 8;

/// What all clients do, each its own list, all at once.
#[derive(Clone, Debug)]
pub struct Program {
    pub clients: Vec<Vec<Step>>,
}

/// One thing that a client does.
#[derive(Clone, Debug)]
pub enum Step {
    /// A simple query of these statements.
    Simple(Vec<Sql>),
    /// Extended queries. Each segment ends with Sync; all are sent at once, or each when the one
    /// before was answered.
    Extended {
        pipelined: bool,
        segments: Vec<Vec<Act>>,
    },
    /// A write that takes an id, and the question for it, one after the other.
    Generated([Sql; 2]),
    /// A transaction block.
    Transaction { statements: Vec<Sql>, sent: Sent },
    /// A transaction block that arrives whole.
    Whole { writes: Vec<Sql>, sent: Whole },
    /// COPY FROM STDIN of so many rows, ended by CopyFail or CopyDone.
    CopyIn { rows: u8, fail: bool },
}

/// The ways in which the statements of a block are sent.
#[derive(Clone, Copy, Debug)]
pub enum Sent {
    /// As simple queries, each when the one before was answered.
    Simple,
    /// As simple queries: so many one after the other, then the others all at once.
    Together(usize),
    /// As segments of their own.
    Extended,
}

/// The ways in which the writes of a transaction arrive together.
#[derive(Clone, Copy, Debug)]
pub enum Whole {
    /// One simple query.
    Query,
    /// One simple query with BEGIN and COMMIT.
    Block,
    /// One segment with BEGIN and COMMIT.
    Segment,
}

/// A part of a segment.
#[derive(Clone, Debug)]
pub enum Act {
    /// Parse, and what follows.
    Run {
        sql: Sql,
        name: Option<u8>,
        typed: bool,
        how: How,
    },
    /// Bind and Execute of what was prepared under a name before.
    Again { name: u8, picks: [u8; 4], how: How },
    /// Parse and Describe, without Execute.
    Prepare {
        sql: Sql,
        name: Option<u8>,
        typed: bool,
        flush: bool,
    },
    /// Execute of the unnamed portal once more.
    Twice,
    /// Close of a statement.
    Close { name: u8 },
    /// Close and Describe of names that do not exist, or Flush for nothing.
    Odd(u8),
}

/// How a statement is bound and executed.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Values in binary where that is known.
    pub binary: bool,
    /// Rows in binary.
    pub binary_rows: bool,
    /// Describe the statement (`S`) or the portal (`P`).
    pub describe: Option<u8>,
    /// A portal with a name.
    pub portal: bool,
    /// At most so many rows, 0 for all.
    pub rows: u8,
    /// Flush, and wait for the answers, after Bind and Describe.
    pub flush_early: bool,
    /// Flush, and wait for the answers, after Execute.
    pub flush_late: bool,
}

/// Programs of all kinds.
pub fn programs() -> impl Strategy<Value = Program> {
    vec(vec(step(), 1..14), 1..=CLIENTS).prop_map(|clients| Program { clients })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => any_sql().prop_map(|sql| Step::Simple(vec![sql])),
        1 => vec(any_sql(), 2..4).prop_map(Step::Simple),
        8 => vec(act(), 1..3).prop_map(|acts| Step::Extended { pipelined: false, segments: vec![acts] }),
        4 => (any::<bool>(), vec(vec(act(), 1..5), 1..6))
            .prop_map(|(pipelined, segments)| Step::Extended { pipelined, segments }),
        1 => generating_sql().prop_map(Step::Generated),
        2 => (block(), sent()).prop_map(|(statements, sent)| Step::Transaction { statements, sent }),
        3 => (vec(written_sql(), 1..5), whole())
            .prop_map(|(writes, sent)| Step::Whole { writes, sent }),
        1 => (0_u8..5, proptest::bool::weighted(0.2)).prop_map(|(rows, fail)| Step::CopyIn { rows, fail }),
    ]
}

fn sent() -> impl Strategy<Value = Sent> {
    prop_oneof![
        3 => Just(Sent::Simple),
        1 => (0_usize..3).prop_map(Sent::Together),
        3 => Just(Sent::Extended),
    ]
}

fn whole() -> impl Strategy<Value = Whole> {
    prop_oneof![Just(Whole::Query), Just(Whole::Block), Just(Whole::Segment)]
}

fn act() -> impl Strategy<Value = Act> {
    let name = || proptest::option::weighted(0.3, 0_u8..3);
    prop_oneof![
        10 => (any_sql(), name(), any::<bool>(), how())
            .prop_map(|(sql, name, typed, how)| Act::Run { sql, name, typed, how }),
        6 => (0_u8..3, any::<[u8; 4]>(), how()).prop_map(|(name, picks, how)| Act::Again { name, picks, how }),
        2 => (any_sql(), name(), any::<bool>(), any::<bool>())
            .prop_map(|(sql, name, typed, flush)| Act::Prepare { sql, name, typed, flush }),
        1 => Just(Act::Twice),
        1 => (0_u8..3).prop_map(|name| Act::Close { name }),
        1 => (0_u8..3).prop_map(Act::Odd),
    ]
}

fn how() -> impl Strategy<Value = How> {
    let rare = || proptest::bool::weighted(0.1);
    let describe = prop_oneof![3 => Just(None), 1 => Just(Some(b'S')), 4 => Just(Some(b'P'))];
    let rows = prop_oneof![12 => Just(0_u8), 1 => Just(1), 1 => Just(2)];
    (
        any::<bool>(),
        any::<bool>(),
        describe,
        rare(),
        rows,
        rare(),
        rare(),
    )
        .prop_map(
            |(binary, binary_rows, describe, portal, rows, flush_early, flush_late)| How {
                binary,
                binary_rows,
                describe,
                portal,
                rows,
                flush_early,
                flush_late,
            },
        )
}
