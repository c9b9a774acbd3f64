//! The identity of a client's stream of writes.

/// Identifies one client's ordered stream of writes (a connection, a request, a body). Units of one
/// source keep their order; sources take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub u64);

impl SourceId {
    /// The source of units that depend on no other unit, not even of this source.
    pub const OWN: Self = Self(u64::MAX);
}
