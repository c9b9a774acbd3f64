//! The recent failure rates of each shape, so that a form that keeps failing is not tried first.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use windrow_core::{FaultClass, Verdict};

use super::batch::{Batch, FUSE_FROM};
use super::segment::{Mode, Segment};

/// Weight of the newest batch in a rate.
const NEWEST: f32 = 0.25;

/// The rate above which a form is not tried. Three failures in the last four batches exceed the
/// rate, or two in the last two.
const OFTEN: f32 = 0.4;

/// Limit on the number of shapes whose rates are kept.
const MOST: usize = 4096;

/// The share of recent batches in which a write failed.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    /// Failures that [`Mode::Telling`] can report.
    reportable: f32,
    /// All other failures.
    other: f32,
}

/// Rates by shape.
#[derive(Debug, Default)]
pub(crate) struct FailureRates {
    rates: HashMap<u64, Rate, RandomState>,
}

impl FailureRates {
    /// Chooses another form for segments whose shapes failed lately.
    pub(crate) fn choose_forms(&self, batch: &Batch<'_>, segments: &mut [Segment]) {
        if self.rates.is_empty() {
            return;
        }
        for segment in segments.iter_mut().filter(|s| s.mode == Mode::Sets) {
            let counts = batch.counts(&segment.units);
            let many = counts.iter().filter(|(_, sets, _)| *sets >= FUSE_FROM);
            let rates = many.filter_map(|(shape, ..)| {
                let compiled = batch.shapes.get(*shape)?;
                self.rates.get(&compiled.failure_key)
            });
            let (mut reportable, mut other) = (false, false);
            for rate in rates {
                reportable |= rate.reportable > OFTEN;
                other |= rate.other > OFTEN;
            }
            if other {
                segment.mode = Mode::Grouped;
            } else if reportable && batch.can_tell(&segment.units) {
                segment.mode = Mode::Telling;
            }
        }
    }

    /// Learns from the verdicts of a batch. Units that were expected to fail are left out.
    /// `missed`: the form that reports failing rows did not report one that failed.
    pub(crate) fn learn(&mut self, batch: &Batch<'_>, units: &[u32], missed: bool) {
        for (shape, sets, _) in batch.counts(units) {
            let Some(compiled) = batch.shapes.get(shape).filter(|_| sets >= FUSE_FROM) else {
                continue;
            };
            let mut failed = self.failed(batch, units, shape);
            failed.1 |= missed && failed.0;
            let id = compiled.failure_key;
            if failed == (false, false) && !self.rates.contains_key(&id) {
                continue;
            }
            if self.rates.len() > MOST {
                self.rates.clear();
            }
            let rate = self.rates.entry(id).or_default();
            mix(&mut rate.reportable, failed.0);
            mix(&mut rate.other, failed.1);
            if rate.reportable < 0.01 && rate.other < 0.01 {
                self.rates.remove(&id);
            }
        }
    }

    /// Returns whether a write of the shape failed in a way that can be reported, and whether one
    /// failed in another way.
    fn failed(&self, batch: &Batch<'_>, units: &[u32], shape: usize) -> (bool, bool) {
        let mut failed = (false, false);
        for unit in units {
            let Some(Some(Verdict::Final(Err(fault)))) = batch.verdicts.get(*unit as usize) else {
                continue;
            };
            let place = batch.writes_of(*unit).start + fault.at;
            if batch
                .placed
                .get(place)
                .is_some_and(|p| p.shape as usize == shape)
            {
                match fault.fault.class {
                    FaultClass::Unique | FaultClass::Check | FaultClass::ForeignKey => {
                        failed.0 = true;
                    }
                    FaultClass::Unknown => {}
                    _ => failed.1 = true,
                }
            }
        }
        failed
    }
}

fn mix(rate: &mut f32, failed: bool) {
    let newest = if failed { 1.0 } else { 0.0 };
    *rate += (newest - *rate) * NEWEST;
}
