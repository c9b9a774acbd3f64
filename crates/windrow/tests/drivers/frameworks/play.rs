//! Playing a program step by step, directly and through Windrow.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::framework::{self, Framework};
use super::table;
use crate::place::{Place, Statements};
use crate::report;

/// The time limit of one step of a program.
const STEP_TIMEOUT: Duration = Duration::from_secs(120);

/// The environment variable that says which programs are played: `ready`, or `all`, which makes one
/// fail that is not ready. Unset, none is.
const WHICH: &str = "WINDROW_TEST_FRAMEWORKS";

/// The rows of the tables, without the keys that the database made: these may have gaps.
const ROWS: &str = "
    SELECT 'customer', name, created_at IS NOT NULL FROM customers ORDER BY name COLLATE \"C\";
    SELECT 'address', c.name, street, country FROM addresses a LEFT JOIN customers c ON c.id = customer_id
        ORDER BY c.name COLLATE \"C\", street;
    SELECT 'order', number, c.name, note, o.created_at IS NOT NULL FROM orders o LEFT JOIN customers c ON c.id = customer_id
        ORDER BY number COLLATE \"C\";
    SELECT 'line', number, product, qty FROM order_lines l LEFT JOIN orders o ON o.id = order_id
        ORDER BY number COLLATE \"C\", product;";

/// A step that a program has played: its name and the statements it sent.
#[derive(Debug)]
pub struct Step {
    pub name: String,
    pub statements: Statements,
}

/// The setting `windrow.transactions` of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transactions {
    Exact,
    Late,
}

/// The steps that show exceptions, which may be others if they come with COMMIT.
const REFUSED: [&str; 2] = ["invalid", "duplicate"];

/// Plays a program directly and through Windrow; fails if anything differs, or if fewer than
/// `joined` of its statements were joined.
pub fn same(
    (name, framework, mode): (&str, Framework, &str),
    transactions: Transactions,
    joined: u64,
) {
    if std::env::var_os(WHICH).is_none() {
        return report::leave_out(
            WHICH,
            &format!("{name} is left out: {WHICH} is not set; ./test frameworks sets it"),
        );
    }
    if !framework.is_ready() {
        return report::leave_out(
            WHICH,
            &format!(
                "{name} is left out: run tests/frameworks/setup, which makes {} ready",
                framework.runtime()
            ),
        );
    }
    let of = (name, framework, mode);
    let (direct, _) = play(of, transactions, &Place::direct());
    let place = Place::through();
    if transactions == Transactions::Late {
        place.query("ALTER ROLE ALL SET windrow.transactions = 'late'");
    }
    let (through, steps) = play(of, transactions, &place);
    match transactions {
        Transactions::Exact => report::compare(&direct, &through),
        Transactions::Late => {
            let [direct, through] = [direct, through].map(|path| without_refusals(&path));
            report::compare(&direct, &through);
        }
    }
    let all = table::write(name, &steps, &place.console("SHOW BYPASS"));
    assert!(
        all.joined >= joined,
        "{name}: {} statements were joined, and at least {joined} should have been; {}",
        all.joined,
        table::folder().join(name).display()
    );
}

/// Copies what a program printed, without the steps that show exceptions.
fn without_refusals(path: &Path) -> PathBuf {
    let copy = path.with_extension("accepted");
    let text = fs::read_to_string(path).unwrap();
    let is_refused = |line: &&str| {
        let mut steps = REFUSED.iter();
        steps.any(|step| line.starts_with(&format!("{{\"{step}\"")))
    };
    let lines: Vec<&str> = text.lines().filter(|line| !is_refused(line)).collect();
    fs::write(&copy, lines.join("\n")).unwrap();
    copy
}

/// Plays a program; returns the file with what it printed and the tables' rows, and its steps.
fn play(
    (name, framework, mode): (&str, Framework, &str),
    transactions: Transactions,
    place: &Place,
) -> (PathBuf, Vec<Step>) {
    let way = if place.is_through() {
        "windrow"
    } else {
        "direct"
    };
    let folder = framework::target().join("transcripts");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{name}-{way}"));
    let errors = folder.join(format!("{name}-{way}.stderr"));
    let mut command = framework.command(mode, &place.url());
    if transactions == Transactions::Late {
        command.env("SHOP_LATE", "1");
    }
    command.stderr(File::create(&errors).unwrap());
    let mut program = Program::start(&mut command);
    let mut text = String::new();
    let mut steps = Vec::new();
    while let Some(line) = program.next_line(&errors, place) {
        let step: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&line).unwrap();
        let name = step.keys().next().unwrap().clone();
        steps.push(Step {
            name,
            statements: place.statements(),
        });
        text.push_str(&line);
        text.push('\n');
        program.go_on();
    }
    text.push_str(&place.query(ROWS));
    text.push('\n');
    fs::write(&path, text).unwrap();
    (path, steps)
}

/// A program that runs. It prints a line for each step and waits for one before it goes on.
struct Program {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Program {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("cannot run {command:?}: {e}"));
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::sync_channel(1);
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            input,
            lines,
        }
    }

    /// Waits for the line of the next step; `None` if the program has ended well.
    fn next_line(&mut self, errors: &Path, place: &Place) -> Option<String> {
        let how = match self.lines.recv_timeout(STEP_TIMEOUT) {
            Ok(line) => return Some(line),
            Err(RecvTimeoutError::Timeout) => format!("no step within {STEP_TIMEOUT:?}"),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait().unwrap();
                if status.success() {
                    return None;
                }
                status.to_string()
            }
        };
        panic!(
            "the program has failed: {how}\n--- its errors:\n{}\n--- windrow:\n{}",
            report::tail(&fs::read_to_string(errors).unwrap_or_default()),
            report::tail(&place.log()),
        );
    }

    fn go_on(&mut self) {
        // The program may have ended with the step.
        self.input.write_all(b"\n").ok();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
