//! Writes the report of `windrow doctor`.

use windrow::doctor::{ClientStatements, Seen};
use windrow_core::apart::Apart;
use windrow_core::{Level, Op, Standing};

/// Returns the report. `most` is the limit of tables that were described.
pub(super) fn report(seen: &Seen, most: usize) -> String {
    let mut text = head(seen, most);
    for (level, what) in [
        (Level::Fused, "joined: many rows in one statement"),
        (
            Level::Grouped,
            "grouped: statements of their own that share a transaction",
        ),
        (
            Level::Apart,
            "apart: each write is a transaction of its own",
        ),
    ] {
        let of_level = seen.standings.iter().filter(|one| one.level == level);
        let lines: Vec<String> = of_level.filter_map(line).collect();
        if !lines.is_empty() {
            text.push_str(&format!("\n{what}\n{}", lines.concat()));
        }
    }
    text.push_str(&of_clients(&seen.client_standings));
    if !seen.unseen.is_empty() {
        text.push_str("\nnot looked at\n");
    }
    for (table, fault) in &seen.unseen {
        text.push_str(&format!("  {table}: {fault}\n"));
    }
    for limitation in seen.profile.limitations {
        text.push_str(&format!(
            "\nlacks {}: {}\n",
            limitation.promise, limitation.why
        ));
    }
    text
}

/// Returns the statements of MySQL clients: first those that are joined, then the others with
/// the reason and the advice.
fn of_clients(standings: &[ClientStatements]) -> String {
    let mut text = String::new();
    for (is_joined, what) in [
        (
            true,
            "clients of MySQL, joined: single-row statements in autocommit",
        ),
        (false, "clients of MySQL, relayed one by one"),
    ] {
        let alike = standings
            .iter()
            .filter(|one| one.why.is_none() == is_joined);
        let lines = alike.map(|one| {
            let why = one.why.as_ref().map(reason).unwrap_or_default();
            format!("  {}: {}\n{why}", one.table, one.statements.join(", "))
        });
        let lines: String = lines.collect();
        if !lines.is_empty() {
            text.push_str(&format!("\n{what}\n{lines}"));
        }
    }
    text
}

fn reason(why: &Apart) -> String {
    format!("      {why}\n      {}\n", why.what_to_do())
}

fn head(seen: &Seen, most: usize) -> String {
    let name = seen.profile.name;
    match seen.tables {
        None => format!(
            "{name}: it cannot tell its tables; GET /v1/lanes does once they are written to\n"
        ),
        Some(1) => format!("{name}, 1 table\n"),
        Some(count) if count > most => {
            format!("{name}, {count} tables, of which the first {most} were looked at (--tables)\n")
        }
        Some(count) => format!("{name}, {count} tables\n"),
    }
}

/// Returns a line for a table with its writes, the reason why they are not joined with more others,
/// and what can be done about it. `None` if only reads are concerned.
fn line(standing: &Standing) -> Option<String> {
    let writes = standing.ops.iter().filter(|op| **op != Op::Get);
    let ops: Vec<&str> = writes.map(|op| op.as_str()).collect();
    if ops.is_empty() {
        return None;
    }
    let mut text = format!("  {}: {}\n", standing.table, ops.join(", "));
    if let Some(why) = &standing.why {
        text.push_str(&reason(why));
    }
    match &standing.kept {
        Some(Ok(())) => text.push_str("      kept in transactions until COMMIT: insert\n"),
        Some(Err(doubt)) => {
            let phrase = doubt.phrase.trim_start_matches("in a transaction: ");
            text.push_str(&format!("      not kept in transactions: {phrase}\n"));
            text.push_str(&format!("      {}\n", doubt.advice));
        }
        None => {}
    }
    Some(text)
}
