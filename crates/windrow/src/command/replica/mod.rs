//! `windrow replica`: adds replicas, shows their state, compares and repairs them.

mod args;
mod status;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, ensure};
use windrow::databases;
use windrow_core::moves::is_own;
use windrow_core::{Database, Inventory, TableName};
use windrow_database::Options;
use windrow_replicas::{Checked, Names, check};

pub(crate) use self::args::ReplicaArgs;
use self::args::{Add, Check, Ends, ReplicaCommand};
use crate::command::run;
use crate::output;

/// The exit status if something differs.
const DIFFERS: u8 = 1;

/// Runs the command.
pub(crate) fn run(args: &ReplicaArgs) -> ExitCode {
    run::run(None, async {
        match &args.what {
            ReplicaCommand::Add(args) => add(args).await,
            ReplicaCommand::Status(args) => status::run(args),
            ReplicaCommand::Check(args) => compare(args).await,
        }
    })
}

type Opened = (Arc<dyn Database>, Arc<dyn Database>, Names);

async fn open(ends: &Ends) -> anyhow::Result<Opened> {
    let options = Options {
        given_numbers: true,
        ..Options::default()
    };
    let primary = databases::open_existing(ends.to.reveal(), &Options::default()).await;
    let replica = databases::open(ends.replica.reveal(), &options).await;
    let mut names = Names::default();
    for pair in &ends.table {
        let parts = pair.split_once('=');
        let (own, there) = parts.with_context(|| format!("--table {pair}: write TABLE=NAME"))?;
        let own = TableName::parse(own)?.to_string();
        names.tables.insert(own, TableName::parse(there)?);
    }
    for column in &ends.leave_out {
        ensure!(
            column.contains('.'),
            "--leave-out {column}: write TABLE.COLUMN"
        );
        names.leave_out.insert(column.clone());
    }
    let primary = primary.context("the primary cannot be opened")?;
    Ok((
        primary,
        replica.context("the replica cannot be opened")?,
        names,
    ))
}

async fn compare(args: &Check) -> anyhow::Result<ExitCode> {
    let (primary, replica, names) = open(&args.ends).await?;
    let mut found = Vec::new();
    let tell = |checked: Checked| {
        let shown = output::print(&line(&checked));
        found.push((checked.left(), shown));
    };
    check(&primary, &replica, names, args.repair, tell).await?;
    let mut left = 0;
    for (rows, shown) in found {
        shown?;
        left += rows;
    }
    Ok(match left {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(DIFFERS),
    })
}

fn line(checked: &Checked) -> String {
    let Checked {
        table,
        rows,
        missing,
        different,
        extra,
        mended,
        refused,
        followed,
    } = checked;
    if !followed {
        return format!("{table}: not compared, because it has no primary key\n");
    }
    let mut text = format!("{table}: {rows} rows");
    for (count, what) in [
        (missing, "missing at the replica"),
        (different, "different"),
        (extra, "at the replica alone"),
        (mended, "mended"),
    ] {
        if *count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    if missing + different + extra == 0 {
        text.push_str(", all alike");
    }
    if let Some(fault) = refused {
        text.push_str(&format!("; the replica refuses: {fault}"));
    }
    text.push('\n');
    text
}

/// Prints the configuration of a replica. The next start creates its log and copies all rows.
async fn add(args: &Add) -> anyhow::Result<ExitCode> {
    let (primary, replica, names) = open(&args.ends).await?;
    let here = inventory(&primary)?;
    let there = inventory(&replica)?;
    let mut lacking = Vec::new();
    for name in here.tables().await? {
        let Some(table) = here.table(&name).await?.filter(|_| !is_own(&name.table)) else {
            continue;
        };
        if table.key.is_empty() {
            output::print(&format!(
                "# {name} has no primary key: the replica does not get it\n"
            ))?;
            continue;
        }
        let plain = match there.has_schemas() {
            true => name.clone(),
            false => TableName::bare(name.table.clone()),
        };
        let own = names.tables.get(&name.to_string()).unwrap_or(&plain);
        let Some(found) = there.table(own).await? else {
            lacking.push(format!("the table {own}"));
            continue;
        };
        for column in &table.columns {
            let is_there = found.columns.iter().any(|c| c.eq_ignore_ascii_case(column));
            if !is_there && !names.leave_out.contains(&format!("{name}.{column}")) {
                lacking.push(format!("the column {column} of {own}"));
            }
        }
    }
    ensure!(
        lacking.is_empty(),
        "the replica lacks {}: make what is missing, map the table or leave the column out",
        lacking.join(", ")
    );
    output::print(&section(args))?;
    Ok(ExitCode::SUCCESS)
}

fn inventory(database: &Arc<dyn Database>) -> anyhow::Result<Arc<dyn Inventory>> {
    let name = database.profile().name;
    let inventory = database.inventory();
    inventory
        .with_context(|| format!("{name} has no place in a set of replicas that can be compared"))
}

fn section(args: &Add) -> String {
    let mut text = format!(
        "# Add this to the configuration and start the gateway again: it copies all rows while writes go on.\n\
         [[replica]]\nname = {:?}\nurl = \"...\"  # as given here\n",
        args.name
    );
    let pairs = args
        .ends
        .table
        .iter()
        .filter_map(|pair| pair.split_once('='));
    let pairs: Vec<String> = pairs
        .map(|(own, there)| format!("{own:?} = {there:?}"))
        .collect();
    if !pairs.is_empty() {
        text.push_str(&format!("tables = {{ {} }}\n", pairs.join(", ")));
    }
    if !args.ends.leave_out.is_empty() {
        text.push_str(&format!("leave_out = {:?}\n", args.ends.leave_out));
    }
    text
}
