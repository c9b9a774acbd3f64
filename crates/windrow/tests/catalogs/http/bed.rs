//! Two databases, and a program before each: one for the cases, one for the judge.

use std::io::Write as _;
use std::path::Path;

use tokio::runtime::Runtime;
use windrow_testkit::process::Windrow;

use super::play::Caller;
use super::world::Direct;
use crate::tally::{Level, Tally};

/// For how long the first write waits for others: long enough for all that are sent at the same
/// time.
const GATHERED: &str = "15ms";

/// Nothing here survives anyway.
const FAST: &str = "[database.sqlite]\nsynchronous = \"off\"\n";

/// What the judge's program is told besides: a connection is closed at once, so that each unit can
/// have a new one.
const JUDGE: &str = "[limits]\nidle_close = \"1ms\"\n";

/// What all cases share.
pub struct Bed<D> {
    /// Past the program, in its database.
    pub tried: D,
    /// In the judge's database.
    pub judged: D,
    /// A client of the program.
    pub caller: Caller,
    /// A client of the judge's program.
    pub judge: Caller,
    /// How cases were executed.
    pub tally: Tally,
    /// Where requests are sent.
    pub runtime: Runtime,
    cases: usize,
    program: Windrow,
    _judges_program: Windrow,
}

impl<D: Direct> Bed<D> {
    /// Before two databases, by their URLs.
    pub fn before((tried, tried_url): (D, &str), (judged, judged_url): (D, &str)) -> Self {
        let first = serve(tried_url, &["--max-wait", GATHERED], "");
        let second = serve(judged_url, &[], JUDGE);
        Self {
            tried,
            judged,
            caller: Caller::of(first.url("")),
            judge: Caller::of(second.url("")),
            tally: Tally::default(),
            runtime: Runtime::new().unwrap(),
            cases: 0,
            program: first,
            _judges_program: second,
        }
    }

    /// What the next case's names begin with.
    pub fn next_name(&mut self) -> String {
        self.cases += 1;
        format!("c{}_", self.cases)
    }

    /// What the program has counted so far.
    pub fn level(&self) -> Level {
        Level::of(self.program.address())
    }
}

fn serve(url: &str, options: &[&str], settings: &str) -> Windrow {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(format!("{FAST}{settings}").as_bytes())
        .unwrap();
    let mut all = vec!["--to", url, "--flights", "1", "--config"];
    all.push(file.path().to_str().unwrap());
    all.extend_from_slice(options);
    Windrow::serve(Path::new(env!("CARGO_BIN_EXE_windrow")), &all).unwrap()
}
