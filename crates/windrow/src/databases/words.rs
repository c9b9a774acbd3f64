//! The databases that this build knows, in words: from what their profiles declare.

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

/// Returns the part of the page `docs/databases.md` on what each database promises.
pub fn markdown() -> String {
    let known = known();
    let mut text = String::from(
        "## What each database promises\n\n\
         `windrow databases --markdown` writes this part.\n\n\
         | database | URL | a batch is | rows at most | batches at once | a spool is applied |\n\
         |---|---|---|---|---|---|\n",
    );
    for (driver, profile) in &known {
        let (batch, spool) = match profile.transactional {
            true => ("one transaction", "exactly once"),
            false => (
                "a request; each write stands alone",
                "at least once, keyed inserts only",
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
    text
}

/// The words of `windrow databases` on a database without transactions.
const AT_LEAST_ONCE: &str =
    "a spool takes keyed inserts that ignore or update, and applies them at least once";

/// A line for each promise, with the databases that do not wholly keep it.
fn push_promises(text: &mut String, known: &[Known]) {
    text.push_str("\n| promise | in words | not wholly kept by |\n|---|---|---|\n");
    for promise in Promise::ALL {
        let lacks = |(_, profile): &&Known| profile.limitation(promise).is_some();
        let names: Vec<&str> = known.iter().filter(lacks).map(|(_, p)| p.name).collect();
        let line = format_args!(
            "| {promise} | {} | {} |\n",
            promise.sentence(),
            names.join(", ")
        );
        push(text, line);
    }
}

/// Why, for what is lacking.
fn push_lacks(text: &mut String, known: &[Known]) {
    text.push('\n');
    for (_, profile) in known {
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
    fn the_page_is_what_the_databases_declare() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/databases.md");
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page.contains(&markdown()),
            "docs/databases.md lacks what `windrow databases --markdown` prints"
        );
    }
}
