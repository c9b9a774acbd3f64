//! Plans of requests, kept between requests: the table, the parameters, and the shapes of the rows
//! so far. A device that always writes the same columns needs no new names, and equal shapes of all
//! clients are one object, which lanes and sinks compare by address.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::RwLock;
use smallvec::SmallVec;
use windrow_core::shape::ShapeParts;
use windrow_core::{Name, Op, Shape};

use crate::answers::Refusal;
use crate::query::{self, Options};
use crate::system::SystemTables;

/// The most plans kept. Beyond it all are dropped, and made again when needed.
const MAX_PLANS: usize = 1024;
/// The most shapes kept for a plan.
const MAX_SHAPES: usize = 8;
/// The most bytes of names in a plan or a shape that is kept. With it, all plans together stay
/// below 40 MiB.
const MAX_NAME_BYTES: usize = 4 << 10;

/// A request about rows of one table.
#[derive(Debug)]
pub struct Plan {
    source: (Op, Box<str>, Box<str>),
    pub(crate) options: Options,
    base: ShapeParts,
    shapes: RwLock<SmallVec<[Arc<Shape>; 1]>>,
    /// The index of the shape that was used last.
    latest: AtomicUsize,
}

impl Plan {
    fn new(op: Op, table: &str, query: &str, options: Options) -> Result<Self, Refusal> {
        Ok(Self {
            source: (op, table.into(), query.into()),
            base: query::parts(op, query::table(table)?, &options),
            options,
            shapes: RwLock::default(),
            latest: AtomicUsize::new(0),
        })
    }

    /// Returns the common part of all shapes of the plan: everything but the columns.
    pub(crate) fn parts(&self) -> &ShapeParts {
        &self.base
    }

    /// Returns the shape that was used last, which is probably the next one.
    pub fn guess(&self) -> Option<Arc<Shape>> {
        let shapes = self.shapes.read();
        shapes.get(self.latest.load(Relaxed)).cloned()
    }

    /// Returns the shape of a write with only a key.
    pub fn without_columns(&self) -> Arc<Shape> {
        self.guess().unwrap_or_else(|| self.shape(Vec::new()))
    }

    /// Returns the shape with these columns, which must be distinct.
    pub fn shape(&self, columns: Vec<Name>) -> Arc<Shape> {
        let known = {
            let shapes = self.shapes.read();
            let place = shapes.iter().position(|s| *s.columns == *columns);
            place.and_then(|place| {
                self.latest.store(place, Relaxed);
                shapes.get(place).cloned()
            })
        };
        known.unwrap_or_else(|| self.add(columns))
    }

    fn add(&self, columns: Vec<Name>) -> Arc<Shape> {
        let names: usize = columns.iter().map(|name| name.len() + 32).sum();
        let parts = ShapeParts {
            columns: columns.into(),
            ..self.base.clone()
        };
        let shape = Arc::new(match self.options.spelled {
            true => Shape::spelled(parts),
            false => Shape::new(parts),
        });
        if names > MAX_NAME_BYTES {
            return shape;
        }
        let mut shapes = self.shapes.write();
        if shapes.len() >= MAX_SHAPES {
            shapes.remove(0);
        }
        shapes.push(Arc::clone(&shape));
        self.latest.store(shapes.len() - 1, Relaxed);
        shape
    }
}

/// The plans of recent requests.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    pub(crate) system_tables: SystemTables,
    hasher: foldhash::fast::RandomState,
    kept: RwLock<HashMap<u64, Arc<Plan>, foldhash::fast::RandomState>>,
}

impl Plans {
    pub(crate) fn new(system_tables: SystemTables) -> Self {
        Self {
            system_tables,
            ..Self::default()
        }
    }

    /// Returns the plan for a raw table name and a raw query.
    ///
    /// # Errors
    /// 400 for an invalid name or parameter, 403 for a table of the database itself.
    pub(crate) fn get(&self, op: Op, table: &str, query: &str) -> Result<Arc<Plan>, Refusal> {
        self.get_with(op, table, query, || query::options(op, query))
    }

    /// Returns the plan for a raw table name and a tag that stands for the parameters.
    ///
    /// # Errors
    /// As [`Plans::get`], and those of `options`.
    pub(crate) fn get_with(
        &self,
        op: Op,
        table: &str,
        query: &str,
        options: impl FnOnce() -> Result<Options, Refusal>,
    ) -> Result<Arc<Plan>, Refusal> {
        let hash = self.hasher.hash_one((op, table, query));
        let kept = {
            let plans = self.kept.read();
            plans.get(&hash).cloned()
        };
        match kept {
            Some(plan) if plan.is_for(op, table, query) => Ok(plan),
            _ => {
                let plan = Plan::new(op, table, query, options()?)?;
                self.system_tables.check(&plan.base.table)?;
                self.add(hash, plan)
            }
        }
    }

    fn add(&self, hash: u64, plan: Plan) -> Result<Arc<Plan>, Refusal> {
        let plan = Arc::new(plan);
        let (_, table, query) = &plan.source;
        if table.len() + query.len() > MAX_NAME_BYTES {
            return Ok(plan);
        }
        let mut plans = self.kept.write();
        if plans.len() >= MAX_PLANS {
            plans.clear();
        }
        plans.insert(hash, Arc::clone(&plan));
        Ok(plan)
    }
}

impl Plan {
    fn is_for(&self, op: Op, table: &str, query: &str) -> bool {
        self.source.0 == op && *self.source.1 == *table && *self.source.2 == *query
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_requests_share_plan_and_shape() {
        let plans = Plans::default();
        let a = plans.get(Op::Insert, "t", "").unwrap();
        assert!(Arc::ptr_eq(&a, &plans.get(Op::Insert, "t", "").unwrap()));
        let other = plans.get(Op::Insert, "t", "returning=id").unwrap();
        assert!(!Arc::ptr_eq(&a, &other));
        let one = a.shape(vec!["x".into(), "y".into()]);
        assert!(Arc::ptr_eq(&one, &a.shape(vec!["x".into(), "y".into()])));
        assert!(!Arc::ptr_eq(&one, &a.shape(vec!["y".into(), "x".into()])));
        let guess = a.guess().unwrap();
        assert!(!Arc::ptr_eq(&one, &guess));
        a.shape(guess.columns.to_vec());
        assert!(Arc::ptr_eq(&guess, &a.guess().unwrap()));
    }

    #[test]
    fn nothing_grows_without_end() {
        let plans = Plans::default();
        for n in 0..2 * MAX_PLANS {
            plans.get(Op::Insert, &format!("t{n}"), "").unwrap();
        }
        assert!(plans.kept.read().len() <= MAX_PLANS);
        let plan = plans.get(Op::Insert, "t", "").unwrap();
        for n in 0..100 {
            plan.shape(vec![format!("c{n}").into()]);
        }
        assert_eq!(plan.shapes.read().len(), MAX_SHAPES);
    }
}
