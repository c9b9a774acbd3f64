//! Figures of an experiment: printed, and stored with all that is needed to repeat it.

mod compare;
mod date;
mod figure;
mod limit;
mod machine;
mod metrics;
pub mod plot;
mod pulse;
mod repeat;
mod report;
mod steal;
mod table;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::say;
pub use compare::Compare;
pub use figure::Figure;
pub use limit::LIMIT;
pub use metrics::{Meter, Metrics, mib, micros};
use plot::{Curve, Point};
pub use repeat::{Again, undisturbed};
use steal::Steal;
use table::Spread;

/// The file that holds every single figure of a run.
const RAW: &str = "raw.csv";

/// An experiment's figures.
#[derive(Debug)]
pub struct Run {
    name: String,
    title: String,
    figures: Vec<Figure>,
    remarks: Vec<String>,
    files: Vec<(String, String)>,
    versions: Vec<(String, String)>,
    published: Vec<Figure>,
    steal: Steal,
}

impl Run {
    /// Nothing measured yet. The name becomes part of the folder's.
    pub fn new(name: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            figures: Vec::new(),
            remarks: Vec::new(),
            files: Vec::new(),
            versions: Vec::new(),
            published: Vec::new(),
            steal: Steal::begin(),
        }
    }

    /// Keeps one number.
    pub fn add(&mut self, round: u32, arm: &str, metric: &str, value: f64) {
        self.figures.push(Figure {
            round,
            arm: arm.into(),
            metric: metric.into(),
            value,
        });
    }

    /// Keeps the numbers of one arm in one round, and prints them.
    pub fn add_all(&mut self, round: u32, arm: &str, metrics: &Metrics) {
        let mut line = format!("round {round}  {arm:<28}");
        for (metric, value) in &metrics.0 {
            self.add(round, arm, metric, *value);
            write!(line, "  {metric} {}", table::number(*value)).ok();
        }
        say::line(&line);
    }

    /// Measures all cells in each round: from the first to the last, and in every second round from
    /// the last to the first.
    ///
    /// # Errors
    /// A measurement fails.
    pub fn rounds<C: Copy>(
        &mut self,
        rounds: u32,
        cells: &[C],
        mut measure: impl FnMut(&mut Self, u32, C) -> Result<()>,
    ) -> Result<()> {
        for round in 1..=rounds {
            for cell in in_turn(round, cells) {
                measure(self, round, cell)?;
            }
        }
        Ok(())
    }

    /// The median over all rounds.
    ///
    /// # Errors
    /// It was never measured.
    pub fn median(&self, arm: &str, metric: &str) -> Result<f64> {
        table::median(&self.figures, arm, metric)
            .with_context(|| format!("{metric} of {arm} was not measured"))
    }

    /// Returns the last figure of a round.
    pub fn of_round(&self, round: u32, arm: &str, metric: &str) -> Option<f64> {
        let is_it = |figure: &&Figure| {
            (figure.round, &*figure.arm, &*figure.metric) == (round, arm, metric)
        };
        Some(self.figures.iter().rfind(is_it)?.value)
    }

    /// The medians of arms with their spread, each at its size. Arms that were not measured are
    /// left out.
    pub fn curve(&self, name: &str, metric: &str, arms: &[(f64, String)]) -> Curve {
        let point = |(x, arm): &(f64, String)| {
            let Spread {
                median, low, high, ..
            } = Spread::of(&self.figures, arm, metric)?;
            Some(Point {
                x: *x,
                median,
                low,
                high,
            })
        };
        Curve {
            name: name.to_owned(),
            points: arms.iter().filter_map(point).collect(),
        }
    }

    /// A sentence for the report, printed too.
    pub fn remark(&mut self, text: impl Into<String>) {
        let text = text.into();
        say::line(&text);
        self.remarks.push(text);
    }

    /// Adds a figure that others have published of an arm, to be shown beside the measured ones.
    pub fn published(&mut self, arm: &str, metric: &str, value: f64) {
        self.published.push(Figure {
            round: 0,
            arm: arm.into(),
            metric: metric.into(),
            value,
        });
    }

    /// The version of something that took part.
    pub fn version(&mut self, what: &str, version: impl Into<String>) {
        self.versions.push((what.into(), version.into()));
    }

    /// Another file of the report (a plot, a time series).
    pub fn file(&mut self, name: &str, text: String) {
        self.files.push((name.into(), text));
    }

    /// Writes everything to a new folder below `root` and says where. The folder's name says it
    /// where the machine was taken away meanwhile.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn store(mut self, root: &Path) -> Result<PathBuf> {
        let (taken, warning) = self.steal.end();
        self.version("taken from the machine while it ran (steal)", taken);
        let mark = warning.as_ref().map_or("", |_| repeat::MARK);
        for sentence in limit::remarks(&self.figures).into_iter().chain(warning) {
            self.remark(sentence);
        }
        let folder = new_folder(root, &format!("{}-{}{mark}", date::today(), self.name))?;
        let table = table::medians(&self.figures);
        fs::write(folder.join(RAW), table::csv(&self.figures)?)?;
        self.versions.extend(machine::versions());
        fs::write(folder.join("summary.md"), self.summary(&table))?;
        fs::write(folder.join("report.html"), self.report())?;
        for (name, text) in &self.files {
            fs::write(folder.join(name), text)?;
        }
        say::line(&format!("\n{table}\nstored in {}", folder.display()));
        Ok(folder)
    }

    fn report(&self) -> String {
        let plots = self.files.iter().filter(|(name, _)| name.ends_with(".svg"));
        report::html(
            &report::Words {
                title: &self.title,
                date: &date::today(),
                command: &machine::command(),
                remarks: &self.remarks,
                versions: &self.versions,
                plots: plots.map(|(_, svg)| svg.as_str()).collect(),
            },
            &self.figures,
            &self.published,
        )
    }

    fn summary(&self, table: &str) -> String {
        let mut text = format!(
            "# {}\n\n{}, `{}`\n\n",
            self.title,
            date::today(),
            machine::command()
        );
        for remark in &self.remarks {
            writeln!(text, "- {remark}").ok();
        }
        write!(
            text,
            "\nMedians of all rounds (every figure is in `{RAW}`):\n\n{table}\n"
        )
        .ok();
        text.push_str(&table::published(&self.figures, &self.published));
        for (name, _) in self.files.iter().filter(|(name, _)| name.ends_with(".svg")) {
            write!(text, "![{name}]({name})\n\n").ok();
        }
        text.push_str("| | |\n| --- | --- |\n");
        for (what, value) in &self.versions {
            writeln!(text, "| {what} | {value} |").ok();
        }
        text
    }
}

/// Returns the cells in the order of a round: every second one goes from the last to the first.
pub fn in_turn<C: Copy>(round: u32, cells: &[C]) -> Vec<C> {
    let mut cells = cells.to_vec();
    if round.is_multiple_of(2) {
        cells.reverse();
    }
    cells
}

/// `name`, or `name-2`, `name-3` and so on if there has been one today.
fn new_folder(root: &Path, name: &str) -> Result<PathBuf> {
    fs::create_dir_all(root).with_context(|| format!("cannot make {}", root.display()))?;
    let names = std::iter::once(name.to_owned()).chain((2..).map(|n| format!("{name}-{n}")));
    for name in names {
        let folder = root.join(name);
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e).with_context(|| format!("cannot make {}", folder.display())),
        }
    }
    anyhow::bail!("no folder")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_stored_whole_and_beside_the_last_one() {
        let root = tempfile::tempdir().unwrap();
        let stored = |value| {
            let mut run = Run::new("demo", "A demonstration");
            run.add_all(1, "one", &Metrics::new().with("rows/s", value));
            run.add_all(2, "one", &Metrics::new().with("rows/s", 3.0));
            run.remark("as expected");
            run.published("one", "rows/s", 2.0);
            run.file("x.svg", "<svg/>".into());
            run.store(root.path()).unwrap()
        };
        let (first, second) = (stored(1.0), stored(5.0));
        assert_ne!(first, second);
        let csv = fs::read_to_string(first.join(RAW)).unwrap();
        assert_eq!(
            csv,
            "round,arm,metric,value\n1,one,rows/s,1.0\n2,one,rows/s,3.0\n"
        );
        let summary = fs::read_to_string(second.join("summary.md")).unwrap();
        assert!(summary.contains("| one | 4.00 |"), "{summary}");
        assert!(
            summary.contains("| one | rows/s | 2.00 | 4.00 |"),
            "{summary}"
        );
        assert!(summary.contains("- as expected\n") && summary.contains("![x.svg](x.svg)"));
        let page = fs::read_to_string(second.join("report.html")).unwrap();
        for part in [
            "A demonstration",
            "as expected",
            "<svg/>",
            "one: 4.00 (3.00 .. 5.00)",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
