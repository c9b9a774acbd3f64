//! The identity of a client's stream of writes.

/// Identifies one client's ordered stream of writes (a connection, a request, a body). Units of one
/// source keep their order; sources take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub u64);

impl SourceId {
    /// A source of one's own: units that have it follow nobody, not even each other.
    pub const OWN: Self = Self(u64::MAX);
}
