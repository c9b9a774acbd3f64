//! One connection that loads.

use async_trait::async_trait;
use windrow_core::{
    Claim, Contents, CsvStyle, Fault, FaultClass, Filtered, FormSkips, LoadFault, Loaded, Loader,
    OnConflict,
};

use super::answers::{Answers, Step};
use super::data::Data;
use super::layout::Layout;
use super::misspelled::Misspelled;
use super::row_checks::Judge;
use super::stream::{Choice, Spelling, Stream};
use super::transfer::Transfer;
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
    /// The same for portions whose bad rows are left out: there, a few odd spellings are no reason
    /// for text.
    in_parts: FormSkips,
    /// True if keys come more than once in a portion.
    repeated: bool,
}

/// The rows of a portion that the next attempt sends, and their form.
pub(super) struct Order {
    spelling: Spelling,
    /// Rows that are left out, by their places in order.
    pub(super) without: Vec<usize>,
    /// Rows that were left out because the server named them.
    pub(super) unforeseen: usize,
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

    /// Notes that keys come more than once. Returns false if that was known, or if it does not
    /// help.
    fn learns_of_repeated(&mut self) -> bool {
        let known = self.layout.staged.as_ref();
        // The number of rows to write would not be known.
        let helps = !self.layout.drops && known.is_some_and(|staged| staged.merge_last.is_some());
        helps && !std::mem::replace(&mut self.repeated, true)
    }

    /// Writes a portion, in as many attempts as it takes.
    async fn portion(
        &mut self,
        contents: Contents<'_>,
        claim: Option<&Claim<'_>>,
    ) -> Result<Filtered, LoadFault> {
        let mut order = self.first_order(contents).await?;
        loop {
            match self.attempt(contents, claim, &order).await? {
                Ended::Done(done) => {
                    if order.spelling == Spelling::Binary {
                        self.skips(contents).succeed();
                    }
                    return Ok(done);
                }
                Ended::Misspelled(misspelled)
                    if order.spelling == Spelling::Text
                        || !contents.leaves_out() && misspelled == Misspelled::Misfit =>
                {
                    return Err(LoadFault::Refused(misspelled.fault()));
                }
                Ended::Misspelled(_) => {
                    self.skips(contents).fail();
                    order.spelling = Spelling::Text;
                }
                Ended::Repeated(_) if self.learns_of_repeated() => {}
                Ended::Repeated(fault) => return Err(fault),
                Ended::Refused(refusal) => self.leave_out(contents, refusal, &mut order).await?,
            }
        }
    }

    async fn first_order(&mut self, contents: Contents<'_>) -> Result<Order, LoadFault> {
        let (spelling, without) = match contents {
            Contents::Csv(_) => (Spelling::Text, Vec::new()),
            Contents::Rows(_) => (self.layout.spelling(&mut self.whole), Vec::new()),
            Contents::GoodRows(rows) => (
                self.layout.spelling(&mut self.in_parts),
                self.found(rows).await?,
            ),
        };
        Ok(Order {
            spelling,
            without,
            unforeseen: 0,
        })
    }

    fn skips(&mut self, contents: Contents<'_>) -> &mut FormSkips {
        match contents.leaves_out() {
            true => &mut self.in_parts,
            false => &mut self.whole,
        }
    }

    /// Sends a portion once.
    async fn attempt(
        &mut self,
        contents: Contents<'_>,
        claim: Option<&Claim<'_>>,
        order: &Order,
    ) -> Result<Ended, LoadFault> {
        let leaves_out = contents.leaves_out() && self.leaves_out();
        let (layout, wire) = (&self.layout, &mut self.wire);
        let merge = layout.merge(self.repeated);
        let exchanged = match contents {
            Contents::Csv(csv) => {
                let data = Verbatim::new(csv);
                exchange(wire, Transfer::new(layout, merge, claim, data)).await?
            }
            Contents::Rows(rows) | Contents::GoodRows(rows) => {
                let choice = Choice {
                    targets: &layout.columns,
                    only: None,
                    placed: layout.staged.is_some(),
                    spelling: order.spelling,
                    without: &order.without,
                    leaves_out,
                };
                let data = Stream::new(choice, rows);
                exchange(wire, Transfer::new(layout, merge, claim, data)).await?
            }
        };
        self.ended(contents.count(), exchanged)
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

    fn check(&self, contents: Contents<'_>) -> Result<(), LoadFault> {
        let columns = self.layout.columns.len();
        if contents.rows().is_ok_and(|rows| rows.columns() != columns) {
            let fault = Fault::internal("a portion has not the columns of its load");
            return Err(LoadFault::Hopeless(fault));
        }
        Ok(())
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
    async fn write(
        &mut self,
        contents: Contents<'_>,
        claim: Option<&Claim<'_>>,
    ) -> Result<Filtered, LoadFault> {
        self.check(contents)?;
        self.portion(contents, claim).await
    }

    fn passes(&self, style: &CsvStyle) -> bool {
        verbatim::passes(&self.layout, style)
    }

    async fn close(self: Box<Self>) {
        self.wire.terminate().await;
    }
}
