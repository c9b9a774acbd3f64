//! The answer to a body of many rows, written while it is sent.

use std::vec::IntoIter;

use bytes::Bytes;
use windrow_core::{Fault, FaultClass, Permit};

use crate::ack::Ack;
use crate::answers::chunks::Chunks;
use crate::answers::json::{self, ErrorPosition};
use crate::answers::ledger::{KEPT_ERRORS, Ledger, Results, Run};
use crate::answers::refusal::Refusal;

/// Bytes after which a chunk is sent.
const CHUNK_BYTES: usize = 16 << 10;

/// Writes `{"error":{..},"results":[..],"rows":n,"errors":m}`: `error` only if the body ended
/// early, `results` unless none are wanted. If the spool has accepted the rows, `accepted` replaces
/// `rows`.
#[derive(Debug)]
pub(crate) struct Report {
    stage: Stage,
    early: Option<Refusal>,
    runs: IntoIter<Run>,
    /// The current run, and the number of its results that are left.
    current: Option<(Run, u64)>,
    index: u64,
    first: bool,
    wanted: Results,
    ack: Ack,
    rows: u64,
    errors: u64,
    /// Held until the last byte is written.
    _memory: Permit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Head,
    Results,
    End,
}

impl Report {
    pub(crate) fn new(ledger: Ledger, early: Option<Refusal>) -> Self {
        let (rows, errors) = (ledger.rows(), ledger.errors());
        let (wanted, ack) = (ledger.wanted(), ledger.ack());
        let (runs, memory) = ledger.into_runs();
        Self {
            stage: Stage::Head,
            early,
            runs: runs.into_iter(),
            current: None,
            index: 0,
            first: true,
            wanted,
            ack,
            rows,
            errors,
            _memory: memory,
        }
    }

    fn head(&mut self, out: &mut Vec<u8>) {
        self.stage = Stage::Results;
        out.push(b'{');
        if let Some(early) = &self.early {
            early.write_error(out);
            out.push(b',');
        }
        if self.wanted != Results::None {
            out.extend_from_slice(b"\"results\":[");
        }
    }

    fn tail(&mut self, out: &mut Vec<u8>) {
        self.stage = Stage::End;
        if self.wanted != Results::None {
            out.extend_from_slice(b"],");
        }
        json::count(out, self.ack, self.rows);
        json::field(out, "errors");
        json::number(out, self.errors);
        out.push(b'}');
    }

    /// Writes one result. Returns false if none is left.
    fn result(&mut self, out: &mut Vec<u8>) -> bool {
        let Some((run, left)) = self.current.take().or_else(|| self.next_run()) else {
            return false;
        };
        match (&run, self.wanted) {
            (Run::Done { .. } | Run::Returned(_), Results::Errors) => {
                self.index += left;
                return true;
            }
            _ => self.write(out, &run),
        }
        self.index += 1;
        if left > 1 {
            self.current = Some((run, left - 1));
        }
        true
    }

    fn next_run(&mut self) -> Option<(Run, u64)> {
        let run = self.runs.next()?;
        let times = match &run {
            Run::Done { times, .. } | Run::Code { times, .. } => *times,
            Run::Returned(_) | Run::Error(_) => 1,
        };
        Some((run, times))
    }

    fn write(&mut self, out: &mut Vec<u8>, run: &Run) {
        if !std::mem::take(&mut self.first) {
            out.push(b',');
        }
        out.push(b'{');
        if self.wanted == Results::Errors {
            out.extend_from_slice(b"\"index\":");
            json::number(out, self.index);
            out.push(b',');
        }
        match run {
            Run::Done { rows, .. } => json::count(out, self.ack, *rows),
            Run::Returned(done) => json::done(out, self.ack, done),
            Run::Error(fault) => json::error(out, fault, ErrorPosition::default()),
            Run::Code { code, .. } => json::error(out, &only_code(code), ErrorPosition::default()),
        }
        out.push(b'}');
    }
}

impl Chunks for Report {
    fn next_chunk(&mut self) -> Option<Bytes> {
        if self.stage == Stage::End {
            return None;
        }
        let mut out = Vec::with_capacity(CHUNK_BYTES.min(256 + 16 * self.runs.len()));
        if self.stage == Stage::Head {
            self.head(&mut out);
        }
        while out.len() < CHUNK_BYTES {
            if !self.result(&mut out) {
                self.tail(&mut out);
                break;
            }
        }
        Some(out.into())
    }
}

fn only_code(code: &str) -> Fault {
    Fault::new(
        FaultClass::Other,
        code.to_owned(),
        format!("of the errors past the first {KEPT_ERRORS} of a body only the code is kept"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use windrow_core::{Budget, WriteDone};

    fn written(mut report: Report) -> serde_json::Value {
        let mut text = Vec::new();
        while let Some(chunk) = report.next_chunk() {
            assert!(chunk.len() < CHUNK_BYTES + 1024);
            text.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&text).unwrap()
    }

    fn ledger(wanted: Results) -> Ledger {
        let mut ledger = Ledger::new(wanted, Ack::Commit, Budget::new(1 << 20));
        for _ in 0..3 {
            ledger.done(WriteDone::rows(1));
        }
        ledger.done(WriteDone::rows(0));
        ledger.push(Err(Fault::invalid("no").into()));
        ledger.done(WriteDone::rows(1));
        ledger
    }

    #[test]
    fn all_results_in_order() {
        let report = written(Report::new(ledger(Results::All), None));
        let results = report["results"].as_array().unwrap();
        assert_eq!(results.len(), 6);
        assert_eq!(results[2]["rows"], 1);
        assert_eq!(results[3]["rows"], 0);
        assert_eq!(results[4]["error"]["message"], "no");
        assert_eq!((&report["rows"], &report["errors"]), (&4.into(), &1.into()));
    }

    #[test]
    fn errors_only_with_their_index() {
        let report = written(Report::new(ledger(Results::Errors), None));
        let results = report["results"].as_array().unwrap();
        assert_eq!(results.len(), 1);
        assert_eq!(results[0]["index"], 4);
    }

    #[test]
    fn none_and_an_early_end() {
        let early = Refusal::new(StatusCode::BAD_REQUEST, Fault::invalid("line"));
        let report = written(Report::new(ledger(Results::None), Some(early)));
        assert_eq!(report["error"]["message"], "line");
        assert!(report.get("results").is_none());
        assert_eq!(report["rows"], 4);
    }

    #[test]
    fn a_long_answer_comes_in_chunks() {
        let mut ledger = Ledger::new(Results::All, Ack::Commit, Budget::new(1 << 20));
        for _ in 0..100_000 {
            ledger.done(WriteDone::rows(1));
        }
        let report = written(Report::new(ledger, None));
        assert_eq!(report["results"].as_array().unwrap().len(), 100_000);
    }
}
