//! Writes rows to the dead letters.

use windrow_core::moves::Rejected;
use windrow_core::{Fault, Name};

use super::mover::PgMover;
use super::unreadable::{is_unreadable, spelled_out};
use crate::talk::{Ask, talk};

/// Properties of the dead letters that are written.
#[derive(Clone, Copy)]
struct Manner<'a> {
    /// Columns whose texts cannot be read: the dead letter keeps their bytes.
    unreadable: &'a [Name],
    /// True if messages are written in ASCII alone.
    plain: bool,
}

impl PgMover {
    /// Writes rows to the dead letters. If a dead letter could not be read again, or its message
    /// has no form in the database's encoding, the rows are divided in two until that row is found.
    pub(super) async fn put_aside(&mut self, rows: &[Rejected<'_>]) -> Result<(), Fault> {
        let fine = Manner {
            unreadable: &[],
            plain: false,
        };
        let mut stack = vec![rows];
        while let Some(rows) = stack.pop() {
            let Err(fault) = self.write_letters(rows, fine).await else {
                continue;
            };
            if !is_unreadable(&fault) {
                self.spoiled = true;
                return Err(fault);
            }
            match rows {
                [row] => self.write_unreadable(row).await?,
                rows => {
                    let (first, second) = rows.split_at(rows.len() / 2);
                    stack.extend([second, first]);
                }
            }
        }
        Ok(())
    }

    /// Writes the dead letter of a row whose dead letter was refused in its usual form.
    async fn write_unreadable(&mut self, row: &Rejected<'_>) -> Result<(), Fault> {
        let columns = self.unreadable_columns(row.row).await?;
        let mut written = Ok(());
        for plain in [false, true] {
            let manner = Manner {
                unreadable: &columns,
                plain,
            };
            written = self.write_letters(&[*row], manner).await;
            if !written.as_ref().is_err_and(is_unreadable) {
                break;
            }
        }
        self.spoiled |= written.is_err();
        written
    }

    /// Writes the dead letters of rows after a savepoint, and reads them as later readers will. A
    /// failure is undone.
    async fn write_letters(
        &mut self,
        rows: &[Rejected<'_>],
        manner: Manner<'_>,
    ) -> Result<(), Fault> {
        let mut asks = Vec::new();
        self.save(&mut asks);
        let last = asks.len();
        let ask = Ask::of(self.texts.reject(manner.unreadable));
        let ask = self.named(ask, &rows.iter().map(|rejected| rejected.row));
        let word = |text: &str| match manner.plain {
            true => spelled_out(text),
            false => text.to_owned(),
        };
        let words = |of: &dyn Fn(&Rejected<'_>) -> Option<String>| -> Vec<Option<String>> {
            rows.iter().map(of).collect()
        };
        let columns = [
            words(&|row| Some(word(row.destination))),
            words(&|row| Some(row.fault.code.to_string())),
            words(&|row| Some(word(&row.fault.message))),
            words(&|row| row.fault.constraint().map(word)),
        ];
        let ask = ask.text(&self.plan.source.to_string());
        asks.push(columns.iter().fold(ask, |ask, texts| {
            ask.texts(texts.iter().map(Option::as_deref))
        }));
        let mut count = 0;
        let written = talk(&mut self.wire, &asks, false, &mut |at, _| {
            count += usize::from(at == last);
        })
        .await;
        match written {
            Ok(()) if count == rows.len() => Ok(()),
            Ok(()) => {
                self.spoiled = true;
                Err(self.stays())
            }
            Err(failed) => {
                self.undo().await;
                Err(failed.fault)
            }
        }
    }

    /// Returns the columns of a locked row whose texts cannot be read.
    pub(super) async fn unreadable_columns(&mut self, row: usize) -> Result<Vec<Name>, Fault> {
        let mut unreadable = Vec::new();
        for column in self.texts.all.clone() {
            let mut asks = Vec::new();
            self.save(&mut asks);
            asks.push(self.named(Ask::of(self.texts.probe(&column)), &std::iter::once(row)));
            match talk(&mut self.wire, &asks, false, &mut |_, _| {}).await {
                Ok(()) => {}
                Err(failed) if is_unreadable(&failed.fault) => {
                    self.undo().await;
                    unreadable.push(column);
                }
                Err(failed) => return Err(failed.fault),
            }
        }
        Ok(unreadable)
    }
}
