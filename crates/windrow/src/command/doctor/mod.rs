//! `windrow doctor`: what Windrow would make of a database, in words.

#[cfg(feature = "postgres")]
mod measure;
mod words;

use std::process::ExitCode;

use clap::Args;
use windrow::doctor::{Seen, look};
use windrow_core::Secret;

use crate::cli;
use crate::command::run;

/// Options of `doctor`.
#[derive(Args)]
#[command(after_help = "Examples:
  windrow doctor --to postgres://app@localhost/shop
  windrow doctor --to postgres://app@localhost/shop --measure

Nothing is written, but for --measure, which makes a table windrow_doctor_NUMBER and drops it.
Exit status: 0 it has looked; 1 it could not; 2 the command line is wrong.")]
pub(crate) struct Doctor {
    /// The database (see `windrow sinks`)
    // The value may hold a password, so help does not show it.
    #[arg(long, value_name = "URL", env = "WINDROW_TO", hide_env_values = true)]
    to: Secret,

    /// Most tables to look at
    #[arg(long, value_name = "N", default_value_t = 200)]
    tables: usize,

    /// PostgreSQL: measure what a row costs by itself and in a statement of many, for two seconds
    #[arg(long)]
    measure: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Doctor) -> ExitCode {
    run::run(Some("error"), to_the_end(args))
}

async fn to_the_end(args: &Doctor) -> anyhow::Result<ExitCode> {
    let seen = look(args.to.clone(), args.tables).await?;
    cli::print(&words::report(&seen, args.tables))?;
    if args.measure {
        cli::print(&measured(&seen, &args.to).await?)?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "postgres")]
async fn measured(seen: &Seen, url: &Secret) -> anyhow::Result<String> {
    match seen.profile.name {
        "PostgreSQL" => Ok(measure::run(url.reveal()).await?.to_string()),
        name => Ok(format!(
            "{name} is not measured; --measure is for PostgreSQL\n"
        )),
    }
}

#[cfg(not(feature = "postgres"))]
async fn measured(seen: &Seen, _: &Secret) -> anyhow::Result<String> {
    Ok(format!(
        "{} is not measured in this build\n",
        seen.profile.name
    ))
}
