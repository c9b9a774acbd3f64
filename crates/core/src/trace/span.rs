//! A span that has ended.

use std::borrow::Cow;
use std::time::SystemTime;

use super::TraceContext;

/// Something that was done for somebody, and how long it took.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpan {
    /// Its name among all spans.
    pub context: TraceContext,
    /// The span that it is a part of.
    pub parent: Option<[u8; 8]>,
    /// Which side of the conversation it is.
    pub side: Side,
    /// What was done, of few kinds.
    pub name: Cow<'static, str>,
    /// When it began.
    pub began: SystemTime,
    /// When it ended.
    pub ended: SystemTime,
    /// Spans that have to do with it.
    pub links: Vec<TraceContext>,
    /// How many more there would have been.
    pub links_left_out: usize,
    /// What else is known of it.
    pub attributes: Vec<(&'static str, TraceValue)>,
    /// Whether it failed.
    pub failed: bool,
}

/// Which side of a conversation a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Somebody has asked us.
    Server,
    /// We have asked somebody.
    Client,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceValue {
    /// A word, or a name.
    Text(Cow<'static, str>),
    /// A count.
    Count(u64),
    /// A time, in seconds.
    Seconds(f64),
    /// Yes or no.
    Flag(bool),
}
