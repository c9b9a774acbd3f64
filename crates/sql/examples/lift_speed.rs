//! How long it takes to lift the literals out of a text, and to read it: `cargo run --release -p
//! windrow-sql --example lift_speed`.

#![expect(clippy::print_stdout, reason = "it shows its figures")]

use std::hint::black_box;
use std::time::Instant;

use windrow_sql::{Lifter, read};

const ROUNDS: u32 = 200_000;

fn each(what: &str, text: &str, mut run: impl FnMut(&str)) {
    // The first rounds warm the caches of the machine.
    let mut best = f64::MAX;
    for _ in 0..5 {
        let begin = Instant::now();
        for _ in 0..ROUNDS {
            run(black_box(text));
        }
        best = best.min(begin.elapsed().as_secs_f64() / f64::from(ROUNDS));
    }
    println!("{what:<24} {:>4} bytes {:>8.0} ns", text.len(), best * 1e9);
}

fn main() {
    let texts = [
        "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (12, 1, 48213, -4021, CURRENT_TIMESTAMP)",
        "INSERT INTO readings (device, at, kind, value, unit, note) VALUES ('dev-000173', '2026-01-02 03:04:05+00'::timestamptz, 7, 21.375, 'C', E'it\\'s warm')",
        "UPDATE pgbench_accounts SET abalance = abalance + -4021 WHERE aid = 48213",
    ];
    let mut lifter = Lifter::default();
    for text in texts {
        each("lift", text, |text| {
            black_box(lifter.lift(text, true));
        });
        each("read", text, |text| drop(black_box(read(text, &[]))));
    }
    let select = "SELECT a.id, b.name, count(*) FROM a JOIN b ON a.id = b.a WHERE a.kind = 5 AND lower(b.name) = 'x' GROUP BY a.id, b.name ORDER BY 3 DESC LIMIT 10";
    each("read", select, |text| drop(black_box(read(text, &[]))));
}
