//! On what, and by which command, a figure was measured.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::pulse;

/// Returns the command line of this program, as it can be repeated from the repository.
pub(super) fn command() -> String {
    let arguments = without_report(std::env::args().skip(1));
    format!(
        "cargo run --release -p windrow-bench -- {}",
        arguments.join(" ")
    )
}

/// Removes the folder of the report, which changes no figure.
fn without_report(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut is_folder = false;
    arguments
        .filter(|argument| {
            let is_report = argument == "--report";
            let stays = !is_folder && !is_report && !argument.starts_with("--report=");
            is_folder = is_report;
            stays
        })
        .collect()
}

/// The machine and the software.
pub(super) fn versions() -> Vec<(String, String)> {
    let cpu = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".into());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let rows = [
        ("windrow", windrow()),
        ("commit", commit()),
        ("CPU", format!("{cpu}, {cores} cores")),
        (
            "memory",
            field("/proc/meminfo", "MemTotal").unwrap_or_default(),
        ),
        ("kernel", first_line(Command::new("uname").arg("-sr"))),
        (
            "file system of the databases",
            first_line(
                Command::new("stat")
                    .args(["-f", "-c", "%T"])
                    .arg(std::env::temp_dir()),
            ),
        ),
        ("rustc", first_line(Command::new("rustc").arg("--version"))),
    ];
    rows.into_iter()
        .chain(pulse::rows())
        .map(|(k, v)| (k.to_owned(), v))
        .collect()
}

fn windrow() -> String {
    match windrow_testkit::process::binary() {
        Ok(path) => first_line(Command::new(path).arg("--version")),
        Err(_) => "not built".into(),
    }
}

fn commit() -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let git =
        |arguments: &[&str]| first_line(Command::new("git").current_dir(here).args(arguments));
    let dirty = git(&["status", "--porcelain", "--untracked-files=no"]);
    let suffix = if dirty.is_empty() {
        ""
    } else {
        " with changes"
    };
    format!("{}{suffix}", git(&["rev-parse", "--short", "HEAD"]))
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn first_line(command: &mut Command) -> String {
    let Ok(output) = command.output() else {
        return String::new();
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_no_folder() {
        for line in [
            "--report /a/b load --to sqlite",
            "--report=/a/b load --to sqlite",
            "load --report /a/b --to sqlite",
        ] {
            let arguments = line.split(' ').map(str::to_owned);
            assert_eq!(without_report(arguments), ["load", "--to", "sqlite"]);
        }
    }
}
