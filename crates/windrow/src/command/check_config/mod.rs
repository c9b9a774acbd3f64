//! `windrow check-config`: all that is wrong with a configuration, before anything is started.

mod args;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use tokio::time::error::Elapsed;
use windrow::settings::Settings;
use windrow::settings::check::check;
use windrow_core::{Database, Fault};
use windrow_database::Options;

pub(crate) use self::args::CheckConfig;
use crate::command::run;
use crate::output;
use crate::serve_options::Serve;

/// The time limit of a database's answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the command.
pub(crate) fn run(args: &CheckConfig) -> ExitCode {
    run::run(Some("error"), checked(args))
}

async fn checked(args: &CheckConfig) -> anyhow::Result<ExitCode> {
    let shown = args.file.display();
    let text = std::fs::read_to_string(&args.file)
        .with_context(|| format!("the configuration {shown} cannot be read"))?;
    let serve = Serve::of_file(&args.file)?;
    let settings = match check(&text, |file| serve.over(file)) {
        Ok(settings) => settings,
        Err(found) => {
            let mut lines = String::new();
            for finding in &found {
                let line = finding.line.map(|line| format!(":{line}"));
                let line = line.unwrap_or_default();
                lines.push_str(&format!("{shown}{line}: {}\n", finding.said));
            }
            lines.push_str(&match found.len() {
                1 => "1 thing is wrong\n".to_owned(),
                count => format!("{count} things are wrong\n"),
            });
            output::print(&lines)?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let mut all_there = true;
    if args.connect {
        for (name, url, database) in databases(&settings) {
            let tried = tokio::time::timeout(PATIENCE, connect(url, &settings.sink)).await;
            all_there &= matches!(tried, Ok(Ok(_)));
            output::print(&format!("{name} {database}: {}\n", said(tried)))?;
        }
        for (name, tried) in pg_databases(&settings).await {
            all_there &= matches!(tried, Ok(Ok(_)));
            output::print(&format!("pg.databases.{name}: {}\n", said(tried)))?;
        }
    }
    output::print(&format!("{shown}: nothing is wrong with what is written\n"))?;
    Ok(match all_there {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The result of a look at a database, if it ended in time.
type Tried = Result<Result<&'static str, Fault>, Elapsed>;

fn said(tried: Tried) -> String {
    match tried {
        Ok(Ok(kind)) => format!("can be reached ({kind})"),
        Ok(Err(fault)) => format!("does not answer as it should: {fault}"),
        Err(_) => format!("has not answered within {} s", PATIENCE.as_secs()),
    }
}

/// Tries the databases that PostgreSQL clients can name.
#[cfg(feature = "postgres")]
async fn pg_databases(settings: &Settings) -> Vec<(String, Tried)> {
    use windrow_pgwire::wire::Wire;

    let mut all = Vec::new();
    for database in settings.pg.iter().flat_map(|pg| &pg.config.databases) {
        let connect = async {
            let wire = Wire::connect(&database.target, &[], PATIENCE).await?;
            wire.terminate().await;
            Ok("PostgreSQL")
        };
        let tried = tokio::time::timeout(PATIENCE, connect).await;
        all.push((database.name.clone(), tried));
    }
    all
}

#[cfg(not(feature = "postgres"))]
async fn pg_databases(_: &Settings) -> Vec<(String, Tried)> {
    Vec::new()
}

/// Returns the name of each database, its URL, and the URL as it may be shown.
fn databases(settings: &Settings) -> Vec<(String, &str, String)> {
    let own = &settings.database;
    let mut all = vec![("database".to_owned(), settings.url.reveal(), own.clone())];
    for replica in settings.replicas.iter().flat_map(|all| &all.replicas) {
        let (url, shown) = (replica.url.reveal(), replica.database.clone());
        all.push((format!("replica {}", replica.name), url, shown));
    }
    all
}

async fn connect(url: &str, options: &Options) -> Result<&'static str, Fault> {
    // An embedded database would be made by opening it.
    if let Some(path) = windrow::databases::file(url)? {
        return Ok(match path.is_file() {
            true => "SQLite",
            false => "SQLite; the file is made at the start",
        });
    }
    let database = windrow::databases::open(url, options).await?;
    database.ping().await?;
    Ok(name(&*database))
}

fn name(database: &dyn Database) -> &'static str {
    database.profile().name
}
