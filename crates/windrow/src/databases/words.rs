//! The databases that this build knows, in words: from what their sinks declare.

use std::fmt::Write as _;

use windrow_core::{Profile, Promise};
use windrow_database::Driver;

use super::DRIVERS;

/// A database, and the driver that reaches it.
type Known = (&'static dyn Driver, &'static Profile);

fn known() -> Vec<Known> {
    let profiles = |driver: &&'static dyn Driver| {
        let driver = *driver;
        driver
            .profiles()
            .iter()
            .map(move |profile| (driver, profile))
    };
    DRIVERS.iter().flat_map(profiles).collect()
}

/// Returns a few lines for each database: its URL, and what it cannot promise.
pub fn listing() -> String {
    let mut text = String::new();
    for (driver, profile) in known() {
        push(
            &mut text,
            format_args!("{:<18} {}\n", profile.name, driver.url_form()),
        );
        if !profile.transactional {
            let line = format_args!("                   {AT_LEAST_ONCE}\n");
            push(&mut text, line);
        }
        for limitation in profile.limitations {
            push(
                &mut text,
                format_args!(
                    "                   lacks {}: {}\n",
                    limitation.promise, limitation.why
                ),
            );
        }
    }
    text
}

/// Returns the page `docs/sinks.md`.
pub fn markdown() -> String {
    let known = known();
    let mut text = String::from(
        "# Databases, and what each of them promises\n\n\
         This page is written by `windrow sinks --markdown > docs/sinks.md` from what the sinks declare, and a test compares it. \
         What a sink does not declare to be lacking is tried on it by one suite for all (`crates/windrow/tests/conformance`).\n\n\
         | database | URL | a batch is | rows at most | batches at once, at most | a spool is applied |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    for (driver, profile) in &known {
        let (batch, spool) = match profile.transactional {
            true => ("one transaction", "exactly once"),
            false => (
                "a request; each write stands alone",
                "at least once, keyed inserts alone",
            ),
        };
        let (rows, flights) = (profile.batch_rows, profile.flights);
        let line = format_args!(
            "| {} | `{}` | {batch} | {rows} | {flights} | {spool} |\n",
            profile.name,
            driver.url_form()
        );
        push(&mut text, line);
    }
    push_promises(&mut text, &known);
    push_lacks(&mut text, &known);
    text.push_str(JOINED);
    text.push_str(SPOOLED);
    text
}

/// The words of `windrow sinks` on a database without transactions.
const AT_LEAST_ONCE: &str =
    "a spool takes keyed inserts that ignore or update, and applies them at least once";

/// The section on spools of databases without transactions.
const SPOOLED: &str = "\n## Behind a spool\n\n\
    Where a batch is one transaction, the spool's progress moves in it: what was acknowledged is \
    applied exactly once. Where it is not, a crash has some writes done again, so the spool takes \
    those alone for which that makes no\n\
    difference: single inserts with `on_conflict=ignore` or `on_conflict=update` that have a value \
    for each column of the primary key. All others are answered by the database, whatever `ack` \
    says. See [the spool](spool.md#databases-without-transactions).\n";

/// The section on joined writes.
const JOINED: &str = "\n## What is joined\n\n\
    Where triggers, functions in defaults and checks, rules or policies stand behind a table, \
    its writes share a statement or a transaction only if these are proven to let nobody notice. \
    `GET /v1/lanes` says for each table what is shared, which\n\
    object stands in the way of more, and what can be done about it. The proof reads the catalog \
    as the user of the URL: what that one may not see is not proven. On MySQL and MariaDB it \
    needs SELECT and TRIGGER on the tables, or none of their\n\
    writes are joined; on PostgreSQL and SQLite it needs nothing more. The rules: \
    [PostgreSQL](postgresql.md), [MySQL and MariaDB](mysql.md), [SQLite](sqlite.md).\n";

/// A line for each promise, a column for each database.
fn push_promises(text: &mut String, known: &[Known]) {
    text.push_str("\n## Promises\n\n| | promise |");
    for (_, profile) in known {
        push(text, format_args!(" {} |", profile.name));
    }
    text.push_str("\n| --- | --- |");
    text.push_str(&" --- |".repeat(known.len()));
    text.push('\n');
    for promise in Promise::ALL {
        push(text, format_args!("| {promise} | {} |", promise.sentence()));
        for (_, profile) in known {
            text.push_str(match profile.limitation(promise) {
                None => " yes |",
                Some(_) => " not wholly |",
            });
        }
        text.push('\n');
    }
}

/// Why, for what is lacking.
fn push_lacks(text: &mut String, known: &[Known]) {
    text.push_str("\n## What is lacking, and why\n\n");
    for (_, profile) in known {
        if profile.limitations.is_empty() {
            push(text, format_args!("- **{}**: nothing.\n", profile.name));
        }
        for limitation in profile.limitations {
            push(
                text,
                format_args!(
                    "- **{}**, {}: {}\n",
                    profile.name, limitation.promise, limitation.why
                ),
            );
        }
    }
}

/// Formats into a string, which cannot fail.
fn push(text: &mut String, what: std::fmt::Arguments<'_>) {
    let written = text.write_fmt(what);
    debug_assert!(written.is_ok(), "a string takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sink_says_what_it_promises() {
        for driver in DRIVERS {
            assert!(!driver.profiles().is_empty(), "{}", driver.url_form());
        }
        for (_, profile) in known() {
            let limitations = profile.limitations;
            let in_order = limitations.is_sorted_by(|a, b| a.promise < b.promise);
            assert!(in_order, "{}: in the order of the promises", profile.name);
            assert!(
                limitations.iter().all(|one| one.why.ends_with('.')),
                "{}",
                profile.name
            );
        }
        assert!(listing().contains("PostgreSQL"));
    }

    #[test]
    fn the_page_is_what_the_sinks_declare() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sinks.md");
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == markdown(),
            "docs/sinks.md is not what the sinks declare; write it anew: windrow sinks --markdown > docs/sinks.md"
        );
    }
}
