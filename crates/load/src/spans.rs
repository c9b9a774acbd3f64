//! The records of a file that are done. Pure.

use windrow_core::Span;

/// Spans in order that do not touch or overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spans(Vec<Span>);

impl Spans {
    /// Sorts spans, and joins those that touch or overlap.
    pub(super) fn new(spans: impl IntoIterator<Item = Span>) -> Self {
        let mut all: Vec<Span> = spans.into_iter().filter(|s| s.first < s.end).collect();
        all.sort_unstable();
        let mut joined: Vec<Span> = Vec::new();
        for span in all {
            match joined.last_mut() {
                Some(last) if span.first <= last.end => last.end = last.end.max(span.end),
                _ => joined.push(span),
            }
        }
        Self(joined)
    }

    /// Returns true if nothing is done.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the record after the last one that is done.
    pub(super) fn end(&self) -> u64 {
        self.0.last().map_or(0, |span| span.end)
    }

    /// Returns true if a record is done.
    pub(super) fn holds(&self, record: u64) -> bool {
        self.at(record).0
    }

    /// Returns true if nothing of a span is done.
    pub(super) fn holds_none(&self, span: Span) -> bool {
        let (is_done, until) = self.at(span.first);
        !is_done && until.is_none_or(|until| until >= span.end)
    }

    /// Returns true if a record is done, and the next record for which the answer differs, if
    /// there is one.
    pub(super) fn at(&self, record: u64) -> (bool, Option<u64>) {
        let after = self.0.partition_point(|span| span.end <= record);
        match self.0.get(after) {
            None => (false, None),
            Some(span) if span.first <= record => (true, Some(span.end)),
            Some(span) => (false, Some(span.first)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span((first, end): (u64, u64)) -> Span {
        Span { first, end }
    }

    #[test]
    fn spans_that_touch_are_one() {
        let done = Spans::new([(20, 30), (2, 5), (4, 10), (10, 12), (7, 7)].map(span));
        assert_eq!(done, Spans::new([(2, 12), (20, 30)].map(span)));
        assert_eq!(done.end(), 30);
        assert!(Spans::default().is_empty() && !done.is_empty());
    }

    #[test]
    fn the_next_record_that_differs_is_found() {
        let done = Spans::new([(2, 12), (20, 30)].map(span));
        let at = |record| done.at(record);
        assert_eq!(at(0), (false, Some(2)));
        assert_eq!(at(2), (true, Some(12)));
        assert_eq!(at(11), (true, Some(12)));
        assert_eq!(at(12), (false, Some(20)));
        assert_eq!(at(29), (true, Some(30)));
        assert_eq!(at(30), (false, None));
        assert!(done.holds(2) && !done.holds(12));
        let holds_none = |first, end| done.holds_none(span((first, end)));
        assert!(holds_none(0, 2) && holds_none(12, 20) && holds_none(30, 99));
        assert!(!holds_none(0, 3) && !holds_none(11, 13) && !holds_none(15, 25));
        assert_eq!(Spans::default().at(7), (false, None));
    }
}
