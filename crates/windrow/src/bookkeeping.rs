//! Windrow's own tables in a database: dead letters, and the progress of spools. It gives programs
//! what `windrow dead-letters` does.
//!
//! ```no_run
//! # async fn example() -> Result<(), windrow::Fault> {
//! use windrow::bookkeeping::{Books, Retried};
//!
//! let mut books = Books::open("postgres://app@localhost/shop", None).await?;
//! for kept in books.letters(0, 100).await? {
//!     if let Retried::Refused(fault) = books.retry(kept.id).await? {
//!         println!("{} is refused again: {fault}", kept.id);
//!     }
//! }
//! books.close().await;
//! # Ok(()) }
//! ```

mod beside;
mod writes;

use std::path::Path;
use std::sync::Arc;

use prometheus_client::registry::Registry;
use windrow_bookkeeping::{Applied, DeadLetter, KeptLetter, ProgressRow, dead_letters, prepare};
use windrow_core::{
    Bookkeeping, Budget, Database, Fault, FaultClass, Intake, Limits, SourceId, Unit, Write,
};
use windrow_database::Options;
use windrow_lanes::{Lane, LaneMetrics};

pub(crate) use self::beside::beside;
use self::writes::{removal, writes_of, writes_of_file};
use crate::databases;
use crate::lanes::LANE_CAPACITY;

/// The memory for letters under way: more than the largest entry of a spool.
const MEMORY: usize = 256 << 20;

/// The number of attempts to take a letter while other programs work on the letters.
const TURNS: usize = 100;

/// The result of trying a letter again.
#[derive(Debug)]
pub enum Retried {
    /// The letter's rows are in the database, and the letter is gone.
    Written,
    /// The letter was gone: another program has tried it again, or dropped it.
    Gone,
    /// The letter's rows were refused again, and the letter is unchanged.
    Refused(Fault),
}

/// The tables that Windrow keeps in a database.
pub struct Books {
    tables: Arc<dyn Bookkeeping>,
    intake: Intake,
    source: SourceId,
    lane: Lane,
    turn: Turn,
}

/// The right to remove letters. A program that removes a letter advances this row in the same unit,
/// from a position that it knew before it read the letter. So if two programs have read the same
/// letter, only one can remove it, and its rows are written once.
struct Turn {
    row: ProgressRow,
    /// The row's position as far as it is known here; `None` if it must be read.
    position: Option<Option<u64>>,
}

impl Books {
    /// Opens the tables of a database, and creates them if they do not exist. `spool` is the
    /// directory of a spool, which holds them if the database has no transactions.
    ///
    /// # Errors
    /// [`FaultClass::Unsupported`] for a database that cannot have them; the database's own errors.
    pub async fn open(url: &str, spool: Option<&Path>) -> Result<Self, Fault> {
        let books = Self::at(url, spool, true).await?;
        prepare(&*books.tables).await?;
        Ok(books)
    }

    /// Opens the tables for reading. Creates nothing.
    ///
    /// # Errors
    /// As [`Books::open`].
    pub async fn look(url: &str, spool: Option<&Path>) -> Result<Self, Fault> {
        Self::at(url, spool, false).await
    }

    async fn at(url: &str, spool: Option<&Path>, makes: bool) -> Result<Self, Fault> {
        let options = Options::default();
        let sink = match makes {
            true => databases::open(url, &options).await?,
            false => databases::open_existing(url, &options).await?,
        };
        let sink = match (sink.bookkeeping(), spool) {
            (None, Some(directory)) => beside(&sink, directory, makes).await?,
            _ => sink,
        };
        let tables = tables_of(&*sink)?;
        let (intake, arrivals) = Intake::channel(Budget::new(MEMORY), LANE_CAPACITY);
        let metrics = LaneMetrics::register(&mut Registry::default());
        let lane = Lane::start(sink, Limits::default(), arrivals, metrics, "books".into());
        Ok(Self {
            tables,
            source: intake.new_source(),
            intake,
            lane,
            turn: Turn {
                row: ProgressRow {
                    spool: "rejects".into(),
                    number: 0,
                },
                position: None,
            },
        })
    }

    /// Returns letters whose number is above `after`, in the order of their numbers, at most
    /// `most`.
    ///
    /// # Errors
    /// The database's own errors.
    pub async fn letters(&self, after: u64, most: usize) -> Result<Vec<KeptLetter>, Fault> {
        dead_letters(&*self.tables, after, most).await
    }

    /// Returns a letter by its number.
    ///
    /// # Errors
    /// The database's own errors.
    pub async fn letter(&self, id: u64) -> Result<Option<KeptLetter>, Fault> {
        let Some(before) = id.checked_sub(1) else {
            return Ok(None);
        };
        let found = self.letters(before, 1).await?;
        Ok(found.into_iter().find(|kept| kept.id == id))
    }

    /// Writes the content of a letter and removes the letter, in one transaction. The content is
    /// the entry of a spool, or a row for its destination.
    ///
    /// # Errors
    /// The letter cannot be tried. A refusal is returned as [`Retried::Refused`].
    pub async fn retry(&mut self, id: u64) -> Result<Retried, Fault> {
        self.take(id, writes_of).await
    }

    /// Tries a letter of a spool again whose entry was too large for the table. The letter's
    /// message names the file of the entry.
    ///
    /// # Errors
    /// The file cannot be read, and as [`Books::retry`].
    pub async fn retry_file(&mut self, id: u64, file: &Path) -> Result<Retried, Fault> {
        let read = tokio::fs::read(file).await;
        let entry = read.map_err(|e| {
            Fault::invalid(format!("the file {} cannot be read: {e}", file.display()))
        })?;
        self.take(id, |letter| writes_of_file(letter, file, &entry))
            .await
    }

    /// Removes a letter. Returns false if it did not exist any more.
    ///
    /// # Errors
    /// The database's own errors.
    pub async fn remove(&mut self, id: u64) -> Result<bool, Fault> {
        match self.take(id, |_| Ok(Vec::new())).await? {
            Retried::Written => Ok(true),
            Retried::Gone => Ok(false),
            Retried::Refused(fault) => Err(fault),
        }
    }

    /// Returns the position up to which a partition of a spool was applied; `None` if nothing was.
    ///
    /// # Errors
    /// The database's own errors.
    pub async fn applied(&self, partition: &ProgressRow) -> Result<Option<u64>, Fault> {
        let read = self.intake.run(self.source, Unit::one(partition.read()));
        match read.await {
            Ok(dones) => {
                let found = dones.first().map_or(Ok(None), ProgressRow::found)?;
                Ok(found.map(|applied| applied.position))
            }
            Err(failed) if failed.fault.class == FaultClass::NoTable => Ok(None),
            Err(failed) => Err(failed.fault),
        }
    }

    /// Ends the connections.
    pub async fn close(self) {
        self.lane.shutdown().await;
    }

    /// Removes a letter, and executes other writes in the same unit.
    async fn take(
        &mut self,
        id: u64,
        writes: impl Fn(&DeadLetter) -> Result<Vec<Write>, Fault>,
    ) -> Result<Retried, Fault> {
        // True if the letter may be gone because of an attempt whose outcome is unknown.
        let mut perhaps = false;
        for _ in 0..TURNS {
            let position = self.position().await?;
            let Some(kept) = self.letter(id).await? else {
                return Ok(if perhaps {
                    Retried::Written
                } else {
                    Retried::Gone
                });
            };
            let writes = match writes(&kept.letter) {
                Ok(writes) => writes,
                Err(fault) => return Ok(Retried::Refused(fault)),
            };
            let Err(failed) = self.replace(id, position, writes).await else {
                return Ok(Retried::Written);
            };
            perhaps |= failed.class == FaultClass::Unknown;
            self.turn.position = None;
            let moved = failed.class == FaultClass::Unique && self.position().await? != position;
            if failed.class != FaultClass::Unknown && !moved {
                return told(failed);
            }
        }
        Err(Fault::new(
            FaultClass::Conflict,
            "40001",
            "others work on the dead letters all the time; try again later",
        ))
    }

    /// Advances the row, removes a letter and writes its content, all or nothing.
    async fn replace(
        &mut self,
        id: u64,
        from: Option<u64>,
        writes: Vec<Write>,
    ) -> Result<(), Fault> {
        let to = from.map_or(0, |from| from + 1);
        let advance = self.turn.row.advance(from, &Applied::at(to)).into_iter();
        let unit = Unit::of(advance.chain([removal(id)]).chain(writes));
        let outcome = self.intake.run(self.source, unit).await;
        outcome.map_err(|failed| failed.fault)?;
        self.turn.position = Some(Some(to));
        Ok(())
    }

    /// Returns the position of the row that is advanced whenever a letter is removed.
    async fn position(&mut self) -> Result<Option<u64>, Fault> {
        if let Some(position) = self.turn.position {
            return Ok(position);
        }
        let position = self.applied(&self.turn.row).await?;
        self.turn.position = Some(position);
        Ok(position)
    }
}

/// Separates a refusal of the letter's writes from a failure of the attempt.
fn told(fault: Fault) -> Result<Retried, Fault> {
    if fault.may_retry() {
        return Err(fault);
    }
    Ok(Retried::Refused(fault))
}

fn tables_of(sink: &dyn Database) -> Result<Arc<dyn Bookkeeping>, Fault> {
    sink.bookkeeping().ok_or_else(|| {
        let name = sink.profile().name;
        let message = format!(
            "{name} has no transactions over several tables, so what Windrow keeps is in the directory of the spool: name that with --spool DIR"
        );
        Fault::new(FaultClass::Unsupported, "0A000", message)
    })
}
