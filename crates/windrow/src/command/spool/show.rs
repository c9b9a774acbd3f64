//! Writes the report on a spool.

use std::fmt::Write;
use std::time::SystemTime;

use bytesize::ByteSize;
use serde_json::{Value, json};
use windrow_spool::inspect::{PartitionSurvey, Survey};

/// Returns a report of some lines. `applied` holds the positions up to which the database has
/// applied each partition.
pub(super) fn status(survey: &Survey, applied: Option<&[Option<u64>]>) -> String {
    let made = survey.made.map(|made| format!(", made {}", time(made)));
    let mut text = format!("spool {}{}\n", survey.id, made.unwrap_or_default());
    for (at, partition) in survey.partitions.iter().enumerate() {
        let oldest = match partition.oldest {
            Some(oldest) => format!("the oldest written {}", time(oldest)),
            None => "none is kept".to_owned(),
        };
        let files = match partition.segments {
            0 => String::new(),
            files => format!(" in {files} files"),
        };
        add(
            &mut text,
            format_args!(
                "partition {}: entries {} to {}, {oldest}; {}{files}",
                partition.partition,
                partition.first,
                partition.end,
                ByteSize(partition.bytes),
            ),
        );
        if let Some(applied) = applied.and_then(|all| all.get(at)) {
            add(&mut text, format_args!("  {}", depth(partition, *applied)));
        }
        for finding in trouble(partition) {
            add(&mut text, format_args!("  {finding}"));
        }
    }
    text
}

fn depth(partition: &PartitionSurvey, applied: Option<u64>) -> String {
    match applied {
        None => "the database knows nothing of it: nothing was applied yet".to_owned(),
        Some(_) if do_not_fit(partition, applied) => format!(
            "the database has all before {}, which these files do not reach or hold no more: they do not belong together. \
             One of them has come back from an old copy; nothing can be applied until what fits is brought back",
            applied.unwrap_or_default()
        ),
        Some(applied) => format!(
            "the database has all before {applied}; {} are waiting",
            partition.end.0.saturating_sub(applied)
        ),
    }
}

/// Returns true if the database is at a position that is not in the files.
pub(super) fn do_not_fit(partition: &PartitionSurvey, applied: Option<u64>) -> bool {
    applied.is_some_and(|at| at > partition.end.0 || at < partition.first.0)
}

/// Reports the damage of a spool, or that there is none.
pub(super) fn findings(survey: &Survey) -> String {
    let mut text = String::new();
    for partition in &survey.partitions {
        let number = partition.partition;
        let entries = partition.end.since(partition.first);
        for finding in trouble(partition) {
            add(&mut text, format_args!("partition {number}: {finding}"));
        }
        if partition.damage.is_none() {
            add(
                &mut text,
                format_args!(
                    "partition {number}: {entries} entries, from {}, are as they were written",
                    partition.first
                ),
            );
        }
    }
    text
}

/// Lists the damage of a partition.
fn trouble(partition: &PartitionSurvey) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(damage) = &partition.damage {
        said.push(damage.to_string());
    }
    if let Some(tail) = &partition.tail {
        said.push(format!(
            "{}: {} bytes at its end, from byte {}, are no whole group ({}): a gateway is writing them, or a crash has left them; \
             no client has success for them, and they are cut off at the next start",
            tail.path.display(),
            tail.bytes,
            tail.offset,
            tail.what
        ));
    }
    said
}

/// Returns a spool as one JSON object, in a line.
pub(super) fn status_json(survey: &Survey, applied: Option<&[Option<u64>]>) -> String {
    let partitions = survey.partitions.iter().enumerate().map(|(at, partition)| {
        let applied = applied.and_then(|all| all.get(at)).copied();
        partition_json(partition, applied)
    });
    let spool = json!({
        "spool": survey.id.to_string(),
        "made": survey.made.map(time),
        "partitions": partitions.collect::<Vec<_>>(),
    });
    format!("{spool}\n")
}

fn partition_json(partition: &PartitionSurvey, applied: Option<Option<u64>>) -> Value {
    let tail = partition.tail.as_ref().map(|tail| {
        json!({
            "file": tail.path.display().to_string(),
            "offset": tail.offset,
            "bytes": tail.bytes,
            "what": tail.what,
        })
    });
    let mut shown = json!({
        "partition": partition.partition,
        "first": partition.first.0,
        "trimmed": partition.trimmed.0,
        "end": partition.end.0,
        "segments": partition.segments,
        "bytes": partition.bytes,
        "oldest": partition.oldest.map(time),
        "tail": tail,
        "damage": partition.damage.as_ref().map(ToString::to_string),
    });
    if let (Some(applied), Some(shown)) = (applied, shown.as_object_mut()) {
        shown.insert("applied".into(), applied.into());
    }
    shown
}

/// Returns a time in UTC, as RFC 3339 writes it.
pub(super) fn time(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

fn add(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    writeln!(text, "{line}").ok();
}
