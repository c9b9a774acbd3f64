//! A span that has ended.

use std::borrow::Cow;
use std::time::SystemTime;

use super::TraceContext;

/// A step of work, and the time that it took.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpan {
    /// The identity of the span.
    pub context: TraceContext,
    /// The parent span.
    pub parent: Option<[u8; 8]>,
    /// The side of the conversation.
    pub side: Side,
    /// The name of the step, one of few.
    pub name: Cow<'static, str>,
    /// The start.
    pub began: SystemTime,
    /// The end.
    pub ended: SystemTime,
    /// Linked spans.
    pub links: Vec<TraceContext>,
    /// The number of links that were left out.
    pub links_left_out: usize,
    /// Other properties of the step.
    pub attributes: Vec<(&'static str, TraceValue)>,
    /// True if the step failed.
    pub failed: bool,
}

/// The side of a conversation that a span describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A step that a client asked for.
    Server,
    /// A request to another program.
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
