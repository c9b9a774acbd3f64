//! One connection that loads.

use async_trait::async_trait;
use windrow_core::{
    Claim, CsvStyle, CsvText, Fault, FaultClass, Filtered, FormSkips, LoadFault, Loaded, Loader,
    Mark, OnConflict, Rows,
};

use super::answers::{Answers, Step};
use super::data::Data;
use super::layout::Layout;
use super::misspelled::Misspelled;
use super::row_checks::Judge;
use super::stream::{Choice, Spelling, Stream};
use super::transfer::{Marked, Transfer};
use super::verbatim;
use super::verbatim::Verbatim;
use windrow_pgwire::wire::Wire;

/// A connection, the layout of its portions, and the refusals seen so far.
pub(super) struct PortionLoader {
    pub(super) wire: Wire,
    pub(super) layout: Layout,
    /// The checks that have refused rows so far.
    pub(super) seen: Vec<Judge>,
    /// Decides if the next whole portion is tried in binary.
    whole: FormSkips,
    /// Decides the same for portions whose bad rows are left out: there, a few odd spellings are no
    /// reason for text.
    pub(super) in_parts: FormSkips,
    /// True if keys come more than once in a portion.
    pub(super) repeated: bool,
}

/// One attempt to send a portion.
#[derive(Clone, Copy)]
pub(super) struct Order<'a> {
    pub(super) marked: Marked<'a>,
    pub(super) spelling: Spelling,
    /// Rows that are left out, by their places in order.
    pub(super) without: &'a [usize],
    /// True if the encoder may leave out further rows.
    pub(super) leaves_out: bool,
}

/// The outcome of an attempt, unless the fault is outside of the rows.
pub(super) enum Ended {
    Done(Filtered),
    /// The form cannot express a field.
    Misspelled(Misspelled),
    /// A key came twice.
    Repeated(LoadFault),
    Refused(Refusal),
}

/// The server's refusal of rows.
pub(super) struct Refusal {
    pub(super) fault: LoadFault,
    /// The checks that may have refused them, of those that can be asked before.
    pub(super) judges: &'static [Judge],
    /// The number of the refused row among those sent, from 1, if the server named it.
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
            whole: FormSkips::default(),
            in_parts: FormSkips::default(),
            repeated: false,
        }
    }

    /// Notes that keys come more than once. Returns false if that was known, or if nothing can be
    /// done.
    pub(super) fn learns_of_repeated(&mut self) -> bool {
        let known = self.layout.staged.as_ref();
        // The number of rows to write would not be known.
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
            leaves_out: order.leaves_out,
        };
        let stream = Stream::new(choice, rows);
        let transfer = Transfer::new(
            &self.layout,
            self.layout.merge(self.repeated),
            order.marked,
            stream,
        );
        let exchanged = exchange(&mut self.wire, transfer).await?;
        self.ended(rows.len(), exchanged)
    }

    /// Sends records as they stand in their file, once.
    async fn verbatim(&mut self, csv: CsvText<'_>, marked: Marked<'_>) -> Result<Ended, LoadFault> {
        let data = Verbatim::new(csv);
        let transfer = Transfer::new(&self.layout, self.layout.merge(self.repeated), marked, data);
        let exchanged = exchange(&mut self.wire, transfer).await?;
        self.ended(csv.records, exchanged)
    }

    fn ended(&self, rows: usize, exchanged: Exchanged) -> Result<Ended, LoadFault> {
        let Exchanged {
            steps,
            mut answers,
            left,
            misspelled,
            dropped,
        } = exchanged;
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
        let repeats = answers.error.as_ref().is_some_and(|e| e.code == "21000")
            && answers.rows(&steps, Step::Copy).is_some();
        let (judges, line) = (answers.judges(), answers.line(&self.layout.target));
        match answers.refusal(&steps) {
            Some(fault) if repeats => Ok(Ended::Repeated(fault)),
            Some(fault @ LoadFault::Refused(_)) => Ok(Ended::Refused(Refusal {
                fault,
                judges,
                line,
                left,
            })),
            Some(fault) => Err(fault),
            None => {
                let loaded = self.loaded(rows - left.len(), &answers, &steps);
                Ok(Ended::Done(Filtered { loaded, left }))
            }
        }
    }

    /// Returns the counts of the rows that were sent.
    fn loaded(&self, sent: usize, answers: &Answers, steps: &[Step]) -> Loaded {
        let staged = self.layout.staged.as_ref();
        let all = sent as u64;
        let merged = answers.rows(steps, Step::Merge);
        let copied = answers.rows(steps, Step::Copy);
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

/// The parts of a portion that were sent, and the server's answers.
struct Exchanged {
    steps: Vec<Step>,
    answers: Answers,
    /// The rows that were not sent.
    left: Vec<usize>,
    /// The field that ended the rows early.
    misspelled: Option<Misspelled>,
    /// True if a trigger has dropped some of them.
    dropped: bool,
}

/// Returns the fault of a portion of which a trigger has dropped rows.
fn drops() -> Fault {
    Fault::new(
        FaultClass::Check,
        "02000",
        "a trigger makes nothing of some of the rows",
    )
}

async fn exchange<D: Data>(
    wire: &mut Wire,
    mut transfer: Transfer<'_, D>,
) -> Result<Exchanged, LoadFault> {
    let ended = wire.converse(1, &mut transfer).await;
    let said = transfer.said();
    let Transfer {
        steps,
        answers,
        data,
        dropped,
        ..
    } = transfer;
    match ended {
        Err(broken) => Err(answers.lost(&steps, said, &broken)),
        Ok(_) => Ok(Exchanged {
            steps,
            answers,
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
            spelling: self.layout.spelling(&mut self.whole),
            without: &[],
            leaves_out: false,
        };
        loop {
            match self.attempt(rows, order).await? {
                Ended::Done(done) => {
                    if order.spelling == Spelling::Binary {
                        self.whole.succeed();
                    }
                    return Ok(done.loaded);
                }
                Ended::Misspelled(misspelled)
                    if order.spelling == Spelling::Text || misspelled == Misspelled::Misfit =>
                {
                    return Err(LoadFault::Refused(misspelled.fault()));
                }
                Ended::Misspelled(_) => {
                    self.whole.fail();
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

    async fn filter(
        &mut self,
        rows: &Rows,
        claim: Option<&Claim<'_>>,
    ) -> Result<Filtered, LoadFault> {
        self.check(rows)?;
        self.without_bad(rows, claim).await
    }

    fn passes(&self, style: &CsvStyle) -> bool {
        verbatim::passes(&self.layout, style)
    }

    async fn pass(&mut self, csv: CsvText<'_>, mark: Option<&Mark>) -> Result<Loaded, LoadFault> {
        let marked = mark.map_or(Marked::Not, Marked::Whole);
        match self.verbatim(csv, marked).await? {
            Ended::Done(done) => Ok(done.loaded),
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
