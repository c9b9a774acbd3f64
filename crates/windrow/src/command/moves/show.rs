//! The progress of a move.

use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressStyle};
use windrow::moves::{Counted, Counts};

use crate::command::progress::{DRAWN, LINES, Screen};
use crate::telemetry;

/// Reports the progress until its future is dropped.
pub(super) async fn run(screen: Arc<Screen>, counts: Arc<Counts>) {
    let started = Instant::now();
    if let Some(bar) = &screen.bar {
        if let Ok(style) = ProgressStyle::with_template("{spinner}  {msg}  {elapsed}") {
            bar.set_style(style);
        }
        loop {
            bar.set_message(line(counts.read(), started.elapsed()));
            bar.tick();
            tokio::time::sleep(DRAWN).await;
        }
    }
    if !screen.lines {
        return;
    }
    let mut told = Counted::default();
    loop {
        tokio::time::sleep(LINES).await;
        let now = counts.read();
        if std::mem::replace(&mut told, now) != now {
            telemetry::say(&line(now, started.elapsed()));
        }
    }
}

fn line(counted: Counted, elapsed: Duration) -> String {
    let rows = counted.moved + counted.rejected;
    let rate = rows as f64 / elapsed.as_secs_f64().max(1e-3);
    let mut text = format!("{} rows, {rate:.0}/s", HumanCount(rows));
    if counted.rejected > 0 {
        text.push_str(&format!(
            ", {} to the dead letters",
            HumanCount(counted.rejected)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_rows_and_rate() {
        let counted = Counted {
            moved: 9_998,
            rejected: 2,
            batches: 1,
            held: 0,
        };
        let told = line(counted, Duration::from_secs(2));
        assert_eq!(told, "10,000 rows, 5000/s, 2 to the dead letters");
    }
}
