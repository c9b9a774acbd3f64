//! The progress of a load: a bar on a terminal, lines elsewhere.

use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use windrow::load::{Meter, Reading};

use crate::command::progress::{DRAWN, LINES, Screen};
use crate::telemetry;

/// Reports the progress until its future is dropped.
pub(super) async fn run(screen: Arc<Screen>, meter: Arc<Meter>, bytes: Option<u64>) {
    let started = Instant::now();
    if let Some(bar) = &screen.bar {
        set_template(bar, bytes);
        loop {
            let read = meter.read();
            bar.set_position(read.bytes);
            bar.set_message(message(&read, started.elapsed()));
            tokio::time::sleep(DRAWN).await;
        }
    }
    if !screen.lines {
        return;
    }
    loop {
        tokio::time::sleep(LINES).await;
        telemetry::say(&line(&meter.read(), bytes, started.elapsed()));
    }
}

fn set_template(bar: &ProgressBar, bytes: Option<u64>) {
    let template = match bytes {
        Some(_) => "{bar:30} {percent:>3}%  {msg}  {bytes}/{total_bytes}  {eta} left",
        None => "{spinner}  {msg}  {bytes}  {elapsed}",
    };
    if let Some(bytes) = bytes {
        bar.set_length(bytes);
    }
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

fn message(read: &Reading, elapsed: Duration) -> String {
    let rate = read.rows() as f64 / elapsed.as_secs_f64().max(1e-3);
    let mut text = format!("{} rows  {rate:.0}/s", HumanCount(read.rows()));
    if read.rejected > 0 {
        text.push_str(&format!("  {} refused", HumanCount(read.rejected)));
    }
    text
}

/// Returns the progress as one line, for a log.
fn line(read: &Reading, bytes: Option<u64>, elapsed: Duration) -> String {
    let mut text = message(read, elapsed).replace("  ", ", ");
    match bytes {
        Some(all) if all > 0 && read.bytes > 0 => {
            let part = (read.bytes as f64 / all as f64).min(1.0);
            let left = elapsed.as_secs_f64() * (1.0 - part) / part;
            text.push_str(&format!(
                ", {} of {} read, about {left:.0} s left",
                HumanBytes(read.bytes),
                HumanBytes(all)
            ));
        }
        _ => text.push_str(&format!(", {} read", HumanBytes(read.bytes))),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_how_far_and_how_long() {
        let read = Reading {
            written: 1_000_000,
            rejected: 2,
            bytes: 1 << 20,
            ..Reading::default()
        };
        let told = line(&read, Some(4 << 20), Duration::from_secs(2));
        assert_eq!(
            told,
            "1,000,002 rows, 500001/s, 2 refused, 1.00 MiB of 4.00 MiB read, about 6 s left"
        );
        let told = line(&Reading::default(), None, Duration::ZERO);
        assert_eq!(told, "0 rows, 0/s, 0 B read");
    }
}
