//! Time that the host gave to others while a run was measured: figures of such a run mislead.

use std::fs;

/// A run of which a larger share was taken is marked, and measured again.
const STATED: f64 = 0.02;

/// The machine's time at the beginning of a run, in ticks: all of it, and what was taken away.
#[derive(Debug)]
pub(super) struct Steal(Option<(u64, u64)>);

impl Steal {
    pub(super) fn begin() -> Self {
        Self(
            fs::read_to_string("/proc/stat")
                .ok()
                .and_then(|text| ticks(&text)),
        )
    }

    /// The share since the beginning, and what to say where it is a large one.
    pub(super) fn end(&self) -> (String, Option<String>) {
        let share = self.0.zip(Self::begin().0).and_then(share);
        let Some(share) = share else {
            return ("not known".to_owned(), None);
        };
        let shown = format!("{:.1} %", share * 100.0);
        let warning = (share > STATED).then(|| {
            let most = STATED * 100.0;
            format!("{shown} of the machine's time was taken by its host while this ran, more than {most} %: it is no figure to report")
        });
        (shown, warning)
    }
}

/// The sum of the first line's columns, and the eighth of them (`proc_stat(5)`). Guests' time is in
/// that of their users already.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let columns: Vec<u64> = line
        .split_whitespace()
        .take(8)
        .flat_map(str::parse)
        .collect();
    Some((columns.iter().sum(), *columns.get(7)?))
}

fn share(((all, taken), (all_now, taken_now)): ((u64, u64), (u64, u64))) -> Option<f64> {
    let (all, taken) = (all_now.checked_sub(all)?, taken_now.checked_sub(taken)?);
    let parts = (u32::try_from(taken).ok()?, u32::try_from(all).ok()?);
    (all > 0).then(|| f64::from(parts.0) / f64::from(parts.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_of_the_time_since_the_beginning() {
        let before = ticks("cpu  10 0 10 70 5 0 0 5 3 0\ncpu0 1\n").unwrap();
        let after = ticks("cpu  20 0 20 140 5 0 0 15 3 0\n").unwrap();
        assert_eq!((before, after), ((100, 5), (200, 15)));
        assert_eq!(share((before, after)), Some(0.1));
        assert_eq!(share((before, before)), None);
        assert_eq!(ticks("intr 1"), None);
    }
}
