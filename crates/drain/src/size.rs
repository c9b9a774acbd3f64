//! The number of entries in a transaction. Pure.

/// The largest number of entries of the next transaction.
///
/// It doubles as long as transactions succeed. After a refusal it is about twice the number of good
/// entries before the refused one: if every tenth entry is refused, a good entry is tried about
/// twice.
#[derive(Debug)]
pub(crate) struct Size {
    entries: usize,
    most: usize,
}

impl Size {
    pub(crate) fn new(first: usize, most: usize) -> Self {
        let most = most.max(1);
        Self {
            entries: first.clamp(1, most),
            most,
        }
    }

    pub(crate) fn entries(&self) -> usize {
        self.entries
    }

    /// Notes that this many entries were committed together.
    pub(crate) fn applied(&mut self, entries: usize) {
        if entries >= self.entries {
            self.entries = (self.entries * 2).min(self.most);
        }
    }

    /// Notes that the entry after this many good ones was refused.
    pub(crate) fn refused(&mut self, behind: usize) {
        self.entries = self.entries.min((behind * 2).max(2)).min(self.most);
    }

    /// Notes that the entries failed together, and that it is not known which one is the cause.
    pub(crate) fn halve(&mut self) {
        self.entries = (self.entries / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_follows_from_how_it_goes() {
        let mut size = Size::new(8, 100);
        size.applied(8);
        assert_eq!(size.entries(), 16);
        // There were no more; that says nothing of a larger one.
        size.applied(3);
        assert_eq!(size.entries(), 16);
        (0..5).for_each(|_| size.applied(size.entries()));
        assert_eq!(size.entries(), 100);
        size.refused(9);
        assert_eq!(size.entries(), 18);
        size.refused(40);
        assert_eq!(size.entries(), 18, "a refusal never makes it larger");
        size.refused(0);
        assert_eq!(size.entries(), 2);
        (0..3).for_each(|_| size.halve());
        assert_eq!(size.entries(), 1);
        size.applied(1);
        assert_eq!(size.entries(), 2);
        assert_eq!(Size::new(0, 0).entries(), 1);
    }

    /// Every tenth entry is refused, somewhere: what is sent stays within a few times of what is
    /// there.
    #[test]
    fn bad_entries_cost_a_few_attempts_and_no_more() {
        let bad = |entry: usize| (entry * 7919 + 13) % 101 < 10;
        let (mut size, mut at, mut sent, entries) = (Size::new(256, 10_000), 0, 0, 20_000);
        while at < entries {
            let taken = size.entries();
            sent += taken;
            match (at..at + taken).position(bad) {
                None => {
                    at += taken;
                    size.applied(taken);
                }
                Some(behind) => {
                    // The good ones and the dead letter; the first of all is tried alone as well.
                    sent += behind + if behind == 0 { 2 } else { 1 };
                    at += behind + 1;
                    size.refused(behind);
                }
            }
        }
        assert!(sent < 4 * entries, "{sent}");
    }
}
