//! How cases were executed: a test in which nothing was joined has tested nothing.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// The counters of a program at one time.
#[derive(Clone, Debug, Default)]
pub struct Level {
    batches: u64,
    writes: u64,
    rungs: BTreeMap<String, u64>,
}

impl Level {
    /// Asks the program that serves HTTP there.
    pub fn of(program: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(program).unwrap();
        let request = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let mut level = Self::default();
        for line in text.lines() {
            level.take(line);
        }
        level
    }

    fn take(&mut self, line: &str) {
        let Some((series, value)) = line.rsplit_once(' ') else {
            return;
        };
        let Ok(value) = value.parse::<u64>() else {
            return;
        };
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        match name {
            "windrow_batches_total" => self.batches += value,
            "windrow_rung_writes_total" => {
                let rung = labels
                    .split_once("rung=\"")
                    .and_then(|(_, rest)| rest.split_once('"'));
                let rung = rung.map_or("", |(rung, _)| rung);
                *self.rungs.entry(rung.to_owned()).or_default() += value;
                self.writes += value;
            }
            _ => {}
        }
    }
}

/// All cases of a run.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    cases: u64,
    /// Cases with a batch of several writes.
    joined: u64,
    /// Writes by the rung that gave their outcome.
    rungs: BTreeMap<String, u64>,
}

impl Tally {
    /// Notes a case.
    pub fn count(&mut self, before: &Level, after: &Level) {
        self.cases += 1;
        let batches = after.batches.saturating_sub(before.batches);
        let writes = after.writes.saturating_sub(before.writes);
        self.joined += u64::from(writes > batches);
        for (rung, count) in &after.rungs {
            let known = before.rungs.get(rung).copied().unwrap_or(0);
            *self.rungs.entry(rung.clone()).or_default() += count.saturating_sub(known);
        }
    }

    /// Fails if less than one case in `cases_per_join` was joined, or nothing on a rung that has to
    /// be tried. Prints the figures for those who run it with `--nocapture`.
    #[expect(
        clippy::print_stderr,
        reason = "the figures of a run are a part of its result"
    )]
    pub fn check(&self, rungs: &[&str], cases_per_join: u64) {
        eprintln!("{self:?}");
        for rung in rungs {
            let writes = self.rungs.get(*rung).copied().unwrap_or(0);
            assert!(writes > self.cases / 10, "too little was {rung}: {self:?}");
        }
        assert!(
            self.joined * cases_per_join >= self.cases,
            "too little was joined: {self:?}"
        );
    }
}
