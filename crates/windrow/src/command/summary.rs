//! The summary of a command, for programs.

use std::process::ExitCode;
use std::time::Instant;

use serde_json::{Map, Value};

use crate::command::progress::SummaryAs;
use crate::output;

/// The fields of a summary, for any end of the command.
pub(crate) struct Summary {
    told_as: SummaryAs,
    begun: Instant,
    fields: Map<String, Value>,
}

impl Summary {
    pub(crate) fn new(told_as: SummaryAs, command: &str) -> Self {
        let mut fields = Map::new();
        fields.insert("command".into(), command.into());
        Self {
            told_as,
            begun: Instant::now(),
            fields,
        }
    }

    /// Adds a field, or changes it.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.insert(name.into(), value.into());
    }

    /// Prints the summary with the outcome. `interrupted` is the exit status of an interrupted
    /// command.
    ///
    /// # Errors
    /// Standard output cannot be written to.
    pub(crate) fn tell(
        mut self,
        outcome: &anyhow::Result<ExitCode>,
        interrupted: u8,
    ) -> anyhow::Result<()> {
        if self.told_as == SummaryAs::Text {
            return Ok(());
        }
        let word = match outcome {
            Ok(status) if *status == ExitCode::SUCCESS => "done",
            Ok(status) if *status == ExitCode::from(interrupted) => "interrupted",
            Ok(_) => "done with rejects",
            Err(error) => {
                self.set("error", format!("{error:#}"));
                "failed"
            }
        };
        self.set("outcome", word);
        let seconds = self.begun.elapsed().as_secs_f64();
        self.set("seconds", (seconds * 1000.0).round() / 1000.0);
        output::print(&format!("{}\n", Value::Object(self.fields)))
    }
}
