//! Playing twice and comparing.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::driver::{self, Driver};
use crate::place::Place;
use crate::rust;

/// How long a driver's scenarios may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// The environment variable that, set to `all`, plays all modes, and makes a driver fail that is
/// not ready.
const REQUIRED: &str = "WINDROW_TEST_DRIVERS";

/// Lines of a difference that are shown; all of it is in the files that the message names.
const SHOWN: usize = 60;

/// Plays the scenarios of a driver directly and through Windrow; fails where anything differs, or
/// where fewer than `joined` writes were joined.
pub fn same(driver: Driver, mode: &str, joined: u64) {
    if !driver.is_ready() {
        let advice = format!(
            "{driver:?} is left out: run tests/drivers/setup, which makes {} ready",
            driver.runtime().unwrap_or_default()
        );
        return leave_out(REQUIRED, &advice);
    }
    let name = format!("{driver:?}-{mode}");
    let direct = Place::direct();
    let plain = play(driver, mode, &direct, &format!("{name}-direct"));
    drop(direct);
    let through = Place::through();
    let ours = play(driver, mode, &through, &format!("{name}-windrow"));
    compare(&plain, &ours);
    assert_joined(&through, joined, &name);
}

/// Plays a mode as [`same`] if all are asked for.
pub fn same_if_all(driver: Driver, mode: &str, joined: u64) {
    match are_all_asked_for(REQUIRED) {
        true => same(driver, mode, joined),
        false => leave_out(REQUIRED, &format!("{driver:?} {mode} is left out")),
    }
}

fn are_all_asked_for(required: &str) -> bool {
    std::env::var_os(required).is_some_and(|which| which == "all")
}

/// Prints what is left out; fails if the environment variable `required` says `all`.
#[expect(
    clippy::print_stderr,
    reason = "who reads the test's output must see what was left out"
)]
pub fn leave_out(required: &str, advice: &str) {
    assert!(!are_all_asked_for(required), "{advice}");
    eprintln!("{advice}");
}

/// Runs the program; gives the file with what it printed and what it left in the tables.
fn play(driver: Driver, mode: &str, place: &Place, name: &str) -> PathBuf {
    let folder = driver::target().join("transcripts");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    let errors = folder.join(format!("{name}.stderr"));
    match driver.command() {
        Some(mut command) => {
            if mode == "newest_protocol" && place.is_through() {
                command.env("PGMINPROTOCOLVERSION", "3.2");
            }
            run(command.arg(place.url()).arg(mode), &path, &errors, place);
        }
        None => fs::write(&path, rust::play(&place.url())).unwrap(),
    }
    let mut text = fs::read_to_string(&path).unwrap();
    assert!(text.lines().count() > 10, "{name} has played nothing");
    text.push_str(&place.tables());
    text.push('\n');
    fs::write(&path, text).unwrap();
    path
}

fn run(command: &mut Command, out: &Path, errors: &Path, place: &Place) {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(File::create(out).unwrap())
        .stderr(File::create(errors).unwrap())
        .spawn()
        .unwrap_or_else(|e| panic!("cannot run {command:?}: {e}"));
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        thread::sleep(Duration::from_millis(10));
    };
    if !status.is_some_and(|s| s.success()) {
        let how = status.map_or_else(|| format!("no end after {PATIENCE:?}"), |s| s.to_string());
        panic!(
            "{command:?}: {how}\n--- its last lines ({}):\n{}\n--- its errors:\n{}\n--- windrow:\n{}",
            out.display(),
            tail(&fs::read_to_string(out).unwrap_or_default()),
            tail(&fs::read_to_string(errors).unwrap_or_default()),
            tail(&place.log()),
        );
    }
}

/// Returns the last lines of a text.
pub fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.iter().skip(lines.len().saturating_sub(15));
    last.map(|line| format!("{}\n", short(line))).collect()
}

fn short(line: &str) -> String {
    line.chars().take(600).collect()
}

/// Fails if two files differ.
pub fn compare(direct: &Path, through: &Path) {
    if fs::read(direct).unwrap() == fs::read(through).unwrap() {
        return;
    }
    let diff = Command::new("diff")
        .args(["-U0"])
        .arg(direct)
        .arg(through)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&diff.stdout).into_owned();
    let shown: String = text
        .lines()
        .take(SHOWN)
        .map(|l| format!("{}\n", short(l)))
        .collect();
    panic!(
        "directly (-) and through Windrow (+) a client sees different things; all of it: diff {} {}\n{shown}",
        direct.display(),
        through.display()
    );
}

/// What a driver writes row by row must have been joined, not sent past the lanes.
fn assert_joined(place: &Place, least: u64, name: &str) {
    let joined = place.statements().joined;
    let bypass = place.console("SHOW BYPASS");
    let path = driver::target()
        .join("transcripts")
        .join(format!("{name}-bypass"));
    fs::write(path, format!("joined {joined}\n{bypass}\n")).unwrap();
    assert!(
        joined >= least,
        "{joined} writes were joined, and at least {least} should have been; SHOW BYPASS:\n{bypass}"
    );
}
