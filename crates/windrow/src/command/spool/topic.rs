//! Reads a spool in a topic as a gateway does. Changes nothing.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use tokio::time::timeout;
use windrow::serve::topic_to_read;
use windrow_spool::inspect::{PartitionSurvey, Survey};
use windrow_spool::{Entry, Log, Position, SpoolFault};

/// The time limit of the brokers' answers.
const PATIENCE: Duration = Duration::from_secs(30);

/// The bytes that are read at once.
const PORTION: usize = 1 << 20;

/// Returns the content of a topic. If `whole` is true, all entries are read too.
pub(super) async fn survey(url: &str, whole: bool) -> anyhow::Result<Survey> {
    let spool = topic_to_read(url).await?;
    let mut partitions = Vec::new();
    for log in spool.logs() {
        let status = log.status().await?;
        let mut damage = None;
        if whole {
            let keep = |found: Result<Entry, SpoolFault>| {
                damage = found.err();
                ControlFlow::Continue(())
            };
            read_log(&**log, status.first, keep).await?;
        }
        partitions.push(PartitionSurvey {
            partition: log.partition(),
            first: status.first,
            trimmed: status.first,
            end: status.end,
            segments: 0,
            bytes: status.bytes,
            oldest: status
                .age
                .and_then(|age| SystemTime::now().checked_sub(age)),
            tail: None,
            damage,
        });
    }
    spool.close().await?;
    Ok(Survey {
        id: spool.id(),
        made: None,
        partitions,
    })
}

/// Passes on the entries of a partition from a position on, up to the end that it had at the
/// beginning.
pub(super) async fn read(
    url: &str,
    partition: u32,
    from: Position,
    take: impl FnMut(Result<Entry, SpoolFault>) -> ControlFlow<()>,
) -> anyhow::Result<()> {
    let spool = topic_to_read(url).await?;
    let log = spool.logs().iter().find(|log| log.partition() == partition);
    let log = Arc::clone(log.with_context(|| format!("the topic has no partition {partition}"))?);
    let first = log.status().await?.first;
    read_log(&*log, from.max(first), take).await?;
    Ok(spool.close().await?)
}

async fn read_log(
    log: &dyn Log,
    from: Position,
    mut take: impl FnMut(Result<Entry, SpoolFault>) -> ControlFlow<()>,
) -> Result<(), SpoolFault> {
    let end = log.end();
    if from >= end {
        return Ok(());
    }
    let mut cursor = log.cursor(from)?;
    while cursor.position() < end {
        let read = timeout(PATIENCE, cursor.next(PORTION)).await;
        match read.unwrap_or(Err(SpoolFault::Closed)) {
            Ok(entries) => {
                let mut taken = entries.into_iter().map(|entry| take(Ok(entry)));
                if taken.any(|flow| flow.is_break()) {
                    return Ok(());
                }
            }
            Err(fault) => {
                return match take(Err(fault)) {
                    ControlFlow::Continue(()) | ControlFlow::Break(()) => Ok(()),
                };
            }
        }
    }
    Ok(())
}
