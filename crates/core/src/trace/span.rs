//! A span that has ended.

use std::borrow::Cow;
use std::time::SystemTime;

use super::TraceContext;

/// A step of work, and the time that it took.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpan {
    /// The identity of the span.
    pub context: TraceContext,
    /// The span that it is a part of.
    pub parent: Option<[u8; 8]>,
    /// Which side of the conversation it is.
    pub side: Side,
    /// The name of the step, one of few.
    pub name: Cow<'static, str>,
    /// When it began.
    pub began: SystemTime,
    /// When it ended.
    pub ended: SystemTime,
    /// Spans that have to do with it.
    pub links: Vec<TraceContext>,
    /// The number of links that were left out.
    pub links_left_out: usize,
    /// Other properties of the step.
    pub attributes: Vec<(&'static str, TraceValue)>,
    /// True if the step failed.
    pub failed: bool,
}

/// Which side of a conversation a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A step that a client asked for.
    Server,
    /// A step that was asked of another program.
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
