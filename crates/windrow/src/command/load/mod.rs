//! `windrow load`: loads files into a table.

mod args;
mod show;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use windrow::load::{LoadError, Loading, MadeColumn, Summary};

pub(crate) use self::args::Load;
use crate::command::run::{self, INTERRUPTED};
use crate::command::status_page::Far;
use crate::command::summary::Summary as Told;
use crate::shutdown::Signals;
use crate::telemetry;

/// The command's name.
const NAME: &str = "load";

/// The exit status of a load at its end, if some rows were refused or a last line without its end
/// was left.
const SOME_REFUSED: u8 = 3;

/// The refused rows that are shown one by one.
const SHOWN_ROWS: u64 = 10;

/// Runs the command.
pub(crate) fn run(args: &Load) -> ExitCode {
    run::run(args.log.as_deref(), async {
        let mut told = Told::new(args.summary, NAME);
        let outcome = to_the_end(args, &mut told).await;
        told.tell(&outcome, INTERRUPTED)?;
        outcome
    })
}

async fn to_the_end(args: &Load, told_at_end: &mut Told) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let screen = Arc::new(args.progress.screen());
    let (listener, told) = (Arc::clone(&screen), AtomicU64::new(0));
    let loading = Loading::open(
        args.settings()?,
        args.files(),
        Box::new(move |reject| match told.fetch_add(1, Ordering::Relaxed) {
            n if n < SHOWN_ROWS => listener.say(&format!("refused: {}", reject.sentence())),
            SHOWN_ROWS => {
                listener.say("refused: further rows are counted and not shown one by one");
            }
            _ => {}
        }),
    )
    .await?;
    let (started, stop, meter) = (Instant::now(), loading.stop(), loading.meter());
    let rejects = loading.rejects();
    let resumes = args.resumes();
    let show = tokio::spawn(show::run(
        Arc::clone(&screen),
        loading.meter(),
        loading.bytes(),
    ));
    let (read, all) = (loading.meter(), loading.bytes());
    let what = (NAME, args.what());
    let on_page = args
        .on_status_page
        .tell(what, Arc::clone(&screen), move || {
            let read = read.read();
            Far {
                rows: read.rows(),
                refused: read.rejected,
                done: all.map(|all| read.bytes as f64 / (all as f64).max(1.0)),
            }
        });
    let mut running = std::pin::pin!(loading.run());
    let outcome = tokio::select! {
        outcome = &mut running => outcome,
        () = signals.next() => {
            screen.say("stopping: finishing what is under way; a second signal ends at once");
            stop.cancel();
            tokio::select! {
                outcome = &mut running => outcome,
                () = signals.next() => anyhow::bail!("ended at once by a second signal; rows under way were not waited for"),
            }
        }
    };
    show.abort();
    if let Some(on_page) = on_page {
        on_page.end(outcome.is_ok()).await;
    }
    screen.clear();
    let kept = rejects.kept();
    let any_refused = kept.is_some();
    rejects.close();
    if let Some((rows, reasons)) = kept {
        told_at_end.set("rejects", rows.display().to_string());
        told_at_end.set("reasons", reasons.display().to_string());
        let (rows, reasons) = (rows.display(), reasons.display());
        telemetry::say(&format!(
            "refused rows are in {rows}, the reasons in {reasons}"
        ));
    }
    let counts = meter.read();
    for (name, count) in [
        ("written", counts.written),
        ("left_out", counts.ignored),
        ("refused", counts.rejected),
        ("done_before", counts.before),
        ("bytes_read", counts.bytes),
    ] {
        told_at_end.set(name, count);
    }
    let so_far = format!("{} rows were written before", counts.written);
    match outcome {
        Ok(summary) => {
            told_at_end.set("files", summary.files);
            told_at_end.set("form", summary.form.to_string());
            for line in made(&summary.made) {
                telemetry::say(&line);
            }
            for (file, lines, first) in &summary.empty_lines {
                let were = if *lines == 1 {
                    "line was"
                } else {
                    "lines were"
                };
                telemetry::say(&format!(
                    "{file}, line {first}: {lines} empty {were} passed over"
                ));
            }
            for (file, line) in &summary.backslashes {
                telemetry::say(&format!(
                    "warning: {file}, line {line}: backslashes were loaded as they stand, and look like escapes of COPY's text \
                     format (\\t, \\n, \\\\); if they are, load the file with --format text, and if not, --escape none says so"
                ));
            }
            for (file, line) in &summary.left {
                telemetry::say(&unfinished(file, *line));
            }
            telemetry::say(&sentence(&summary, started.elapsed().as_secs_f64()));
            // Rows that an earlier run wrote to the file of rejects are not in the table either.
            let any_left = !summary.left.is_empty();
            Ok(
                match summary.counts.rejected > 0 || any_refused || any_left {
                    false => ExitCode::SUCCESS,
                    true => ExitCode::from(SOME_REFUSED),
                },
            )
        }
        Err(LoadError::Interrupted) => {
            telemetry::say(&format!("interrupted; {so_far}{}", how_to_go_on(resumes)));
            Ok(ExitCode::from(INTERRUPTED))
        }
        Err(error) if counts.written + counts.ignored + counts.rejected == 0 => Err(error.into()),
        Err(error) => Err(anyhow::anyhow!(
            "{error}; {so_far}{}",
            how_to_go_on(resumes)
        )),
    }
}

fn how_to_go_on(resumes: bool) -> &'static str {
    match resumes {
        true => ": the same command goes on from there",
        false => {
            " and stay: to load the rest, run it again with --on-conflict ignore (needs a key), or begin with --resume next time"
        }
    }
}

/// Describes columns that were created or widened, and the words because of which they are text.
fn made(columns: &[MadeColumn]) -> Vec<String> {
    let list = |declared: bool| -> Vec<String> {
        let columns = columns.iter().filter(|made| made.declared == declared);
        columns
            .map(|made| match &*made.type_name {
                "" => format!("{} of any type", made.column),
                known => format!("{} {known}", made.column),
            })
            .collect()
    };
    let mut lines = Vec::new();
    for (types, why) in [
        (list(true), "as the file declares them"),
        (list(false), "from the rows"),
    ] {
        if !types.is_empty() {
            lines.push(format!("columns made {why}: {}", types.join(", ")));
        }
    }
    for (made, odd) in columns
        .iter()
        .filter_map(|made| Some((made, made.odd.as_ref()?)))
    {
        let (text, file, line) = (&odd.text, &made.file, odd.line);
        let mut told = format!(
            "column {} holds text and not {}: {file}, line {line} has {text:?}",
            made.column, odd.among
        );
        if odd.is_nothing {
            told.push_str(&format!(
                "; if that means no value, make the table again with --null '{text}' --null ''"
            ));
        }
        lines.push(told);
    }
    lines
}

/// Describes a last line that was not loaded.
fn unfinished(file: &str, line: u64) -> String {
    format!(
        "{file}, line {line}: the last line has no line end, so it may be half written, and was left for a later run; if it is \
         whole, end it with a line feed and run the same command again"
    )
}

/// Returns a sentence about what was done.
fn sentence(summary: &Summary, seconds: f64) -> String {
    let counts = summary.counts;
    let files = match summary.files {
        1 => "1 file".to_owned(),
        n => format!("{n} files"),
    };
    if counts.rows() == 0 && counts.before > 0 {
        return format!(
            "nothing to do: an earlier run is done with all {} rows of {files}",
            counts.before
        );
    }
    let mut text = format!("{} rows written", counts.written);
    for (count, what) in [
        (counts.ignored, "left out, for their keys were there"),
        (counts.rejected, "refused"),
        (counts.before, "done by an earlier run"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text.push_str(&format!("; {files}, {seconds:.1} s"));
    if counts.written > 0 {
        let rate = counts.rows() as f64 / seconds.max(1e-3);
        text.push_str(&format!(", {rate:.0} rows/s by {}", summary.form));
    }
    text
}
