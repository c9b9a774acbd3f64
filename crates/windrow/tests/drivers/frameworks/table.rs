//! A table of the statements that were joined, one line for each program.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use super::framework;
use super::play::Step;
use crate::place::Statements;

/// The step that makes the tables. It is not counted.
const SCHEMA: &str = "schema";

/// The steps of the programs, which are the table's columns.
const STEPS: [&str; 10] = [
    "customer",
    "addresses",
    "order",
    "update",
    "delete",
    "invalid",
    "duplicate",
    "rollback",
    "savepoint",
    "workers",
];

/// Writes the columns' names, a program's line, and what kept its statements from being joined;
/// returns the sum of all steps but the one that makes the tables.
pub fn write(name: &str, steps: &[Step], bypass: &str) -> Statements {
    let mut cells = HashMap::new();
    let mut before = Statements::default();
    let mut sum = Statements::default();
    for step in steps {
        let of_step = step.statements - before;
        before = step.statements;
        if step.name == SCHEMA {
            continue;
        }
        let is_column = STEPS.contains(&step.name.as_str());
        assert!(is_column, "{name}: the step {} has no column", step.name);
        sum = sum + of_step;
        cells.insert(step.name.as_str(), of_step.to_string());
    }
    let mut heads = format!("{:<20}", "joined of");
    let mut line = format!("{name:<20}");
    for step in STEPS {
        cell(&mut heads, step);
        cell(&mut line, cells.get(step).map_or("-", String::as_str));
    }
    cell(&mut heads, "all");
    cell(&mut line, &sum.to_string());
    fs::create_dir_all(folder()).unwrap();
    fs::write(folder().join(name), format!("{heads}\n{line}\n{bypass}\n")).unwrap();
    sum
}

fn cell(line: &mut String, text: &str) {
    write!(line, " {text:>9}").unwrap();
}

/// `target/frameworks/joined`, with a file for each program.
pub fn folder() -> PathBuf {
    framework::target().join("joined")
}
