//! `windrow spool`: shows what is in a spool.

mod args;
mod dump;
mod looks;
mod show;
mod topic;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, ensure};
use tokio::task::spawn_blocking;
use windrow::bookkeeping::Books;
use windrow_bookkeeping::ProgressRow;
use windrow_core::Secret;
use windrow_spool::RealFiles;
use windrow_spool::inspect::{self, Survey};

pub(crate) use self::args::SpoolArgs;
use self::args::{SpoolCommand, SpoolLocation, SpoolStatusArgs, Verify};
use self::looks::{DAMAGED, LOOKS, has_gone};
use crate::command::run;
use crate::output;

/// Runs the command.
pub(crate) fn run(args: &SpoolArgs) -> ExitCode {
    run::run(None, async {
        match &args.what {
            SpoolCommand::Status(args) => status(args).await,
            SpoolCommand::Verify(args) => verify(args).await,
            SpoolCommand::Dump(args) => dump::run(args).await,
        }
    })
}

async fn status(args: &SpoolStatusArgs) -> anyhow::Result<ExitCode> {
    let survey = survey(&args.place, false).await?;
    let applied = match &args.to {
        Some(url) => Some(applied(url, &args.place, &survey).await?),
        None => None,
    };
    output::print(&match args.json {
        true => show::status_json(&survey, applied.as_deref()),
        false => show::status(&survey, applied.as_deref()),
    })?;
    let mut each = survey.partitions.iter().zip(applied.unwrap_or_default());
    match each.any(|(partition, applied)| show::do_not_fit(partition, applied)) {
        true => Ok(ExitCode::from(DAMAGED)),
        false => Ok(exit(&survey)),
    }
}

async fn verify(args: &Verify) -> anyhow::Result<ExitCode> {
    let survey = survey(&args.place, true).await?;
    output::print(&match args.json {
        true => show::status_json(&survey, None),
        false => show::findings(&survey),
    })?;
    Ok(exit(&survey))
}

fn exit(survey: &Survey) -> ExitCode {
    let damaged = survey.partitions.iter().any(|p| p.damage.is_some());
    ExitCode::from(if damaged { DAMAGED } else { 0 })
}

/// Reads a whole spool. One in a topic is read only if `whole` is true, because the brokers check
/// what they keep.
async fn survey(place: &SpoolLocation, whole: bool) -> anyhow::Result<Survey> {
    if let Some(url) = place.topic() {
        return topic::survey(url, whole).await;
    }
    let directory = &place.directory;
    ensure!(
        directory.is_dir(),
        "there is no directory {}",
        directory.display()
    );
    let directory = directory.clone();
    let found = spawn_blocking(move || {
        for _ in 1..LOOKS {
            match inspect::survey(Arc::new(RealFiles), &directory) {
                Err(fault) if has_gone(&fault) => {}
                found => return found,
            }
        }
        inspect::survey(Arc::new(RealFiles), &directory)
    });
    Ok(found.await??)
}

/// Returns the position up to which the database has applied each partition.
async fn applied(
    url: &Secret,
    place: &SpoolLocation,
    survey: &Survey,
) -> anyhow::Result<Vec<Option<u64>>> {
    let directory = place.topic().is_none().then_some(&*place.directory);
    let opened = Books::look(url.reveal(), directory).await;
    let books = opened.context("the database cannot be opened")?;
    let mut applied = Vec::new();
    for partition in &survey.partitions {
        let partition = ProgressRow {
            spool: survey.id.to_string().into(),
            number: partition.partition,
        };
        let position = books.applied(&partition).await;
        applied.push(position.context("the database does not say how far it is")?);
    }
    books.close().await;
    Ok(applied)
}
