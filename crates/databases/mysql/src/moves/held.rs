//! The rows that a mover holds: their keys and their routes, in the order of the key.

use super::keys::{Key, RUN};

/// The number of rows in a stretch, for each row that is wanted, from which the wanted ones are
/// looked up one by one. Reading a row and leaving it out takes a tenth of the time of a lookup.
const WASTE: usize = 8;

/// Locked rows, by their places.
#[derive(Debug, Default)]
pub(super) struct Held {
    keys: Vec<Key>,
    routes: Vec<Option<Box<str>>>,
}

/// Rows of one route between two integers, all of which are keys of held rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch<'h> {
    pub(super) first: i128,
    pub(super) last: i128,
    pub(super) route: &'h str,
}

impl Held {
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.routes.clear();
    }

    pub(super) fn push(&mut self, key: Key, route: Option<Box<str>>) {
        self.keys.push(key);
        self.routes.push(route);
    }

    pub(super) fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Returns the keys of these rows.
    pub(super) fn at(&self, rows: impl IntoIterator<Item = usize>) -> Vec<&Key> {
        let rows = rows.into_iter();
        rows.filter_map(|row| self.keys.get(row)).collect()
    }

    /// Returns the range from the first to the last of these rows, which have one route and are in
    /// order; `None` if other rows of their route, or far too many rows, lie within it.
    pub(super) fn stretch(&self, rows: &[usize]) -> Option<Stretch<'_>> {
        let (from, to) = (*rows.first()?, *rows.last()?);
        let (Key::Number(first), Key::Number(last)) = (self.keys.get(from)?, self.keys.get(to)?)
        else {
            return None;
        };
        let span = to.checked_sub(from)? + 1;
        let gapless = last.checked_sub(*first)? + 1 == i128::try_from(span).ok()?;
        if !gapless || rows.len() < RUN || rows.len() == span || span / rows.len() > WASTE {
            return None;
        }
        let routes = self.routes.get(from..=to)?;
        let route = routes.first()?.as_deref()?;
        let of_route = routes.iter().filter(|of| of.as_deref() == Some(route));
        (of_route.count() == rows.len()).then_some(Stretch {
            first: *first,
            last: *last,
            route,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(keys: impl Iterator<Item = i128>, route: impl Fn(usize) -> &'static str) -> Held {
        let mut held = Held::default();
        for (place, key) in keys.enumerate() {
            held.push(Key::Number(key), Some(route(place).into()));
        }
        held
    }

    #[test]
    fn rows_of_a_route_are_named_by_their_ends_where_nothing_else_can_be_meant() {
        let thirds = |place: usize| if place.is_multiple_of(3) { "a" } else { "b" };
        let whole = held(7..307, thirds);
        let rows: Vec<usize> = (0..300).step_by(3).collect();
        let expected = Stretch {
            first: 7,
            last: 304,
            route: "a",
        };
        assert_eq!(whole.stretch(&rows), Some(expected));
        assert_eq!(whole.stretch(&rows[40..]).unwrap().first, 127);
        // One of the route that is not meant.
        let mut without = rows.clone();
        without.remove(50);
        assert_eq!(whole.stretch(&without), None);
        // Few, scattered, or with a gap, in which another's row may lie.
        assert_eq!(whole.stretch(&rows[..20]), None);
        assert_eq!(held((7..200).chain(201..308), thirds).stretch(&rows), None);
        let rare = held(1..1001, |place| match place.is_multiple_of(20) {
            true => "a",
            false => "b",
        });
        let rows: Vec<usize> = (0..1000).step_by(20).collect();
        assert_eq!(rare.stretch(&rows), None);
    }
}
