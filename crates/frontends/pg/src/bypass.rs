//! Statements that were not joined, or that may have left something behind on their connection:
//! reasons and advice.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use windrow_core::{Apart, Name};

use crate::block_doubts::advice;
use crate::metrics::PgMetrics;

/// The most objects that are counted separately.
const MAX_OBJECTS: usize = 1_000;

/// Counts statements that were not joined.
#[derive(Debug)]
pub(crate) struct Bypass {
    counts: Mutex<Counts>,
    metrics: PgMetrics,
}

#[derive(Debug, Default)]
struct Counts {
    reasons: BTreeMap<&'static str, Counter>,
    objects: BTreeMap<(&'static str, Name, Box<str>), (u64, &'static str)>,
}

/// A line of SHOW BYPASS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BypassLine {
    pub(crate) reason: &'static str,
    pub(crate) count: u64,
    /// The database of the object that prevents joining; `None` if no object does.
    pub(crate) database: Option<Name>,
    /// The object that prevents joining, by kind and name; empty if no object does.
    pub(crate) object: Box<str>,
    /// Advice for the operator; never empty.
    pub(crate) advice: &'static str,
}

impl Bypass {
    pub(crate) fn new(metrics: &PgMetrics) -> Self {
        Self {
            counts: Mutex::default(),
            metrics: metrics.clone(),
        }
    }

    /// Counts a statement by its reason.
    pub(crate) fn count(&self, reason: &'static str) {
        let mut counts = self.counts.lock();
        let counter = counts
            .reasons
            .entry(reason)
            .or_insert_with(|| self.metrics.bypass(reason));
        counter.inc();
    }

    /// Counts a statement, with the object that prevented joining.
    pub(crate) fn note(&self, database: &Name, apart: &Apart) {
        self.add(database, apart, 1);
    }

    /// Notes a reason before any statement is counted for it.
    pub(crate) fn learn(&self, database: &Name, apart: &Apart) {
        self.add(database, apart, 0);
    }

    fn add(&self, database: &Name, apart: &Apart, more: u64) {
        if apart.object.is_empty() && apart.advice.is_empty() {
            return;
        }
        let mut counts = self.counts.lock();
        let key = (apart.phrase, Name::clone(database), apart.object.clone());
        let is_full = counts.objects.len() >= MAX_OBJECTS;
        match counts.objects.get_mut(&key) {
            Some((count, _)) => *count += more,
            None if is_full => {}
            None => {
                counts.objects.insert(key, (more, apart.advice));
            }
        }
    }

    /// Returns all counts: those with an object, and for each reason those without.
    pub(crate) fn lines(&self) -> Vec<BypassLine> {
        let counts = self.counts.lock();
        let objects = counts.objects.iter();
        let objects = objects.map(|((reason, database, object), (count, own))| BypassLine {
            reason,
            count: *count,
            database: Some(Name::clone(database)),
            object: object.clone(),
            advice: match *own {
                "" => advice(reason),
                own => own,
            },
        });
        let mut lines: Vec<BypassLine> = objects.collect();
        for (reason, counter) in &counts.reasons {
            let of_objects = lines.iter().filter(|line| line.reason == *reason);
            let of_objects: u64 = of_objects.map(|line| line.count).sum();
            let count = counter.get().saturating_sub(of_objects);
            let mut same = lines.iter_mut().filter(|line| line.reason == *reason);
            if let (Some(only), None) = (same.next(), same.next()) {
                only.count += count;
            } else if count > 0 {
                lines.push(BypassLine {
                    reason,
                    count,
                    advice: advice(reason),
                    ..BypassLine::default()
                });
            }
        }
        lines.sort_by(|a, b| b.count.cmp(&a.count).then(a.reason.cmp(b.reason)));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_told_apart_within_their_reason() {
        let bypass = Bypass::new(&PgMetrics::default());
        let apart = Apart::of("a view").by("view shop.all").advised("do so");
        for _ in 0..3 {
            bypass.count("a view");
        }
        bypass.count("SELECT");
        bypass.note(&"shop".into(), &apart);
        let line = bypass.lines().swap_remove(0);
        assert_eq!((line.reason, line.count), ("a view", 3));
        bypass.learn(&"shop".into(), &Apart::of("a view").by("view other"));
        bypass.note(&"shop".into(), &Apart::of("SELECT"));
        let lines = bypass.lines();
        assert!(lines.iter().all(|line| !line.advice.is_empty()));
        let counted: Vec<_> = lines
            .iter()
            .map(|line| (line.reason, line.count, &*line.object))
            .collect();
        assert_eq!(
            counted,
            [
                ("a view", 2, ""),
                ("SELECT", 1, ""),
                ("a view", 1, "view shop.all"),
                ("a view", 0, "view other"),
            ]
        );
        assert_eq!(lines[2].advice, "do so");
    }
}
