//! The server's answers to a portion.

use windrow_core::{Fault, FaultClass, LoadFault};

use super::row_checks::Judge;
use windrow_pgwire::class_of;
use windrow_pgwire::wire::{Answer, Broken, ServerError};

/// The statements of a portion, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Readers of the marks wait from now on.
    Hold,
    /// The stage (a temporary table) is created.
    Stage,
    /// Rows are copied in.
    Copy,
    /// Rows go from the stage into their table.
    Merge,
    /// The mark is written.
    Mark,
    /// The table is compared with its description.
    Check,
}

/// The answers received so far.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Row counts of the statements that succeeded.
    done: Vec<u64>,
    pub(super) error: Option<ServerError>,
}

impl Answers {
    pub(super) fn take(&mut self, answer: Answer<'_>) {
        match answer {
            Answer::CommandComplete(tag) => self.done.push(tag.rows()),
            // Only the first error is kept: an error at the commit comes last, and alone.
            Answer::Error(error) if self.error.is_none() => self.error = Some(error),
            _ => {}
        }
    }

    /// Returns the row count of a statement that succeeded.
    pub(super) fn rows(&self, steps: &[Step], step: Step) -> Option<u64> {
        let place = steps.iter().position(|s| *s == step)?;
        self.done.get(place).copied()
    }

    /// Returns true if all statements succeeded, so that the commit is next.
    fn at_commit(&self, steps: &[Step]) -> bool {
        self.done.len() >= steps.len()
    }

    /// Returns the checks that may have refused a row, of those that can be asked before.
    pub(super) fn judges(&self) -> &'static [Judge] {
        self.error
            .as_ref()
            .map_or(&[], |error| Judge::of(&error.code))
    }

    /// Returns the number of the refused row among those copied in, from 1. Reads `COPY weather,
    /// line 3, column temp: "x"`, in any language. `target`: the table that is copied into.
    pub(super) fn line(&self, target: &str) -> Option<usize> {
        let context = self.error.as_ref()?.context.as_ref()?;
        context.lines().find_map(|line| {
            let line = line.strip_prefix("COPY ")?.strip_prefix(target)?;
            let number = line
                .strip_prefix(", ")?
                .trim_start_matches(|c: char| !c.is_ascii_digit());
            let end = number.find(|c: char| !c.is_ascii_digit());
            number.get(..end.unwrap_or(number.len()))?.parse().ok()
        })
    }

    /// Returns the reason why the server refused the portion, if it did.
    pub(super) fn refusal(&mut self, steps: &[Step]) -> Option<LoadFault> {
        let error = self.error.take()?;
        Some(refusal(steps.get(self.done.len()).copied(), error))
    }

    /// Returns the portion's fault after its connection ended. `said`: the portion's number of
    /// bytes, with the Sync that commits it; `None` if the Sync was never appended.
    pub(super) fn lost(&self, steps: &[Step], said: Option<usize>, broken: &Broken) -> LoadFault {
        let left = said.is_some_and(|said| said <= broken.sent);
        // The server answers in order: the error that ended the connection came before everything
        // that was not answered yet.
        let ended_before = broken.error.is_some() && !self.at_commit(steps);
        if !left || self.error.is_some() || ended_before {
            LoadFault::Again(broken.unavailable())
        } else {
            LoadFault::Unknown(broken.unknown())
        }
    }
}

/// Returns the portion's fault for an error. `step`: the statement that failed; `None` for the
/// commit.
fn refusal(step: Option<Step>, error: ServerError) -> LoadFault {
    let class = class_of(&error.code);
    if step == Some(Step::Check) && error.code == "22012" {
        return LoadFault::Again(altered());
    }
    // An error in the statement itself has no context. An error in a row has the context of its
    // COPY or trigger.
    let of_the_statement = step.is_some() && error.context.is_none();
    let never = matches!(
        class,
        FaultClass::NoTable | FaultClass::NoColumn | FaultClass::Denied | FaultClass::Invalid
    );
    let fault = with_context(error);
    match class {
        FaultClass::Unknown => LoadFault::Unknown(fault),
        FaultClass::Conflict | FaultClass::Unavailable => LoadFault::Again(fault),
        _ if matches!(step, Some(Step::Hold | Step::Mark)) => LoadFault::Hopeless(fault),
        _ if never && of_the_statement => LoadFault::Hopeless(fault),
        _ => LoadFault::Refused(fault),
    }
}

fn altered() -> Fault {
    Fault::new(
        FaultClass::Conflict,
        "55006",
        "the table was altered while rows were on their way into it",
    )
}

/// Converts a server's error and adds its context to the detail.
fn with_context(error: ServerError) -> Fault {
    let context = error.context.clone();
    let fault = Fault::from(error);
    match (context, fault.detail()) {
        (None, _) => fault,
        (Some(context), None) => fault.with_detail(Some(context)),
        (Some(context), Some(detail)) => {
            let both = format!("{detail} ({context})");
            fault.with_detail(Some(both))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_pgwire::wire::Words;

    fn error(code: &str, context: Option<&str>) -> ServerError {
        Words {
            code: code.to_owned(),
            message: "m".to_owned(),
            context: context.map(str::to_owned),
            ..Words::default()
        }
        .into()
    }

    #[test]
    fn an_error_means_what_its_place_makes_of_it() {
        let copying = Some("COPY t, line 3");
        for (step, code, context, expected) in [
            (Some(Step::Copy), "42P01", None, "hopeless"),
            (Some(Step::Copy), "42501", None, "hopeless"),
            // A trigger raises it for a row.
            (Some(Step::Copy), "42501", copying, "refused"),
            (Some(Step::Copy), "22P02", copying, "refused"),
            (Some(Step::Merge), "42P10", None, "hopeless"),
            (Some(Step::Merge), "23505", None, "refused"),
            (Some(Step::Mark), "42P01", None, "hopeless"),
            (Some(Step::Mark), "40001", None, "again"),
            (Some(Step::Copy), "40P01", copying, "again"),
            (Some(Step::Copy), "25006", None, "again"),
            (Some(Step::Copy), "57014", copying, "refused"),
            (Some(Step::Check), "22012", None, "again"),
            (None, "23503", None, "refused"),
            (None, "40001", None, "again"),
            (None, "42501", None, "refused"),
        ] {
            let found = match refusal(step, error(code, context)) {
                LoadFault::Refused(_) => "refused",
                LoadFault::Again(_) => "again",
                LoadFault::Hopeless(_) => "hopeless",
                LoadFault::Unknown(_) => "unknown",
            };
            assert_eq!(found, expected, "{step:?} {code}");
        }
    }

    #[test]
    fn the_row_is_told_in_any_language() {
        for (context, line) in [
            ("COPY t, line 3", Some(3)),
            ("COPY t, Zeile 12, Spalte a1: \"5, 7\"", Some(12)),
            (
                "PL/pgSQL function f() line 3 at RAISE\nCOPY t, line 4",
                Some(4),
            ),
            ("COPY t2, line 3", None),
            ("SQL statement", None),
        ] {
            let answers = Answers {
                error: Some(error("22P02", Some(context))),
                ..Answers::default()
            };
            assert_eq!(answers.line("t"), line, "{context}");
        }
    }

    #[test]
    fn a_lost_connection_is_unknown_only_where_the_commit_may_have_begun() {
        let steps = [Step::Copy, Step::Check];
        let broken = |sent, fatal: bool| Broken {
            sent,
            syncs_seen: 0,
            error: fatal.then(|| error("57P01", None)),
            cause: "c".to_owned(),
        };
        let answers = |done: usize, error| Answers {
            done: vec![1; done],
            error,
        };
        let refused = || Some(error("22P02", None));
        for (answers, said, broken, unknown) in [
            (answers(0, None), None, broken(50, false), false),
            (answers(0, None), Some(100), broken(99, false), false),
            (answers(0, None), Some(100), broken(100, false), true),
            (answers(1, None), Some(100), broken(100, true), false),
            (answers(2, None), Some(100), broken(100, true), true),
            (answers(0, refused()), Some(100), broken(100, false), false),
        ] {
            let found = matches!(answers.lost(&steps, said, &broken), LoadFault::Unknown(_));
            assert_eq!(found, unknown, "{answers:?} {said:?} {broken:?}");
        }
    }
}
