//! Two stored runs side by side: which differences are larger than the noise.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::figure::Figure;
use super::table::{self, Spread};
use crate::say;

/// Fewer rounds than this say nothing about the noise.
const ROUNDS: usize = 3;

/// Two stored runs to compare.
#[derive(Args)]
pub struct Compare {
    /// A run's folder, below `benchmarks/runs`: the one to compare with.
    a: PathBuf,
    /// Another run's folder.
    b: PathBuf,
}

impl Compare {
    /// Prints both runs' medians and whether they differ by more than the noise.
    ///
    /// # Errors
    /// A run cannot be read, or both have no figure in common.
    pub fn run(&self) -> Result<()> {
        let table = compare(&read(&self.a)?, &read(&self.b)?);
        let (a, b) = (self.a.display(), self.b.display());
        ensure!(
            table.lines().count() > 2,
            "{a} and {b} have no figure in common: compare two runs of one experiment"
        );
        say::line(&format!("A: {a}\nB: {b}\n\n{table}\n{RULE}"));
        Ok(())
    }
}

const RULE: &str = "Each cell is the median of the rounds (smallest .. largest). A difference is \
     larger than the noise if no round of A reaches into the range of B's rounds; with fewer than \
     three rounds in either run nothing can be said.";

fn read(folder: &Path) -> Result<Vec<Figure>> {
    let path = folder.join(super::RAW);
    let shown = path.display();
    csv::Reader::from_path(&path)
        .and_then(|mut reader| reader.deserialize().collect())
        .with_context(|| format!("cannot read {shown}: give the folder of a stored run"))
}

/// A Markdown table of all that both runs measured.
fn compare(a: &[Figure], b: &[Figure]) -> String {
    let mut text = String::from("| | | A | B | B / A | larger than the noise |\n");
    text.push_str("| --- | --- | --- | --- | --- | --- |\n");
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for Figure { arm, metric, .. } in a {
        if seen.contains(&(arm, metric)) {
            continue;
        }
        seen.push((arm, metric));
        let Some((one, other)) = Spread::of(a, arm, metric).zip(Spread::of(b, arm, metric)) else {
            continue;
        };
        let ratio = match one.median {
            0.0 => String::new(),
            median => table::number(other.median / median),
        };
        let verdict = verdict(&one, &other);
        let (one, other) = (one.shown(), other.shown());
        writeln!(
            text,
            "| {arm} | {metric} | {one} | {other} | {ratio} | {verdict} |"
        )
        .ok();
    }
    text
}

/// Says if two runs differ by more than the noise.
fn verdict(one: &Spread, other: &Spread) -> &'static str {
    if one.rounds.min(other.rounds) < ROUNDS {
        "too few rounds"
    } else if one.high < other.low || other.high < one.low {
        "yes"
    } else {
        "no"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Run;

    fn stored(root: &Path, arms: &[(&str, &[f64])]) -> Vec<Figure> {
        let mut run = Run::new("demo", "A demonstration");
        for (arm, values) in arms {
            for (round, value) in (1..).zip(*values) {
                run.add(round, arm, "rows/s", *value);
            }
        }
        read(&run.store(root).unwrap()).unwrap()
    }

    #[test]
    fn only_what_no_round_contradicts_is_a_difference() {
        let root = tempfile::tempdir().unwrap();
        let a = stored(
            root.path(),
            &[
                ("apart", &[10.0, 11.0, 12.0]),
                ("touching", &[10.0, 11.0, 12.0]),
                ("few", &[10.0, 11.0]),
                ("gone", &[1.0]),
            ],
        );
        let b = stored(
            root.path(),
            &[
                ("apart", &[22.0, 20.0, 24.0]),
                ("touching", &[12.0, 20.0, 24.0]),
                ("few", &[20.0, 21.0]),
            ],
        );
        let table = compare(&a, &b);
        let rows: Vec<_> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| apart | rows/s | 11.00 (10.00 .. 12.00) | 22.00 (20.00 .. 24.00) | 2.00 | yes |",
                "| touching | rows/s | 11.00 (10.00 .. 12.00) | 20.00 (12.00 .. 24.00) | 1.82 | no |",
                "| few | rows/s | 10.50 (10.00 .. 11.00) | 20.50 (20.00 .. 21.00) | 1.95 | too few rounds |",
            ]
        );
    }

    #[test]
    fn a_folder_without_figures_is_named() {
        let root = tempfile::tempdir().unwrap();
        let error = read(root.path()).unwrap_err().to_string();
        assert!(error.contains("raw.csv"), "{error}");
    }
}
