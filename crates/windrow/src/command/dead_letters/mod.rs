//! `windrow dead-letters`: dead letters.

mod args;
mod show;

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use windrow::bookkeeping::{Books, Retried};
use windrow_core::Fault;

pub(crate) use self::args::DeadLetters;
use self::args::{Chosen, DeadLettersCommand, LetterPlace, List, Retry, Show};
use crate::command::run;
use crate::output::counted;
use crate::{output, telemetry};

/// The exit status if some letters were refused again or did not exist.
const SOME_LEFT: u8 = 3;

/// Letters that are read at once.
const CHUNK: usize = 100;

/// Runs the command.
pub(crate) fn run(args: &DeadLetters) -> ExitCode {
    run::run(None, async {
        match &args.what {
            DeadLettersCommand::List(args) => list(args).await,
            DeadLettersCommand::Show(args) => show(args).await,
            DeadLettersCommand::Retry(args) => retry(args).await,
            DeadLettersCommand::Drop(args) => each(args, Verb::Drop).await,
        }
    })
}

async fn look(database: &LetterPlace) -> anyhow::Result<Books> {
    let opened = Books::look(database.to.reveal(), database.spool.as_deref()).await;
    opened.context(OPENING)
}

async fn list(args: &List) -> anyhow::Result<ExitCode> {
    let books = look(&args.database).await?;
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut listing = show::Listing::new(std::io::stdout().is_terminal());
    let mut after = 0;
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        let letters = books.letters(after, most).await.context(READING)?;
        let Some(last) = letters.last() else { break };
        (after, left) = (last.id, left - letters.len() as u64);
        output::print(&match args.json {
            true => letters.iter().map(show::json).collect(),
            false => listing.lines(&letters),
        })?;
    }
    books.close().await;
    Ok(ExitCode::SUCCESS)
}

async fn show(args: &Show) -> anyhow::Result<ExitCode> {
    let books = look(&args.database).await?;
    let found = books.letter(args.id).await.context(READING)?;
    books.close().await;
    let Some(kept) = found else {
        telemetry::say(&format!("there is no dead letter {}", args.id));
        return Ok(ExitCode::from(SOME_LEFT));
    };
    output::print(&match args.json {
        true => show::json(&kept),
        false => show::all(&kept),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The action for each letter.
#[derive(Clone, Copy)]
enum Verb<'a> {
    /// The action `retry`, with the file of the letter's entry if that is not in the table.
    Retry(Option<&'a Path>),
    Drop,
}

/// The numbers of letters so far.
#[derive(Default)]
struct Tally {
    done: u64,
    refused: u64,
    gone: u64,
}

async fn retry(args: &Retry) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.entry.is_none() || args.chosen.ids.len() == 1,
        "--entry FILE is for one dead letter: name one"
    );
    each(&args.chosen, Verb::Retry(args.entry.as_deref())).await
}

async fn each(args: &Chosen, verb: Verb<'_>) -> anyhow::Result<ExitCode> {
    let database: &LetterPlace = &args.database;
    let opened = Books::open(database.to.reveal(), database.spool.as_deref()).await;
    let mut books = opened.context(OPENING)?;
    let mut tally = Tally::default();
    let worked = if args.all {
        all(&mut books, verb, &mut tally).await
    } else {
        some(&mut books, &args.ids, verb, &mut tally).await
    };
    books.close().await;
    telemetry::say(&tally.sentence(verb));
    worked.context("ended before all dead letters were done")?;
    Ok(match tally.refused + tally.gone {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(SOME_LEFT),
    })
}

async fn some(
    books: &mut Books,
    ids: &[u64],
    verb: Verb<'_>,
    tally: &mut Tally,
) -> Result<(), Fault> {
    for id in ids {
        tally.one(books, *id, verb).await?;
    }
    Ok(())
}

/// Processes the letters that exist at the start. Letters that come later, such as those that a
/// spool refuses again, need another run.
async fn all(books: &mut Books, verb: Verb<'_>, tally: &mut Tally) -> Result<(), Fault> {
    let mut after = 0;
    let last = last(books).await?;
    while after < last {
        let letters = books.letters(after, CHUNK).await?;
        let ids: Vec<u64> = letters.iter().map(|kept| kept.id).collect();
        let Some(end) = ids.last().copied() else {
            break;
        };
        drop(letters);
        for id in ids.into_iter().filter(|id| *id <= last) {
            tally.one(books, id, verb).await?;
        }
        after = end;
    }
    Ok(())
}

/// Returns the highest number of a letter.
async fn last(books: &Books) -> Result<u64, Fault> {
    let mut after = 0;
    while let Some(kept) = books.letters(after, CHUNK).await?.last() {
        after = kept.id;
    }
    Ok(after)
}

impl Tally {
    async fn one(&mut self, books: &mut Books, id: u64, verb: Verb<'_>) -> Result<(), Fault> {
        let retried = match verb {
            Verb::Retry(None) => books.retry(id).await?,
            Verb::Retry(Some(file)) => books.retry_file(id, file).await?,
            Verb::Drop if books.remove(id).await? => Retried::Written,
            Verb::Drop => Retried::Gone,
        };
        match retried {
            Retried::Written => self.done += 1,
            Retried::Gone => {
                self.gone += 1;
                telemetry::say(&format!("there is no dead letter {id}"));
            }
            Retried::Refused(fault) => {
                self.refused += 1;
                telemetry::say(&format!("dead letter {id} is refused again: {fault}"));
            }
        }
        Ok(())
    }

    /// Returns a sentence about what was done.
    fn sentence(&self, verb: Verb<'_>) -> String {
        let mut text = format!(
            "{} {}",
            counted(self.done, "dead letter", "dead letters"),
            match verb {
                Verb::Retry(_) => "written and taken away",
                Verb::Drop => "dropped",
            }
        );
        if self.refused > 0 {
            text.push_str(&format!("; {} refused again, which stay", self.refused));
        }
        if self.gone > 0 {
            text.push_str(&format!("; {} not there", self.gone));
        }
        text
    }
}

const OPENING: &str = "the dead letters cannot be opened";
const READING: &str = "the dead letters cannot be read";
