//! Shows the progress of a command, and its end.

use std::io::IsTerminal;
use std::time::Duration;

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::telemetry;

/// The interval at which a terminal is drawn.
pub(crate) const DRAWN: Duration = Duration::from_millis(100);

/// The least time between two lines.
pub(crate) const LINES: Duration = Duration::from_secs(5);

/// The form of progress.
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
    /// Returns the screen for this form.
    pub(crate) fn screen(self) -> Screen {
        match self {
            Self::Auto => Screen::auto(),
            Self::Plain => Screen::plain(true),
            Self::None => Screen::plain(false),
        }
    }
}

/// The form of a command's summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SummaryAs {
    /// A line on standard error
    Text,
    /// The same, and one JSON object on standard output
    Json,
}

/// The place where progress is shown.
pub(crate) struct Screen {
    /// The bar that is drawn on a terminal.
    pub(crate) bar: Option<ProgressBar>,
    /// True if lines are written.
    pub(crate) lines: bool,
}

impl Screen {
    /// Makes a screen: a bar on a terminal, lines elsewhere.
    pub(crate) fn auto() -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self {
            bar: terminal
                .then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())),
            lines: !terminal,
        }
    }

    /// Makes a screen of lines, or one that shows nothing.
    pub(crate) fn plain(lines: bool) -> Self {
        Self { bar: None, lines }
    }

    /// Writes a line for a person, above the bar if there is one.
    pub(crate) fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| telemetry::say(text)),
            None => telemetry::say(text),
        }
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
