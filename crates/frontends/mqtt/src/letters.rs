//! Dead letters: messages that are no rows, and rows that the database refuses.

use tokio::sync::OnceCell;
use windrow_bookkeeping::{DeadLetter, create_all, is_of_content};
use windrow_core::bookkeeping::OwnTable;
use windrow_core::{
    Bookkeeping, Fault, FaultClass, Intake, Name, SourceId, Unit, Value, Write, record,
};

use std::borrow::Cow;
use std::sync::Arc;

/// The writer of dead letters.
pub(crate) struct Letters {
    intake: Intake,
    source: SourceId,
    tables: Arc<dyn Bookkeeping>,
    is_there: OnceCell<()>,
}

impl Letters {
    pub(crate) fn new(intake: Intake, tables: Arc<dyn Bookkeeping>) -> Self {
        Self {
            source: intake.new_source(),
            intake,
            tables,
            is_there: OnceCell::new(),
        }
    }

    /// Writes a letter, in a shorter form if the database does not take the whole. Cancel safe, but
    /// for a letter that may be written all the same.
    ///
    /// # Errors
    /// [`FaultClass::Cancelled`](windrow_core::FaultClass::Cancelled) once the lane has shut down,
    /// and why the database refuses it.
    pub(crate) async fn write(&self, letter: &DeadLetter) -> Result<(), Fault> {
        self.is_there.get_or_try_init(|| self.create()).await?;
        let mut form = Cow::Borrowed(letter);
        loop {
            let Err(refusal) = self.write_form(&form).await else {
                return Ok(());
            };
            let shorter = is_of_content(&refusal).then(|| form.shorter());
            form = Cow::Owned(shorter.flatten().ok_or(refusal)?);
        }
    }

    async fn write_form(&self, letter: &DeadLetter) -> Result<(), Fault> {
        match self.submit(letter).await {
            // Another session has dropped the table.
            Err(fault) if fault.class == FaultClass::NoTable => {
                self.create().await?;
                self.submit(letter).await
            }
            written => written,
        }
    }

    async fn submit(&self, letter: &DeadLetter) -> Result<(), Fault> {
        let unit = Unit::one(letter.write());
        let permit = self.intake.budget().take(unit.bytes()).await?;
        let receipt = self.intake.submit(self.source, [unit], permit).await?;
        let outcomes = receipt.await;
        let faults = outcomes.into_iter().filter_map(Result::err);
        faults.map(|failed| failed.fault).next().map_or(Ok(()), Err)
    }

    async fn create(&self) -> Result<(), Fault> {
        create_all(&*self.tables, &[OwnTable::Rejected]).await
    }
}

/// Returns the letter of a row that the database refused.
pub(crate) fn of_row(topic: &str, write: &Write, fault: &Fault) -> DeadLetter {
    DeadLetter::of(source(topic), write, fault)
}

/// Returns the letter of a message that is no row.
pub(crate) fn of_message(topic: &str, table: &str, payload: &[u8], fault: &Fault) -> DeadLetter {
    let value = match std::str::from_utf8(payload) {
        Ok(text) => Value::text(text),
        Err(_) => record::unreadable(payload),
    };
    let row = record::object([(&Name::from(record::MESSAGE), &value)]);
    DeadLetter::of_row(source(topic), table.to_owned(), row, fault)
}

fn source(topic: &str) -> String {
    format!("mqtt {topic}")
}
