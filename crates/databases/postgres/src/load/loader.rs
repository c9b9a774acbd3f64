//! One connection that loads.

use async_trait::async_trait;
use windrow_core::{
    Claim, CsvStyle, CsvText, Fault, FaultClass, Filtered, LoadFault, Loaded, Loader, Mark,
    OnConflict, Rows,
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

/// The most portions that go as text before the binary form is tried again.
const MOST_TEXT: u32 = 64;

/// A connection, and what is done with each portion.
pub(super) struct PortionLoader {
    pub(super) wire: Wire,
    pub(super) layout: Layout,
    /// What has refused rows so far.
    pub(super) seen: Vec<Judge>,
    /// The form of whole portions, and that of portions whose bad rows are left out: there a few
    /// odd spellings are no reason for text.
    whole: Form,
    pub(super) in_parts: Form,
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
    pub(super) leaves_out: bool,
}

/// How an attempt ended, if not with a fault that is none of its rows.
pub(super) enum Ended {
    Done(Filtered),
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
            in_parts: Form::default(),
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

    /// What became of the rows that were sent.
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

/// What was sent of a portion, and what was answered.
struct Exchanged {
    steps: Vec<Step>,
    answers: Answers,
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
            spelling: self.whole.next(self.layout.binary),
            without: &[],
            leaves_out: false,
        };
        loop {
            match self.attempt(rows, order).await? {
                Ended::Done(done) => return Ok(done.loaded),
                Ended::Misspelled(misspelled)
                    if order.spelling == Spelling::Text || misspelled == Misspelled::Misfit =>
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
