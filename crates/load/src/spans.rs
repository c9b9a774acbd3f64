//! The records of a file that are done. Pure.

use windrow_core::Span;

/// Spans in order that do not touch or overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spans(Vec<Span>);

impl Spans {
    /// Joins spans in any order.
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

    /// True if nothing is done.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the record after the last one that is done.
    pub(super) fn end(&self) -> u64 {
        self.0.last().map_or(0, |span| span.end)
    }

    /// True if a record is done.
    pub(super) fn holds(&self, record: u64) -> bool {
        let behind = self.0.partition_point(|span| span.first <= record);
        let last = behind.checked_sub(1).and_then(|at| self.0.get(at));
        last.is_some_and(|span| record < span.end)
    }

    /// True if all of a span is done.
    pub(super) fn hold_all(&self, span: Span) -> bool {
        self.gaps(span).is_empty()
    }

    /// Returns the parts of a span that are not done.
    pub(super) fn gaps(&self, span: Span) -> Vec<Span> {
        let from = self.0.partition_point(|done| done.end <= span.first);
        let mut gaps = Vec::new();
        let mut next = span.first;
        for done in self.0.iter().skip(from) {
            if done.first >= span.end {
                break;
            }
            if next < done.first {
                gaps.push(Span {
                    first: next,
                    end: done.first,
                });
            }
            next = next.max(done.end);
        }
        if next < span.end {
            gaps.push(Span {
                first: next,
                end: span.end,
            });
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span((first, end): (u64, u64)) -> Span {
        Span { first, end }
    }

    #[test]
    fn gaps_are_what_is_not_done() {
        let done = Spans::new([(20, 30), (0, 5), (4, 10), (10, 12), (7, 7)].map(span));
        assert_eq!(done.end(), 30);
        let gaps = |first, end| {
            let gaps = done.gaps(span((first, end)));
            gaps.into_iter()
                .map(|s| (s.first, s.end))
                .collect::<Vec<_>>()
        };
        assert_eq!(gaps(0, 40), [(12, 20), (30, 40)]);
        assert_eq!(gaps(13, 15), [(13, 15)]);
        assert_eq!(gaps(22, 28), []);
        assert_eq!(gaps(11, 21), [(12, 20)]);
        assert!(done.hold_all(span((1, 12))) && !done.hold_all(span((1, 13))));
    }

    #[test]
    fn gaps_and_holds_agree() {
        let done = Spans::new([(3, 5), (8, 9), (9, 11)].map(span));
        let gaps = Spans::new(done.gaps(span((0, 15))));
        for record in 0..15 {
            assert_ne!(done.holds(record), gaps.holds(record), "{record}");
        }
        assert!(Spans::default().is_empty() && !Spans::default().holds(0));
    }
}
