//! Locks rows, and reads their values if the destination is another database.

use std::collections::HashMap;
use std::ops::Range;

use windrow_core::moves::{PickMost, Picked};
use windrow_core::{Fault, FaultClass};
use windrow_pgwire::wire::DataRow;

use super::mover::{BEGIN, PgMover};
use super::text::Texts;
use super::unreadable::is_unreadable;
use crate::talk::{Ask, talk, text};

/// The number of rows in the first fetch, before it is known how large they are.
const FIRST_FETCH: usize = 64;

/// Texts that identify a row within its table.
type Handle = Box<[String]>;

impl PgMover {
    /// Locks all rows at once and reads only their names.
    pub(super) async fn pick_names(&mut self, rows: usize) -> Result<Vec<Picked>, Fault> {
        let asks = [Ask::of(BEGIN), Ask::of(self.texts.pick(rows))];
        self.fetch(&asks, &mut 0).await
    }

    /// Locks rows and reads their values, piece by piece, up to the limit in bytes.
    pub(super) async fn pick_values(&mut self, most: PickMost) -> Result<Vec<Picked>, Fault> {
        let cursor = format!(
            "DECLARE windrow NO SCROLL CURSOR FOR {}",
            self.texts.pick(most.rows)
        );
        let mut asks = vec![Ask::of(BEGIN), Ask::of(cursor)];
        let (mut picked, mut bytes) = (Vec::new(), 0);
        let mut next = FIRST_FETCH.min(most.rows);
        loop {
            asks.push(Ask::of(format!("FETCH FORWARD {next} FROM windrow")));
            let before = picked.len();
            picked.extend(self.fetch(&asks, &mut bytes).await?);
            asks.clear();
            let each = bytes / picked.len().max(1) + 1;
            let room = most.bytes.saturating_sub(bytes) / each;
            if picked.len() - before < next || picked.len() >= most.rows || room == 0 {
                break;
            }
            next = room.min(most.rows - picked.len()).min(next * 8);
        }
        self.ask(Ask::of("CLOSE windrow")).await?;
        Ok(picked)
    }

    /// Locks rows first and reads them afterwards, so that a row which cannot be read does not
    /// affect the others.
    pub(super) async fn pick_each(&mut self, most: PickMost) -> Result<Vec<Picked>, Fault> {
        let asks = [Ask::of(BEGIN), Ask::of(self.texts.lock(most.rows))];
        let (mut handles, texts) = (Vec::new(), &self.texts);
        talk(&mut self.wire, &asks, false, &mut |_, row| {
            handles.push(handle(texts, &row));
        })
        .await?;
        self.handles = handles;
        let (mut picked, mut bytes) = (Vec::new(), 0);
        while picked.len() < self.handles.len() && bytes <= most.bytes {
            let end = (picked.len() + FIRST_FETCH).min(self.handles.len());
            let piece = picked.len()..end;
            self.read_each(piece, &mut picked, &mut bytes).await?;
        }
        self.handles.truncate(picked.len());
        Ok(picked)
    }

    /// Reads locked rows. A range that cannot be read is divided in two until it is a single row.
    async fn read_each(
        &mut self,
        rows: Range<usize>,
        picked: &mut Vec<Picked>,
        bytes: &mut usize,
    ) -> Result<(), Fault> {
        let mut stack = vec![rows];
        while let Some(rows) = stack.pop() {
            match self.read(rows.clone(), bytes).await {
                Ok(read) => picked.extend(read),
                Err(fault) if !is_unreadable(&fault) => return Err(fault),
                Err(fault) if rows.len() == 1 => picked.push(Picked {
                    unfit: Some(self.unfit(rows.start, fault).await?),
                    ..Picked::default()
                }),
                Err(_) => {
                    let middle = rows.start + rows.len() / 2;
                    stack.extend([middle..rows.end, rows.start..middle]);
                }
            }
        }
        Ok(())
    }

    /// Reads locked rows after a savepoint, in their order. A failure is undone.
    async fn read(&mut self, rows: Range<usize>, bytes: &mut usize) -> Result<Vec<Picked>, Fault> {
        let mut asks = Vec::new();
        self.save(&mut asks);
        let last = asks.len();
        asks.push(self.named(Ask::of(self.texts.read()), &rows.clone()));
        let mut found: HashMap<Handle, Picked> = HashMap::new();
        let (texts, across) = (&self.texts, self.plan.across);
        let read = talk(&mut self.wire, &asks, false, &mut |at, row| {
            if at == last {
                found.insert(handle(texts, &row), take(texts, across, &row, bytes));
            }
        })
        .await;
        if let Err(failed) = read {
            self.undo().await;
            return Err(failed.fault);
        }
        let lost = || Fault::internal("a locked row cannot be read any more");
        let handles = self.handles.get(rows).unwrap_or_default();
        handles
            .iter()
            .map(|handle| found.remove(handle).ok_or_else(lost))
            .collect()
    }

    /// Returns the reason why a row cannot be moved to another database.
    async fn unfit(&mut self, row: usize, fault: Fault) -> Result<Fault, Fault> {
        let columns = self.unreadable_columns(row).await?;
        let routed = |name| self.plan.route.as_ref() == Some(name);
        if columns.iter().any(routed) {
            return Ok(Picked::nameless());
        }
        let Some(column) = columns.first() else {
            return Ok(fault);
        };
        let message = format!(
            "the value of column {column} is a text that is not UTF-8, which cannot be brought elsewhere as it is: {}",
            fault.message
        );
        let unfit = Fault::new(FaultClass::Value, fault.code, message);
        Ok(unfit.with_column(Some(&**column)))
    }

    async fn fetch(&mut self, asks: &[Ask], bytes: &mut usize) -> Result<Vec<Picked>, Fault> {
        let last = asks.len().saturating_sub(1);
        let mut rows: Vec<Picked> = Vec::new();
        let Self {
            wire,
            handles,
            texts,
            plan,
            ..
        } = self;
        talk(wire, asks, false, &mut |at, row| {
            if at == last {
                handles.push(handle(texts, &row));
                rows.push(take(texts, plan.across, &row, bytes));
            }
        })
        .await?;
        Ok(rows)
    }
}

/// Reads what identifies a row that was fetched.
fn handle(texts: &Texts, row: &DataRow<'_>) -> Handle {
    let places = 0..texts.handles();
    places
        .map(|place| text(row, place).unwrap_or_default())
        .collect()
}

/// Returns a row that was read, and counts its bytes.
fn take(texts: &Texts, across: bool, row: &DataRow<'_>, bytes: &mut usize) -> Picked {
    let names = texts.handles();
    *bytes += row.columns().flatten().map(<[u8]>::len).sum::<usize>();
    let name = match across {
        true => text(row, names + 1).unwrap_or_default(),
        false => String::new(),
    };
    Picked {
        route: text(row, names).map(String::into_boxed_str),
        name: name.into(),
        values: texts.values(row),
        unfit: None,
    }
}
