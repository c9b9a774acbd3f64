//! How a command shows its progress, and its end.

use std::io::IsTerminal;
use std::time::Duration;

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::telemetry;

/// How often what is on a terminal is drawn.
pub(crate) const DRAWN: Duration = Duration::from_millis(100);

/// How often a line is written, at most.
pub(crate) const LINES: Duration = Duration::from_secs(5);

/// How progress is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Progress {
    /// Drawn in one place on a terminal, lines elsewhere
    Auto,
    /// Lines
    Plain,
    /// Nothing
    None,
}

impl Progress {
    /// Where it is told then.
    pub(crate) fn screen(self) -> Screen {
        match self {
            Self::Auto => Screen::auto(),
            Self::Plain => Screen::plain(true),
            Self::None => Screen::plain(false),
        }
    }
}

/// How the end of a command is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SummaryAs {
    /// A line on standard error
    Text,
    /// The same, and one JSON object on standard output
    Json,
}

/// Where progress is told.
pub(crate) struct Screen {
    /// What is drawn again and again on a terminal.
    pub(crate) bar: Option<ProgressBar>,
    /// Whether lines are written.
    pub(crate) lines: bool,
}

impl Screen {
    /// A bar on a terminal, lines elsewhere.
    pub(crate) fn auto() -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self {
            bar: terminal
                .then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())),
            lines: !terminal,
        }
    }

    /// Lines, or nothing.
    pub(crate) fn plain(lines: bool) -> Self {
        Self { bar: None, lines }
    }

    /// A line to a person, above the bar if there is one.
    pub(crate) fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| telemetry::say(text)),
            None => telemetry::say(text),
        }
    }

    /// Takes away what was drawn.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
