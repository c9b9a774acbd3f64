//! Which rows of a portion are sent, and which are left out.

/// Which rows of a portion are sent, and which are left out.
#[derive(Debug)]
pub(super) struct Selection {
    /// True for each row that is left out, by its place.
    left: Vec<bool>,
    /// The places of the rows of the last file, in its order.
    sent: Vec<usize>,
}

impl Selection {
    /// Makes a selection of all rows.
    pub(super) fn new(rows: usize) -> Self {
        Self {
            left: vec![false; rows],
            sent: Vec::with_capacity(rows),
        }
    }

    /// Begins another file.
    pub(super) fn begin(&mut self) {
        self.sent.clear();
    }

    /// Notes that the row at this place is sent.
    pub(super) fn send(&mut self, place: usize) {
        self.sent.push(place);
    }

    /// Leaves out the row at this place from now on.
    pub(super) fn leave(&mut self, place: usize) {
        if let Some(left) = self.left.get_mut(place) {
            *left = true;
        }
    }

    /// Returns true if the row at this place is left out.
    pub(super) fn leaves(&self, place: usize) -> bool {
        self.left.get(place).is_some_and(|left| *left)
    }

    /// Returns the number of rows of the last file.
    pub(super) fn sent(&self) -> usize {
        self.sent.len()
    }

    /// Returns the place of a row of the last file by its number, which starts at 1.
    pub(super) fn place(&self, number: usize) -> Option<usize> {
        self.sent.get(number.checked_sub(1)?).copied()
    }

    /// Returns the places of all rows that are left out, in order.
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
        let mut selection = Selection::new(4);
        (0..4).for_each(|place| selection.send(place));
        assert_eq!((selection.place(2), selection.place(0)), (Some(1), None));
        selection.leave(1);
        selection.begin();
        for place in (0..4).filter(|place| *place != 1) {
            selection.send(place);
        }
        assert_eq!((selection.place(2), selection.place(4)), (Some(2), None));
        assert_eq!((selection.left(), selection.sent()), (vec![1], 3));
        assert!(selection.leaves(1) && !selection.leaves(2) && !selection.leaves(9));
    }
}
