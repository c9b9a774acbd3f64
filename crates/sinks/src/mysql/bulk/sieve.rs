//! Which rows of a portion are sent, and which are left out.

/// Which rows of a portion are sent, and which are left out.
#[derive(Debug)]
pub(super) struct Sieve {
    /// Of each row whether it is left out.
    left: Vec<bool>,
    /// The places of the rows that the last file had, in its order.
    sent: Vec<usize>,
}

impl Sieve {
    /// All rows are to be sent.
    pub(super) fn new(rows: usize) -> Self {
        Self {
            left: vec![false; rows],
            sent: Vec::with_capacity(rows),
        }
    }

    /// Another file begins.
    pub(super) fn begin(&mut self) {
        self.sent.clear();
    }

    /// The row at this place is sent.
    pub(super) fn send(&mut self, place: usize) {
        self.sent.push(place);
    }

    /// The row at this place is left out from now on.
    pub(super) fn leave(&mut self, place: usize) {
        if let Some(left) = self.left.get_mut(place) {
            *left = true;
        }
    }

    /// Whether the row at this place is left out.
    pub(super) fn leaves(&self, place: usize) -> bool {
        self.left.get(place).is_some_and(|left| *left)
    }

    /// How many rows the last file had.
    pub(super) fn sent(&self) -> usize {
        self.sent.len()
    }

    /// The place of a row of the last file, by its number from 1.
    pub(super) fn place(&self, number: usize) -> Option<usize> {
        self.sent.get(number.checked_sub(1)?).copied()
    }

    /// The places of all rows that are left out, in their order.
    pub(super) fn left(&self) -> Vec<usize> {
        let left = self.left.iter().enumerate();
        left.filter(|(_, left)| **left)
            .map(|(place, _)| place)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_last_file() {
        let mut sieve = Sieve::new(4);
        (0..4).for_each(|place| sieve.send(place));
        assert_eq!((sieve.place(2), sieve.place(0)), (Some(1), None));
        sieve.leave(1);
        sieve.begin();
        for place in (0..4).filter(|place| *place != 1) {
            sieve.send(place);
        }
        assert_eq!((sieve.place(2), sieve.place(4)), (Some(2), None));
        assert_eq!((sieve.left(), sieve.sent()), (vec![1], 3));
        assert!(sieve.leaves(1) && !sieve.leaves(2) && !sieve.leaves(9));
    }
}
