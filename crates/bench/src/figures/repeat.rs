//! A run during which the machine was taken away is marked, and measured again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::say;

/// The end of the folder's name of a marked run, or the part before the number of its repetition.
pub(super) const MARK: &str = "-disturbed";

/// The most runs of an experiment until the machine was undisturbed.
const TIMES: u32 = 3;

/// The action after a run during which the machine was disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// The run is removed, and measured again.
    Measure,
    /// The run stays with its mark: for a trial.
    Never,
}

/// Runs what stores its figures in new folders below `report`, until the machine was its own.
///
/// # Errors
/// It fails, or the machine was taken away each time: then the last run stays, with its mark.
pub fn undisturbed(
    report: &Path,
    again: Again,
    mut measure: impl FnMut(&Path) -> Result<()>,
) -> Result<()> {
    for time in 1..=TIMES {
        let before = marked(report)?;
        measure(report)?;
        let after = marked(report)?;
        let new: Vec<&PathBuf> = after.difference(&before).collect();
        if new.is_empty() || again == Again::Never {
            break;
        }
        ensure!(
            time < TIMES,
            "the machine was taken away in each of {TIMES} runs: the last one is stored, marked as disturbed; \
             measure in a quieter hour"
        );
        say::line("the machine was taken away while this ran: it is measured again");
        for folder in new {
            fs::remove_dir_all(folder)?;
        }
    }
    Ok(())
}

/// The folders of marked runs.
fn marked(report: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    if !report.exists() {
        return Ok(found);
    }
    for entry in fs::read_dir(report)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().contains(MARK) {
            found.insert(entry.path());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An experiment that is disturbed a few times.
    fn tried(root: &Path, again: Again, disturbances: u32) -> (u32, Result<()>) {
        let mut times = 0;
        let result = undisturbed(root, again, |report| {
            times += 1;
            let mark = if times <= disturbances { MARK } else { "" };
            fs::create_dir(report.join(format!("run{times}{mark}")))?;
            Ok(())
        });
        (times, result)
    }

    fn names(root: &Path) -> Vec<String> {
        let entries = fs::read_dir(root).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_disturbed_run_is_replaced_and_older_ones_stay() {
        let root = tempfile::tempdir().unwrap();
        let old = format!("old{MARK}");
        fs::create_dir(root.path().join(&old)).unwrap();
        let (times, result) = tried(root.path(), Again::Measure, 2);
        result.unwrap();
        assert_eq!(times, 3);
        assert_eq!(names(root.path()), [old, "run3".to_owned()]);
    }

    #[test]
    fn one_that_is_always_disturbed_is_an_error_and_stays_marked() {
        let root = tempfile::tempdir().unwrap();
        let (times, result) = tried(root.path(), Again::Measure, 9);
        assert_eq!(times, TIMES);
        let error = result.unwrap_err().to_string();
        assert!(error.contains("quieter hour"), "{error}");
        assert_eq!(names(root.path()), [format!("run3{MARK}")]);
    }

    #[test]
    fn a_trial_runs_once() {
        let root = tempfile::tempdir().unwrap();
        let (times, result) = tried(root.path(), Again::Never, 9);
        result.unwrap();
        assert_eq!((times, names(root.path()).len()), (1, 1));
    }
}
