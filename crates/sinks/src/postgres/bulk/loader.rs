//! One connection that loads.

use async_trait::async_trait;
use windrow_core::{Fault, LoadFault, Loaded, Loader, Mark, OnConflict, Rows};

use super::heard::Step;
use super::layout::Layout;
use super::odd::Odd;
use super::transfer::{Spelling, Transfer};
use windrow_pgwire::wire::Wire;

/// The most portions that go as text before the binary form is tried again.
const MOST_TEXT: u32 = 64;

/// A connection, and what is done with each portion.
pub(super) struct PortionLoader {
    wire: Wire,
    layout: Layout,
    /// Portions that go as text, because the last one had to.
    text_left: u32,
    /// How many that were.
    text_last: u32,
    /// Keys come more than once in a portion.
    repeated: bool,
}

/// How an attempt ended, if not with a fault.
enum Ended {
    Done(Loaded),
    /// The form has no words for a field.
    Odd(Odd),
    /// A key came twice.
    Repeated(LoadFault),
}

impl PortionLoader {
    pub(super) fn new(wire: Wire, layout: Layout) -> Self {
        Self {
            wire,
            layout,
            text_left: 0,
            text_last: 0,
            repeated: false,
        }
    }

    /// The form of the next portion.
    fn spelling(&mut self) -> Spelling {
        if !self.layout.binary {
            return Spelling::Text;
        }
        match self.text_left.checked_sub(1) {
            Some(left) => {
                self.text_left = left;
                Spelling::Text
            }
            None => Spelling::Binary,
        }
    }

    /// A portion cannot be written in binary: others like it will follow.
    fn turn_to_text(&mut self) {
        self.text_last = (self.text_last * 2).clamp(1, MOST_TEXT);
        self.text_left = self.text_last;
    }

    async fn attempt(
        &mut self,
        rows: &Rows,
        mark: Option<&Mark>,
        spelling: Spelling,
    ) -> Result<Ended, LoadFault> {
        let staged = self.layout.staged.as_ref();
        let merge = staged.map(|staged| match &staged.merge_last {
            Some(last) if self.repeated => last.as_str(),
            _ => staged.merge.as_str(),
        });
        let mut transfer = Transfer::new(&self.layout, merge, mark, spelling, rows);
        let ended = self.wire.converse(1, &mut transfer).await;
        let said = transfer.said();
        let Transfer {
            steps,
            mut heard,
            odd,
            ..
        } = transfer;
        if let Err(broken) = ended {
            return Err(heard.lost(&steps, said, &broken));
        }
        if let Some(odd) = odd {
            return Ok(Ended::Odd(odd));
        }
        let repeats = heard.error.as_ref().is_some_and(|e| e.code == "21000")
            && heard.rows(&steps, Step::Copy).is_some();
        match heard.refusal(&steps) {
            Some(fault) if repeats => return Ok(Ended::Repeated(fault)),
            Some(fault) => return Err(fault),
            None => {}
        }
        let all = rows.len() as u64;
        let merged = heard.rows(&steps, Step::Merge);
        let copied = heard.rows(&steps, Step::Copy);
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
        Ok(Ended::Done(Loaded { written, ignored }))
    }
}

#[async_trait]
impl Loader for PortionLoader {
    async fn load(&mut self, rows: &Rows, mark: Option<&Mark>) -> Result<Loaded, LoadFault> {
        if rows.columns() != self.layout.columns.len() {
            let fault = Fault::internal("a portion has not the columns of its load");
            return Err(LoadFault::Hopeless(fault));
        }
        let mut spelling = self.spelling();
        loop {
            match self.attempt(rows, mark, spelling).await? {
                Ended::Done(loaded) => return Ok(loaded),
                Ended::Odd(odd) if spelling == Spelling::Text => {
                    return Err(LoadFault::Refused(odd.fault()));
                }
                Ended::Odd(_) => {
                    self.turn_to_text();
                    spelling = Spelling::Text;
                }
                Ended::Repeated(fault) => {
                    let known = self.layout.staged.as_ref();
                    if self.repeated || known.is_none_or(|s| s.merge_last.is_none()) {
                        return Err(fault);
                    }
                    self.repeated = true;
                }
            }
        }
    }

    async fn close(self: Box<Self>) {
        self.wire.terminate().await;
    }
}
