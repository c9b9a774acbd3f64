//! Windrow's own tables in a database: dead letters, and the progress of spools. Programs do with
//! it what `windrow dead-letters` does.
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

/// The memory of letters on their way: more than the largest entry of a spool.
const MEMORY: usize = 256 << 20;

/// The attempts to take a letter while other programs work on the letters.
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

/// The right to take letters away. A program that takes a letter advances this row in the same
/// unit, from a position that it knew before it read the letter. So of two programs that have read
/// the same letter only one can take it, and its rows are written once.
struct Turn {
    row: ProgressRow,
    /// Where the row stands, as far as is known here; `None`: it has to be read.
    position: Option<Option<u64>>,
}

impl Books {
    /// Opens the tables of a database, which are made if they are not there. `spool`: the directory
    /// of a spool, which holds them where the database has no transactions.
    ///
    /// # Errors
    /// [`FaultClass::Unsupported`] for a database that cannot have them, and what the database
    /// says.
    pub async fn open(url: &str, spool: Option<&Path>) -> Result<Self, Fault> {
        let books = Self::at(url, spool, true).await?;
        prepare(&*books.tables).await?;
        Ok(books)
    }

    /// Opens the tables to read only: nothing is made.
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

    /// Letters whose number is above `after`, in the order of their numbers, `most` at most.
    ///
    /// # Errors
    /// What the database says.
    pub async fn letters(&self, after: u64, most: usize) -> Result<Vec<KeptLetter>, Fault> {
        dead_letters(&*self.tables, after, most).await
    }

    /// One letter; `None`: there is none of that number.
    ///
    /// # Errors
    /// What the database says.
    pub async fn letter(&self, id: u64) -> Result<Option<KeptLetter>, Fault> {
        let Some(before) = id.checked_sub(1) else {
            return Ok(None);
        };
        let found = self.letters(before, 1).await?;
        Ok(found.into_iter().find(|kept| kept.id == id))
    }

    /// Writes what a letter holds, and takes the letter away, in one transaction: the spool's entry
    /// where it is of a spool, else its row into its destination.
    ///
    /// # Errors
    /// The letter cannot be tried. A refusal is returned as [`Retried::Refused`].
    pub async fn retry(&mut self, id: u64) -> Result<Retried, Fault> {
        self.take(id, writes_of).await
    }

    /// Tries a letter of a spool again whose entry the table did not take. The letter's message
    /// names the file of the entry.
    ///
    /// # Errors
    /// That the file cannot be read, and as [`Books::retry`].
    pub async fn retry_file(&mut self, id: u64, file: &Path) -> Result<Retried, Fault> {
        let read = tokio::fs::read(file).await;
        let entry = read.map_err(|e| {
            Fault::invalid(format!("the file {} cannot be read: {e}", file.display()))
        })?;
        self.take(id, |letter| writes_of_file(letter, file, &entry))
            .await
    }

    /// Takes a letter away. False: it was there no longer.
    ///
    /// # Errors
    /// What the database says.
    pub async fn remove(&mut self, id: u64) -> Result<bool, Fault> {
        match self.take(id, |_| Ok(Vec::new())).await? {
            Retried::Written => Ok(true),
            Retried::Gone => Ok(false),
            Retried::Refused(fault) => Err(fault),
        }
    }

    /// Returns the position up to which a partition of a spool was applied; `None`: nothing of it
    /// was.
    ///
    /// # Errors
    /// What the database says.
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

    /// Ends its connections.
    pub async fn close(self) {
        self.lane.shutdown().await;
    }

    /// Takes a letter away, with writes in its place.
    async fn take(
        &mut self,
        id: u64,
        writes: impl Fn(&DeadLetter) -> Result<Vec<Write>, Fault>,
    ) -> Result<Retried, Fault> {
        // Whether it may be gone because of an attempt whose outcome is not known.
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

    /// Moves the row on, takes a letter away and writes what it held, all of it or nothing.
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

    /// Where the row stands that is moved on by who takes a letter.
    async fn position(&mut self) -> Result<Option<u64>, Fault> {
        if let Some(position) = self.turn.position {
            return Ok(position);
        }
        let position = self.applied(&self.turn.row).await?;
        self.turn.position = Some(position);
        Ok(position)
    }
}

/// Tells a refusal of the letter's writes from a failure of the attempt.
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
