//! Remembers the columns of collections from returned rows. A replacement sets all of them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use windrow_core::Name;

/// The largest number of collections remembered. Beyond it all are forgotten, and each costs one
/// more read.
const MAX_COLLECTIONS: usize = 1024;
/// Bytes of the longest name of a remembered collection.
const MAX_NAME_BYTES: usize = 1 << 10;

/// The columns of a table, in the table's order.
pub(crate) type Layout = Arc<[Name]>;

/// The columns of recent collections, by the raw names that requests use.
#[derive(Debug, Default)]
pub(crate) struct Layouts(RwLock<HashMap<Box<str>, Layout, foldhash::fast::RandomState>>);

impl Layouts {
    pub(crate) fn get(&self, collection: &str) -> Option<Layout> {
        let kept = self.0.read();
        kept.get(collection).cloned()
    }

    pub(crate) fn set(&self, collection: &str, layout: &Layout) {
        if collection.len() > MAX_NAME_BYTES {
            return;
        }
        let mut kept = self.0.write();
        if kept.len() >= MAX_COLLECTIONS {
            kept.clear();
        }
        kept.insert(collection.into(), Arc::clone(layout));
    }
}
