//! One connection that loads.

use async_trait::async_trait;
use windrow_core::{
    Claim, CsvStyle, CsvText, Fault, FaultClass, LoadFault, Loaded, Loader, Mark, OnConflict, Rows,
    Sifted,
};

use super::data::Data;
use super::heard::{Heard, Step};
use super::layout::Layout;
use super::misspelled::Misspelled;
use super::row_checks::Judge;
use super::stream::{Choice, Spelling, Stream};
use super::transfer::{Marked, Transfer};
use super::verbatim;
use super::verbatim::Verbatim;
use windrow_pgwire::wire::Wire;

/// The most portions that go as text before the binary form is tried again.
const MOST_TEXT: u32 = 64;

/// A connection, and what is done with each portion.
pub(super) struct PortionLoader {
    pub(super) wire: Wire,
    pub(super) layout: Layout,
    /// What has refused rows so far.
    pub(super) seen: Vec<Judge>,
    /// The form of whole portions, and that of portions that are sifted: there a few odd spellings
    /// are no reason for text.
    whole: Form,
    pub(super) sifted: Form,
    /// Keys come more than once in a portion.
    pub(super) repeated: bool,
}

/// Which form the next portion goes in.
#[derive(Default)]
pub(super) struct Form {
    /// Portions that go as text, because the last one had to.
    left: u32,
    /// How many that were.
    last: u32,
}

impl Form {
    /// The form of the next portion; `binary`: all columns can be written in binary.
    pub(super) fn next(&mut self, binary: bool) -> Spelling {
        match self.left.checked_sub(1) {
            _ if !binary => Spelling::Text,
            Some(left) => {
                self.left = left;
                Spelling::Text
            }
            None => Spelling::Binary,
        }
    }

    /// A portion cannot be written in binary: others like it will follow.
    pub(super) fn turn_to_text(&mut self) {
        self.last = (self.last * 2).clamp(1, MOST_TEXT);
        self.left = self.last;
    }
}

/// How a portion is to be sent.
#[derive(Clone, Copy)]
pub(super) struct Order<'a> {
    pub(super) marked: Marked<'a>,
    pub(super) spelling: Spelling,
    /// Rows that are left out, by their places in order.
    pub(super) without: &'a [usize],
    /// Others may be left out, too.
    pub(super) sifts: bool,
}

/// How an attempt ended, if not with a fault that is none of its rows.
pub(super) enum Ended {
    Done(Sifted),
    /// The form has no words for a field.
    Misspelled(Misspelled),
    /// A key came twice.
    Repeated(LoadFault),
    Refused(Refusal),
}

/// What the server refused rows for.
pub(super) struct Refusal {
    pub(super) fault: LoadFault,
    /// Who may have refused them, of those that can be foreseen.
    pub(super) judges: &'static [Judge],
    /// Which of the rows that were sent it was, from 1, if the server said so.
    pub(super) line: Option<usize>,
    /// The rows that were not sent.
    pub(super) left: Vec<usize>,
}

impl PortionLoader {
    pub(super) fn new(wire: Wire, layout: Layout) -> Self {
        Self {
            wire,
            layout,
            seen: Vec::new(),
            whole: Form::default(),
            sifted: Form::default(),
            repeated: false,
        }
    }

    /// False if keys that come more than once were no news, or nothing can be done about them.
    pub(super) fn learns_of_repeated(&mut self) -> bool {
        let known = self.layout.staged.as_ref();
        // How many rows are to be written would not be known.
        let helps = !self.layout.drops && known.is_some_and(|staged| staged.merge_last.is_some());
        helps && !std::mem::replace(&mut self.repeated, true)
    }

    /// Sends a portion once.
    pub(super) async fn attempt(
        &mut self,
        rows: &Rows,
        order: Order<'_>,
    ) -> Result<Ended, LoadFault> {
        let choice = Choice {
            targets: &self.layout.columns,
            only: None,
            placed: self.layout.staged.is_some(),
            spelling: order.spelling,
            without: order.without,
            sifts: order.sifts,
        };
        let stream = Stream::new(choice, rows);
        let transfer = Transfer::new(
            &self.layout,
            self.layout.merge(self.repeated),
            order.marked,
            stream,
        );
        let bound = bound(&mut self.wire, transfer).await?;
        self.ended(rows.len(), bound)
    }

    /// Sends records as they stand in their file, once.
    async fn verbatim(&mut self, csv: CsvText<'_>, marked: Marked<'_>) -> Result<Ended, LoadFault> {
        let data = Verbatim::new(csv);
        let transfer = Transfer::new(&self.layout, self.layout.merge(self.repeated), marked, data);
        let bound = bound(&mut self.wire, transfer).await?;
        self.ended(csv.records, bound)
    }

    fn ended(&self, rows: usize, bound: BoundCall) -> Result<Ended, LoadFault> {
        let BoundCall {
            steps,
            mut heard,
            left,
            misspelled,
            dropped,
        } = bound;
        if let Some(misspelled) = misspelled {
            return Ok(Ended::Misspelled(misspelled));
        }
        if dropped {
            return Ok(Ended::Refused(Refusal {
                fault: LoadFault::Refused(drops()),
                judges: &[],
                line: None,
                left,
            }));
        }
        let repeats = heard.error.as_ref().is_some_and(|e| e.code == "21000")
            && heard.rows(&steps, Step::Copy).is_some();
        let (judges, line) = (heard.judges(), heard.line(&self.layout.target));
        match heard.refusal(&steps) {
            Some(fault) if repeats => Ok(Ended::Repeated(fault)),
            Some(fault @ LoadFault::Refused(_)) => Ok(Ended::Refused(Refusal {
                fault,
                judges,
                line,
                left,
            })),
            Some(fault) => Err(fault),
            None => {
                let loaded = self.loaded(rows - left.len(), &heard, &steps);
                Ok(Ended::Done(Sifted { loaded, left }))
            }
        }
    }

    /// What became of the rows that were sent.
    fn loaded(&self, sent: usize, heard: &Heard, steps: &[Step]) -> Loaded {
        let staged = self.layout.staged.as_ref();
        let all = sent as u64;
        let merged = heard.rows(steps, Step::Merge);
        let copied = heard.rows(steps, Step::Copy);
        let written = match staged.map(|staged| staged.on_conflict) {
            // Rows that were replaced within the portion were written first.
            Some(OnConflict::Update) if self.repeated => Some(all),
            Some(_) => merged,
            None => copied,
        };
        let written = written.unwrap_or_default();
        let ignored = match staged.map(|staged| staged.on_conflict) {
            Some(OnConflict::Ignore) => all.saturating_sub(written),
            _ => 0,
        };
        Loaded { written, ignored }
    }

    pub(super) fn check(&self, rows: &Rows) -> Result<(), LoadFault> {
        if rows.columns() == self.layout.columns.len() {
            return Ok(());
        }
        let fault = Fault::internal("a portion has not the columns of its load");
        Err(LoadFault::Hopeless(fault))
    }
}

/// What was said on both sides.
struct BoundCall {
    steps: Vec<Step>,
    heard: Heard,
    /// The rows that were not sent.
    left: Vec<usize>,
    /// Why the rows were broken off.
    misspelled: Option<Misspelled>,
    /// A trigger has made nothing of some of them.
    dropped: bool,
}

/// What is said of a portion of which not every row was written.
fn drops() -> Fault {
    Fault::new(
        FaultClass::Check,
        "02000",
        "a trigger makes nothing of some of the rows",
    )
}

async fn bound<D: Data>(
    wire: &mut Wire,
    mut transfer: Transfer<'_, D>,
) -> Result<BoundCall, LoadFault> {
    let ended = wire.converse(1, &mut transfer).await;
    let said = transfer.said();
    let Transfer {
        steps,
        heard,
        data,
        dropped,
        ..
    } = transfer;
    match ended {
        Err(broken) => Err(heard.lost(&steps, said, &broken)),
        Ok(_) => Ok(BoundCall {
            steps,
            heard,
            left: data.left().to_vec(),
            misspelled: data.misspelled().cloned(),
            dropped,
        }),
    }
}

#[async_trait]
impl Loader for PortionLoader {
    async fn load(&mut self, rows: &Rows, mark: Option<&Mark>) -> Result<Loaded, LoadFault> {
        self.check(rows)?;
        let mut order = Order {
            marked: mark.map_or(Marked::Not, Marked::Whole),
            spelling: self.whole.next(self.layout.binary),
            without: &[],
            sifts: false,
        };
        loop {
            match self.attempt(rows, order).await? {
                Ended::Done(sifted) => return Ok(sifted.loaded),
                Ended::Misspelled(misspelled)
                    if order.spelling == Spelling::Text || misspelled == Misspelled::Grows =>
                {
                    return Err(LoadFault::Refused(misspelled.fault()));
                }
                Ended::Misspelled(_) => {
                    self.whole.turn_to_text();
                    order.spelling = Spelling::Text;
                }
                Ended::Repeated(_) if self.learns_of_repeated() => {}
                Ended::Repeated(fault) => return Err(fault),
                Ended::Refused(refusal) => {
                    self.see(refusal.judges);
                    return Err(refusal.fault);
                }
            }
        }
    }

    async fn sift(&mut self, rows: &Rows, claim: Option<&Claim<'_>>) -> Result<Sifted, LoadFault> {
        self.check(rows)?;
        self.without_bad(rows, claim).await
    }

    fn passes(&self, style: &CsvStyle) -> bool {
        verbatim::passes(&self.layout, style)
    }

    async fn pass(&mut self, csv: CsvText<'_>, mark: Option<&Mark>) -> Result<Loaded, LoadFault> {
        let marked = mark.map_or(Marked::Not, Marked::Whole);
        match self.verbatim(csv, marked).await? {
            Ended::Done(sifted) => Ok(sifted.loaded),
            Ended::Misspelled(misspelled) => Err(LoadFault::Refused(misspelled.fault())),
            Ended::Repeated(fault) => Err(fault),
            Ended::Refused(refusal) => {
                self.see(refusal.judges);
                Err(refusal.fault)
            }
        }
    }

    async fn close(self: Box<Self>) {
        self.wire.terminate().await;
    }
}
