//! The columns of collections, as rows that came back have shown them: what a document is replaced
//! in.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use windrow_core::Name;

/// Collections that are kept. Past it all are forgotten, which costs each of them one more read.
const KEPT: usize = 1024;
/// The longest name of a collection that is kept, in bytes.
const NAME: usize = 1 << 10;

/// The columns of a table, in its order.
pub(crate) type Layout = Arc<[Name]>;

/// The columns of recent collections, by the raw names that requests use.
#[derive(Debug, Default)]
pub(crate) struct Layouts(RwLock<HashMap<Box<str>, Layout, foldhash::fast::RandomState>>);

impl Layouts {
    pub(crate) fn get(&self, collection: &str) -> Option<Layout> {
        let kept = self.0.read().unwrap_or_else(PoisonError::into_inner);
        kept.get(collection).cloned()
    }

    pub(crate) fn set(&self, collection: &str, layout: &Layout) {
        if collection.len() > NAME {
            return;
        }
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(collection.into(), Arc::clone(layout));
    }
}
