//! What is told while a move runs.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use windrow::relocate::{Counted, Counts};

use super::args::Progress;
use crate::telemetry;

/// How often the line on a terminal is drawn, and how often a line is written elsewhere if rows were moved.
const DRAWN: Duration = Duration::from_millis(100);
const LINES: Duration = Duration::from_secs(5);

/// Where it is told.
pub(super) struct Screen {
    bar: Option<ProgressBar>,
    lines: bool,
}

impl Screen {
    pub(super) fn new(progress: Progress) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = progress == Progress::Auto && terminal;
        Self {
            bar: bar.then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())),
            lines: progress == Progress::Plain || (progress == Progress::Auto && !terminal),
        }
    }

    /// A line to a person.
    pub(super) fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| telemetry::say(text)),
            None => telemetry::say(text),
        }
    }

    /// Takes away what was drawn.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Tells how far it is until its future is dropped.
    pub(super) async fn run(self: Arc<Self>, counts: Arc<Counts>) {
        let started = Instant::now();
        if let Some(bar) = &self.bar {
            if let Ok(style) = ProgressStyle::with_template("{spinner}  {msg}  {elapsed}") {
                bar.set_style(style);
            }
            loop {
                bar.set_message(line(counts.read(), started.elapsed()));
                bar.tick();
                tokio::time::sleep(DRAWN).await;
            }
        }
        if !self.lines {
            return;
        }
        let mut told = Counted::default();
        loop {
            tokio::time::sleep(LINES).await;
            let now = counts.read();
            if std::mem::replace(&mut told, now) != now {
                telemetry::say(&line(now, started.elapsed()));
            }
        }
    }
}

fn line(counted: Counted, elapsed: Duration) -> String {
    let rows = counted.moved + counted.rejected;
    let rate = rows as f64 / elapsed.as_secs_f64().max(1e-3);
    let mut text = format!("{} rows, {rate:.0}/s", HumanCount(rows));
    if counted.rejected > 0 {
        text.push_str(&format!(
            ", {} to the dead letters",
            HumanCount(counted.rejected)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_rows_and_rate() {
        let counted = Counted {
            moved: 9_998,
            rejected: 2,
            batches: 1,
        };
        let told = line(counted, Duration::from_secs(2));
        assert_eq!(told, "10,000 rows, 5000/s, 2 to the dead letters");
    }
}
