//! Values stored under small numbers, which are reused once they are free. The numbers never leave
//! the lane.

/// A growable table with a free list.
#[derive(Debug)]
pub(crate) struct Arena<T> {
    slots: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Arena<T> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(crate) fn insert(&mut self, value: T) -> usize {
        if let Some(key) = self.free.pop()
            && let Some(slot) = self.slots.get_mut(key)
        {
            *slot = Some(value);
            return key;
        }
        self.slots.push(Some(value));
        self.slots.len() - 1
    }

    pub(crate) fn get(&self, key: usize) -> Option<&T> {
        self.slots.get(key)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, key: usize) -> Option<&mut T> {
        self.slots.get_mut(key)?.as_mut()
    }

    pub(crate) fn remove(&mut self, key: usize) -> Option<T> {
        let value = self.slots.get_mut(key)?.take()?;
        self.free.push(key);
        Some(value)
    }

    /// Drops a value in place, which costs less than moving it out.
    pub(crate) fn forget(&mut self, key: usize) {
        if let Some(slot) = self.slots.get_mut(key)
            && slot.is_some()
        {
            *slot = None;
            self.free.push(key);
        }
    }

    /// Returns the keys in use, in no particular order.
    pub(crate) fn keys(&self) -> Vec<usize> {
        let used = |(key, slot): (usize, &Option<T>)| slot.is_some().then_some(key);
        self.slots.iter().enumerate().filter_map(used).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_free_slots_again() {
        let mut arena = Arena::new();
        let (a, b) = (arena.insert("a"), arena.insert("b"));
        assert_eq!((arena.remove(a), arena.remove(a)), (Some("a"), None));
        assert_eq!(arena.insert("c"), a);
        assert_eq!((arena.get(a), arena.get(b)), (Some(&"c"), Some(&"b")));
        assert_eq!((arena.len(), arena.keys()), (2, vec![0, 1]));
        (0..2).for_each(|_| arena.forget(b));
        assert_eq!((arena.get(b), arena.len()), (None, 1));
    }
}
