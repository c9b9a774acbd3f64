//! The output of a running experiment.

use std::io::Write;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Prints a line.
pub fn line(text: &str) {
    // A reader that has left (`.. | head`) must not end a measurement: its figures are stored all
    // the same.
    writeln!(std::io::stdout(), "{text}").ok();
}

/// Runs `work` while a bar shows how much of `time` has passed. Quiet where standard error is no
/// terminal.
pub fn during<T>(what: &str, time: Duration, work: impl FnOnce() -> T) -> T {
    let bar = ProgressBar::new(time.as_secs().max(1)).with_message(what.to_owned());
    if let Ok(style) = ProgressStyle::with_template("{msg:40} {bar:30} {pos}/{len} s") {
        bar.set_style(style);
    }
    let start = Instant::now();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                bar.set_position(start.elapsed().as_secs());
                std::thread::park_timeout(Duration::from_millis(200));
            }
            bar.finish_and_clear();
        });
        let result = work();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        result
    })
}
