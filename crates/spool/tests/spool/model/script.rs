//! What happens to a spool, by chance.

use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Batches at once; each with the lengths of its payloads.
    Append(Vec<Vec<u16>>),
    /// Up to so many percent of all there ever was.
    Trim(u64),
    Read,
    Trouble(Trouble),
    Restart(End),
}

/// What goes wrong from then on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    Sync(u64),
    Write(u64),
    Room(u64),
    Space,
    Off(u64),
    Short,
}

/// How a process ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Clean,
    Kill,
    Power,
    Twice(u64),
}

fn trouble() -> impl Strategy<Value = Trouble> {
    prop_oneof![
        (0..4_u64).prop_map(Trouble::Sync),
        (0..4_u64).prop_map(Trouble::Write),
        (0..3_000_u64).prop_map(Trouble::Room),
        Just(Trouble::Space),
        (1..20_u64).prop_map(Trouble::Off),
        Just(Trouble::Short),
    ]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        Just(End::Clean),
        Just(End::Kill),
        Just(End::Power),
        (1..8_u64).prop_map(End::Twice),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => vec(vec(0..400_u16, 1..4), 1..5).prop_map(Step::Append),
        2 => (0..=100_u64).prop_map(Step::Trim),
        1 => Just(Step::Read),
        2 => trouble().prop_map(Step::Trouble),
        2 => end().prop_map(Step::Restart),
    ]
}

pub(crate) fn script() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..40)
}
