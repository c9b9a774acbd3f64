//! `windrow doctor`: describes which writes of a database Windrow would join.

mod args;
#[cfg(feature = "postgres")]
mod measure;
mod words;

use std::process::ExitCode;

use windrow::doctor::{Seen, look};
use windrow_core::Secret;

pub(crate) use self::args::Doctor;
use crate::command::run;
use crate::output;

/// Runs the command.
pub(crate) fn run(args: &Doctor) -> ExitCode {
    run::run(Some("error"), to_the_end(args))
}

async fn to_the_end(args: &Doctor) -> anyhow::Result<ExitCode> {
    let seen = look(args.to.clone(), args.tables).await?;
    output::print(&words::report(&seen, args.tables))?;
    if args.measure {
        output::print(&measured(&seen, &args.to).await?)?;
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
