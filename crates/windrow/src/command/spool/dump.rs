//! `windrow spool dump`: prints entries as lines of JSON.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write as _};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::ensure;
use tokio::task::spawn_blocking;
use windrow_core::{Key, Name, OnConflict, Value, Write, record};
use windrow_spool::codec::decode_unit;
use windrow_spool::{Entry, Files, Position, RealFiles, SpoolFault, inspect};

use super::args::Dump;
use super::looks::{DAMAGED, LOOKS, has_gone};
use super::show::time;
use super::topic;
use crate::telemetry;

/// Prints everything that can be read. Errors are printed to standard error.
pub(super) async fn run(args: &Dump) -> anyhow::Result<ExitCode> {
    let partition = args.partition;
    if let Some(url) = args.place.topic() {
        let mut printing = Printing::new(args);
        let from = Position(args.from);
        topic::read(url, partition, from, |found| printing.take(found)).await?;
        return printing.end();
    }
    let directory = args.place.directory.clone();
    ensure!(
        directory.is_dir(),
        "there is no directory {}",
        directory.display()
    );
    let mut printing = Printing::new(args);
    let printed = spawn_blocking(move || -> Result<_, SpoolFault> {
        let files: Arc<dyn Files> = Arc::new(RealFiles);
        for look in 1..=LOOKS {
            let from = (partition, printing.next);
            match inspect::dump(&files, &directory, from, |found| printing.take(found)) {
                Err(fault) if has_gone(&fault) && look < LOOKS => {}
                dumped => return dumped.map(|()| printing),
            }
        }
        Ok(printing)
    });
    printed.await??.end()
}

/// The state of the output.
struct Printing {
    out: BufWriter<io::Stdout>,
    /// The next position.
    next: Position,
    /// The number of entries that may still be printed.
    left: u64,
    /// The number of places that could not be read.
    faults: usize,
    failed: Option<io::Error>,
}

impl Printing {
    fn new(args: &Dump) -> Self {
        Self {
            out: BufWriter::new(io::stdout()),
            next: Position(args.from),
            left: args.limit.unwrap_or(u64::MAX),
            faults: 0,
            failed: None,
        }
    }

    fn take(&mut self, found: Result<Entry, SpoolFault>) -> ControlFlow<()> {
        if self.left == 0 {
            return ControlFlow::Break(());
        }
        match found {
            Ok(entry) => {
                self.next = entry.position.plus(1);
                self.left -= 1;
                if let Err(error) = writeln!(self.out, "{}", line(&entry)) {
                    self.failed = Some(error);
                    return ControlFlow::Break(());
                }
            }
            Err(fault) => {
                self.faults += 1;
                telemetry::say(&fault.to_string());
            }
        }
        ControlFlow::Continue(())
    }

    /// Ends the output. It is no error if the reader has closed it.
    fn end(mut self) -> anyhow::Result<ExitCode> {
        let flushed = self.out.flush();
        match self.failed.map_or(flushed, Err) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ if self.faults > 0 => Ok(ExitCode::from(DAMAGED)),
            _ => Ok(ExitCode::SUCCESS),
        }
    }
}

/// Returns an entry as a JSON object.
fn line(entry: &Entry) -> String {
    let mut json = format!(
        r#"{{"position":{},"time":"{}","#,
        entry.position,
        time(entry.written)
    );
    match decode_unit(&entry.payload) {
        Ok(writes) => {
            json.push_str("\"writes\":[");
            for (at, write) in writes.iter().enumerate() {
                json.push_str(if at > 0 { "," } else { "" });
                push_write(&mut json, write);
            }
            json.push(']');
        }
        Err(unreadable) => {
            let told = Value::text(unreadable.to_string());
            push_member(&mut json, "unreadable", &told);
        }
    }
    json.push('}');
    json
}

fn push_write(json: &mut String, write: &Write) {
    let shape = &write.shape;
    json.push('{');
    push_member(json, "table", &Value::text(shape.table.to_string()));
    json.push(',');
    push_member(json, "op", &Value::text(shape.op.as_str()));
    let on_conflict = match shape.on_conflict {
        OnConflict::Error => None,
        OnConflict::Ignore => Some("ignore"),
        OnConflict::Update => Some("update"),
    };
    if let Some(on_conflict) = on_conflict {
        json.push(',');
        push_member(json, "on_conflict", &Value::text(on_conflict));
    }
    if let Key::Columns(columns) = &shape.key {
        let columns: Vec<Value> = columns.iter().map(|name| Value::text(&**name)).collect();
        push(json, format_args!(r#","key":{}"#, record::array(&columns)));
    }
    let fields = shape.columns.iter().zip(write.values());
    push(
        json,
        format_args!(r#","values":{}"#, record::object(fields)),
    );
    if !write.key_values().is_empty() {
        let key_values = record::array(write.key_values());
        push(json, format_args!(r#","key_values":{key_values}"#));
    }
    json.push('}');
}

/// Appends a member of an object.
fn push_member(json: &mut String, name: &str, value: &Value) {
    let object = record::object([(&Name::from(name), value)]);
    json.push_str(
        object
            .trim_start_matches('{')
            .strip_suffix('}')
            .unwrap_or_default(),
    );
}

fn push(json: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    json.write_fmt(text).ok();
}
