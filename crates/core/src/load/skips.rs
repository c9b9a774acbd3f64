//! The number of portions that skip a form of writing in which portions were refused.

/// The most portions that go by without another try.
const MAX_SKIPPED: u32 = 63;

/// The portions that skip a form after it failed: 1, then 3, 7 and at most 63.
///
/// Portions like the one that failed are likely to follow it, and each try in vain costs the time
/// of a portion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FormSkips {
    /// The portions still to be skipped.
    left: u32,
    /// The portions skipped after the last failure.
    last: u32,
}

impl FormSkips {
    /// Returns true if the next portion is to take the form; counts it as skipped otherwise.
    pub fn is_due(&mut self) -> bool {
        let skipped = self.left.checked_sub(1);
        self.left = skipped.unwrap_or_default();
        skipped.is_none()
    }

    /// Notes that a portion could not take the form.
    pub fn fail(&mut self) {
        self.last = (self.last * 2 + 1).min(MAX_SKIPPED);
        self.left = self.last;
    }

    /// Notes that a portion took the form.
    pub fn succeed(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_that_always_fails_is_hardly_tried() {
        let mut skips = FormSkips::default();
        let mut tries = 0;
        for _ in 0..1000 {
            if skips.is_due() {
                tries += 1;
                skips.fail();
            }
        }
        assert!((15..25).contains(&tries), "{tries}");
        skips.succeed();
        assert!((0..1000).all(|_| skips.is_due()));
    }
}
