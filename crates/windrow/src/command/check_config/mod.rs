//! `windrow check-config`: all that is wrong with a configuration, before anything is started.

mod args;
mod connect;
mod finding;
mod rights;
mod spool;

use std::fmt::Display;
use std::process::ExitCode;

use anyhow::Context;
use windrow::settings::check::{Finding, check, findings};

pub(crate) use self::args::CheckConfig;
use crate::cli_error::refuse;
use crate::command::run;
use crate::output;
use crate::serve_options::Serve;

/// Runs the command.
pub(crate) fn run(args: &CheckConfig) -> ExitCode {
    run::run(Some("error"), checked(args))
}

async fn checked(args: &CheckConfig) -> anyhow::Result<ExitCode> {
    let shown = args.file.display();
    let text = std::fs::read_to_string(&args.file)
        .with_context(|| format!("the configuration {shown} cannot be read"))?;
    let serve = Serve::of_file(&args.file).unwrap_or_else(|error| refuse(error));
    let checked = match check(&text, |file| serve.over(file)) {
        Ok(settings) => match windrow::serve::refusals(&settings).await {
            refusals if refusals.is_empty() => Ok(settings),
            refusals => Err(findings(&text, &refusals)),
        },
        Err(found) => Err(found),
    };
    let settings = match checked {
        Ok(settings) => settings,
        Err(found) => {
            output::print(&listed(&shown, &found))?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let mut all_there = true;
    if args.connect {
        for found in connect::all(&settings).await {
            all_there &= found.is_good();
            output::print(&format!("{found}\n"))?;
        }
    }
    output::print(&format!("{shown}: nothing is wrong with what is written\n"))?;
    Ok(match all_there {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Returns a line for each finding, and their number.
fn listed(file: &dyn Display, found: &[Finding]) -> String {
    let mut lines = String::new();
    for Finding { line, said } in found {
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        lines.push_str(&format!("{file}{line}: {said}\n"));
    }
    lines.push_str(&match found.len() {
        1 => "1 thing is wrong\n".to_owned(),
        count => format!("{count} things are wrong\n"),
    });
    lines
}
