//! The values of a call as its client sent them, and their formats.

/// The formats of a call's values, or of its result columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Formats {
    /// All values are text.
    #[default]
    Text,
    /// All values are binary.
    Binary,
    /// The format of each value; true for binary.
    Each(Box<[bool]>),
}

impl Formats {
    /// True if the value at a position, counted from 0, is binary.
    pub fn is_binary(&self, place: usize) -> bool {
        match self {
            Self::Text => false,
            Self::Binary => true,
            Self::Each(each) => each.get(place).copied().unwrap_or_default(),
        }
    }

    /// Returns the shortest form of a list, so that lists of the same meaning are equal.
    pub fn of(each: impl ExactSizeIterator<Item = bool> + Clone) -> Self {
        match each.clone().filter(|binary| *binary).count() {
            0 => Self::Text,
            n if n == each.len() => Self::Binary,
            _ => Self::Each(each.collect()),
        }
    }
}

/// The values of a call as PostgreSQL's Bind message holds them: for each a length as a big-endian
/// i32 (-1 for NULL), followed by that many bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments(Box<[u8]>);

impl Arguments {
    /// Returns the values of a Bind message, given the part after their number; `None` if that does
    /// not contain exactly `count` values.
    pub fn of(bytes: impl Into<Box<[u8]>>, count: usize) -> Option<Self> {
        let arguments = Self(bytes.into());
        let mut values = arguments.iter();
        let read = values.by_ref().take(count).count();
        (read == count && values.0.is_empty()).then_some(arguments)
    }

    /// Returns the values in order; `None` is NULL.
    pub fn iter(&self) -> Values<'_> {
        Values(&self.0)
    }

    /// Returns the bytes, exactly as in the Bind message.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<'a> IntoIterator for &'a Arguments {
    type Item = Option<&'a [u8]>;
    type IntoIter = Values<'a>;

    fn into_iter(self) -> Values<'a> {
        self.iter()
    }
}

/// The values of [`Arguments`]. Ends at an incomplete value.
#[derive(Clone, Debug)]
pub struct Values<'a>(&'a [u8]);

impl<'a> Iterator for Values<'a> {
    type Item = Option<&'a [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        let length = i32::from_be_bytes(*length);
        if length == -1 {
            self.0 = rest;
            return Some(None);
        }
        let (value, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_whole_or_refused() {
        let bytes = [0, 0, 0, 1, b'x', 255, 255, 255, 255, 0, 0, 0, 0];
        let arguments = Arguments::of(bytes, 3).unwrap();
        let values: Vec<_> = arguments.iter().collect();
        assert_eq!(values, [Some(&b"x"[..]), None, Some(&b""[..])]);
        for (count, bytes) in [
            (2, &bytes[..]),
            (4, &bytes[..]),
            (1, &bytes[..4]),
            (1, &[255, 255, 255, 254][..]),
            (1, &[127, 255, 255, 255, 0][..]),
        ] {
            assert_eq!(Arguments::of(bytes, count), None, "{count} {bytes:?}");
        }
        assert!(Arguments::of([], 0).is_some());
    }

    #[test]
    fn formats_that_mean_the_same_are_equal() {
        let of = |each: &[bool]| Formats::of(each.iter().copied());
        assert_eq!(
            (of(&[]), of(&[false, false])),
            (Formats::Text, Formats::Text)
        );
        assert_eq!(of(&[true, true]), Formats::Binary);
        let mixed = of(&[true, false]);
        assert_eq!((mixed.is_binary(0), mixed.is_binary(1)), (true, false));
    }
}
