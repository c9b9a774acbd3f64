//! Samples over time, taken beside the load.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use windrow_testkit::procfs;

use crate::experiments::sampler::Sampler;
use crate::figures::mib;
use crate::figures::plot::Series;
use crate::generator::Live;
use crate::number::as_f64;

/// Time between samples.
const STEP: Duration = Duration::from_millis(100);

/// One moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Seconds since the beginning.
    pub at: f64,
    /// Requests answered with success so far.
    pub successes: u64,
    /// Requests that came to anything else so far.
    pub others: u64,
    /// Resident memory of Windrow, in bytes.
    pub resident: u64,
}

/// Begins to watch a load on the process `pid`.
pub(super) fn watch(pid: u32, live: Arc<Live>) -> Sampler<Sample> {
    Sampler::start(STEP, move |at| {
        Ok(Sample {
            at,
            successes: live.successes(),
            others: live.others(),
            resident: procfs::resident_bytes(pid).unwrap_or(0),
        })
    })
}

/// Successes a second, from sample to sample.
pub(super) fn rate(samples: &[Sample]) -> Series {
    let pairs = samples.iter().zip(samples.iter().skip(1));
    Series {
        name: "rows/s of good clients".into(),
        points: pairs
            .map(|(a, b)| (b.at, as_f64(b.successes - a.successes) / (b.at - a.at)))
            .collect(),
    }
}

/// Resident memory in MiB.
pub(super) fn resident(samples: &[Sample]) -> Series {
    Series {
        name: "windrow".into(),
        points: samples.iter().map(|s| (s.at, mib(s.resident))).collect(),
    }
}

/// Successes a second between two moments.
pub(super) fn between(samples: &[Sample], (from, to): (f64, f64)) -> f64 {
    let mut within = samples.iter().filter(|s| s.at >= from && s.at <= to);
    let (first, last) = (within.next(), within.next_back());
    let Some((first, last)) = first.zip(last) else {
        return 0.0;
    };
    as_f64(last.successes - first.successes) / (last.at - first.at)
}

/// Seconds from a moment until a second begins in which a rate is reached again.
pub(super) fn back_after(samples: &[Sample], moment: f64, rate: f64) -> Option<f64> {
    let enough = ENOUGH.as_secs_f64();
    let second = |s: &Sample| between(samples, (s.at, s.at + enough));
    let last = samples.last()?.at;
    let back = samples
        .iter()
        .filter(|s| s.at >= moment && s.at + enough <= last)
        .find(|s| second(s) >= rate)?;
    Some(back.at - moment)
}

/// Shorter times say little of a rate.
pub(super) const ENOUGH: Duration = Duration::from_secs(1);

/// All samples as CSV.
pub(super) fn csv(samples: &[Sample]) -> String {
    let mut text = String::from("seconds,successes,others,resident_bytes\n");
    for s in samples {
        writeln!(
            text,
            "{:.3},{},{},{}",
            s.at, s.successes, s.others, s.resident
        )
        .ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Sample> {
        [(1.0, 10), (2.0, 30), (3.0, 30), (4.0, 31)]
            .map(|(at, successes)| Sample {
                at,
                successes,
                others: 0,
                resident: 1_048_576,
            })
            .into()
    }

    #[test]
    fn rates_and_recovery_come_from_differences() {
        assert_eq!(
            rate(&samples()).points,
            [(2.0, 20.0), (3.0, 0.0), (4.0, 1.0)]
        );
        assert_eq!(between(&samples(), (1.0, 3.0)), 10.0);
        assert_eq!(between(&samples(), (1.5, 1.6)), 0.0);
        assert_eq!(resident(&samples()).points[0], (1.0, 1.0));
        let fine: Vec<Sample> = [
            (0.0, 0),
            (0.6, 0),
            (1.0, 0),
            (1.6, 30),
            (2.0, 50),
            (2.8, 90),
        ]
        .map(|(at, successes)| Sample {
            at,
            successes,
            others: 0,
            resident: 0,
        })
        .into();
        assert_eq!(back_after(&fine, 0.5, 45.0), Some(0.5));
        assert_eq!(back_after(&fine, 0.5, 300.0), None);
    }
}
