//! Describes the databases that this build knows, by their profiles.

use std::fmt::Write as _;

use windrow_core::{Profile, Promise};
use windrow_database::Driver;

use super::DRIVERS;

/// A database, and its driver.
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

/// Returns the part of the page `docs/databases.md` on what each database promises.
pub fn markdown() -> String {
    let known = known();
    let mut text = String::from(
        "## What each database promises\n\n\
         | database | URL | most rows a batch | most batches at once |\n\
         |---|---|---|---|\n",
    );
    for (driver, profile) in &known {
        let (rows, flights) = (profile.batch_rows, profile.flights);
        let line = format_args!(
            "| {} | `{}` | {rows} | {flights} |\n",
            profile.name,
            driver.url_form()
        );
        push(&mut text, line);
    }
    push_transactions(&mut text, &known);
    push_promises(&mut text, &known);
    text
}

/// Appends the meaning of a batch and of a spool, with and without transactions.
fn push_transactions(text: &mut String, known: &[Known]) {
    let names: Vec<&str> = known
        .iter()
        .filter(|(_, profile)| !profile.transactional)
        .map(|(_, profile)| profile.name)
        .collect();
    text.push_str("\nA batch is one transaction, and a spool is applied exactly once.");
    if !names.is_empty() {
        let line = format_args!(
            " In {} a batch is a request, each write stands alone, and a spool takes keyed \
             inserts only, which are applied at least once.",
            names.join(" and ")
        );
        push(text, line);
    }
    text.push_str("\n\n");
}

/// The text of `windrow databases` about a database without transactions.
const AT_LEAST_ONCE: &str =
    "a spool takes keyed inserts that ignore or update, and applies them at least once";

/// Appends a line for each promise, and one for each database that does not keep it completely.
fn push_promises(text: &mut String, known: &[Known]) {
    for promise in Promise::ALL {
        push(
            text,
            format_args!("- **{promise}**: {}\n", promise.sentence()),
        );
        for (_, profile) in known {
            if let Some(limitation) = profile.limitation(promise) {
                let line = format_args!("  - {}: {}\n", profile.name, limitation.why);
                push(text, line);
            }
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
    fn the_page_is_what_the_databases_declare() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/databases.md");
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page.contains(&markdown()),
            "docs/databases.md lacks what `windrow databases --markdown` prints"
        );
    }
}
