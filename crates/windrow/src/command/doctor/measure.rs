//! Measures what joined writes gain, on a table that is created for it and dropped.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Context;
use windrow_core::Fault;
use windrow_pgwire::Target;
use windrow_pgwire::wire::Wire;

/// The duration of each measurement.
const TIME: Duration = Duration::from_secs(1);

/// Rows of the statement that is measured.
const ROWS: u32 = 1000;

/// The time limit of the server's answers.
const PATIENCE: Duration = Duration::from_secs(10);

/// The query for the number of connections that the server can still accept.
const ROOM: &str = "SELECT pg_catalog.current_setting('max_connections')::int \
     - pg_catalog.current_setting('superuser_reserved_connections')::int \
     - (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend')";

/// The cost of a row.
pub(super) struct Costs {
    alone: Duration,
    joined: Duration,
    room: i64,
}

/// Measures for about two seconds.
///
/// # Errors
/// The server's own errors, most likely for a role that may not create a table.
pub(super) async fn run(url: &str) -> anyhow::Result<Costs> {
    let target = Target::parse(url)?;
    let mut wire = Wire::connect(&target, &[], PATIENCE).await?;
    let room = ask(&mut wire, ROOM).await?;
    let table = format!("windrow_doctor_{}", std::process::id());
    let made = format!(
        "CREATE TABLE {table} (id bigint PRIMARY KEY, made timestamptz DEFAULT now(), word text)"
    );
    ask(&mut wire, &made)
        .await
        .context("--measure makes a table, which is dropped afterwards")?;
    let costs = costs(&mut wire, &table).await;
    ask(&mut wire, &format!("DROP TABLE {table}"))
        .await
        .with_context(|| format!("the table {table} is left: drop it"))?;
    wire.terminate().await;
    let (alone, joined) = costs?;
    Ok(Costs {
        alone,
        joined,
        room: room.and_then(|room| room.parse().ok()).unwrap_or_default(),
    })
}

async fn costs(wire: &mut Wire, table: &str) -> anyhow::Result<(Duration, Duration)> {
    let one = |id: u32| format!("INSERT INTO {table} (id, word) VALUES ({id}, 'straw')");
    let alone = repeat(wire, one).await?;
    let many = |id: u32| {
        format!(
            "INSERT INTO {table} (id, word) SELECT -g, 'straw' FROM generate_series({}, {}) g",
            u64::from(id) * u64::from(ROWS) + 1,
            (u64::from(id) + 1) * u64::from(ROWS)
        )
    };
    let joined = repeat(wire, many).await?;
    Ok((alone, joined / ROWS))
}

/// Returns the time that a statement takes. Repeats it for [`TIME`].
async fn repeat(wire: &mut Wire, statement: impl Fn(u32) -> String) -> anyhow::Result<Duration> {
    let (begun, mut done) = (Instant::now(), 0);
    while begun.elapsed() < TIME {
        ask(wire, &statement(done)).await?;
        done += 1;
    }
    Ok(begun.elapsed() / done.max(1))
}

/// Executes a statement, and returns the first value of its first row.
async fn ask(wire: &mut Wire, statement: &str) -> Result<Option<String>, Fault> {
    let rows = wire.simple(statement).await;
    let rows = rows.map_err(|broken| Fault::unavailable(broken.to_string()))??;
    Ok(rows.first().and_then(|row| row.first().cloned()).flatten())
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        let (alone, joined) = (micros(self.alone), micros(self.joined));
        writeln!(
            f,
            "\nmeasured over one connection\n  a row by itself takes {alone:.0} \u{b5}s, in a statement of {ROWS} it takes {joined:.1} \u{b5}s: {:.0} times less",
            alone / joined.max(0.001)
        )?;
        writeln!(
            f,
            "  the server has room for {} more connections",
            self.room
        )
    }
}
