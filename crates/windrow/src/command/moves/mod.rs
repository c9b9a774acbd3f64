//! `windrow move`: moves rows of a table that serves as a queue to their final tables.

mod args;
mod show;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use windrow::moves::{Counted, Moving, Planned, Prospect};

pub(crate) use self::args::Move;
use crate::command::run::{self, INTERRUPTED};
use crate::command::status_page::Far;
use crate::command::summary::Summary as Told;
use crate::shutdown::Signals;
use crate::{output, telemetry};

/// The command's name.
const NAME: &str = "move";

/// The exit status of a complete move that left rows in the dead letters, or in the source because
/// other rows refer to them.
const SOME_LEFT: u8 = 3;

/// Runs the command.
pub(crate) fn run(args: &Move) -> ExitCode {
    run::run(args.log.as_deref(), async {
        let mut told = Told::new(args.summary, NAME);
        let outcome = to_the_end(args, &mut told).await;
        told.tell(&outcome, INTERRUPTED)?;
        outcome
    })
}

async fn to_the_end(args: &Move, told_at_end: &mut Told) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let moving = Moving::open(args.settings()).await?;
    if args.dry_run {
        let planned = moving.survey().await?;
        told_at_end.set("dry_run", true);
        let referrers: Vec<&str> = moving.referrers().collect();
        let listed = listing(&planned, moving.effects(), args.delete_effects);
        output::print(&(listed + &of_referrers(&planned, &referrers)))?;
        return Ok(match planned.iter().map(|planned| planned.prospect).max() {
            None | Some(Prospect::Moved) => ExitCode::SUCCESS,
            Some(Prospect::Held | Prospect::Rejected) => ExitCode::from(SOME_LEFT),
            Some(Prospect::Ended) => ExitCode::FAILURE,
        });
    }
    let screen = Arc::new(args.progress.screen());
    let (started, counts, stop) = (Instant::now(), moving.counts(), moving.stop());
    let referrers = moving.referrers().collect::<Vec<_>>().join(", ");
    if args.follows() {
        screen.say("moving rows as they arrive; SIGINT or SIGTERM ends it");
    }
    let show = tokio::spawn(show::run(Arc::clone(&screen), counts.clone()));
    let read = counts.clone();
    let what = (NAME, args.what());
    let on_page = args
        .on_status_page
        .tell(what, Arc::clone(&screen), move || {
            let counted = read.read();
            Far {
                rows: counted.moved + counted.rejected,
                refused: counted.rejected,
                done: None,
            }
        });
    let mut running = std::pin::pin!(moving.run());
    let mut interrupted = false;
    let outcome = tokio::select! {
        outcome = &mut running => outcome,
        () = signals.next() => {
            interrupted = true;
            screen.say("stopping: finishing what is under way; a second signal ends at once");
            stop.cancel();
            tokio::select! {
                outcome = &mut running => outcome,
                () = signals.next() => anyhow::bail!("ended at once by a second signal; batches under way were not waited for"),
            }
        }
    };
    show.abort();
    if let Some(on_page) = on_page {
        on_page.end(outcome.is_ok()).await;
    }
    screen.clear();
    let counted = counts.read();
    for (name, count) in [
        ("moved", counted.moved),
        ("refused", counted.rejected),
        ("batches", counted.batches),
        ("held", counted.held),
    ] {
        told_at_end.set(name, count);
    }
    if outcome.is_ok() || counted != Counted::default() {
        let mut text = sentence(counted, started.elapsed().as_secs_f64());
        if counted.rejected > 0 && args.makes_no_tables() {
            text.push_str("; with --create tables that are not there are made");
        }
        if counted.held > 0 {
            let (held, source) = (counted.held, &args.source);
            text.push_str(&format!(
                "; {held} stay in {source}, for rows of other tables refer to them ({referrers}): delete or change those, and move again"
            ));
        }
        telemetry::say(&text);
    }
    outcome?;
    Ok(match counted.rejected + counted.held {
        _ if interrupted && !args.follows() => ExitCode::from(INTERRUPTED),
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(SOME_LEFT),
    })
}

/// Returns a sentence about what was done.
fn sentence(counted: Counted, seconds: f64) -> String {
    let rate = (counted.moved + counted.rejected) as f64 / seconds.max(1e-3);
    let batches = if counted.batches == 1 {
        "batch"
    } else {
        "batches"
    };
    let mut text = format!(
        "{} rows moved in {} {batches}; {seconds:.1} s, {rate:.0} rows/s",
        counted.moved, counted.batches
    );
    if counted.rejected > 0 {
        text.push_str(&format!(
            "; {} went to the dead letters, table windrow_rejected of the source's database: windrow dead-letters list says why",
            counted.rejected
        ));
    }
    text
}

/// Names the foreign keys that may keep rows, if they keep any.
fn of_referrers(planned: &[Planned], referrers: &[&str]) -> String {
    let mut held = planned.iter().filter(|p| p.prospect == Prospect::Held);
    match held.next() {
        Some(_) => format!("rows are kept by {}\n", referrers.join(", ")),
        None => String::new(),
    }
}

/// Returns what would be moved, one line for each destination, after one line for each side effect
/// of deleting the rows. `allowed` is true with --delete-effects.
fn listing(planned: &[Planned], effects: &[Box<str>], allowed: bool) -> String {
    let mut text = String::new();
    for effect in effects {
        let what = match allowed {
            true => "deleting the rows also runs",
            false => "refused without --delete-effects: deleting the rows also runs",
        };
        text.push_str(&format!("{what} {effect}\n"));
    }
    for planned in planned {
        let name = planned.destination.as_deref().unwrap_or("-");
        text.push_str(&format!("{:>12}  {name}", planned.rows));
        if let Some(remark) = &planned.remark {
            text.push_str(&format!("  ({remark})"));
        }
        text.push('\n');
    }
    let rows: u64 = planned.iter().map(|planned| planned.rows).sum();
    text.push_str(&format!("{rows:>12}  rows in all; nothing was changed\n"));
    text
}
