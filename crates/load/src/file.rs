//! Loads one file: its columns, the records that are done already, its reader and its workers.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use windrow_core::{Bulk, Fault, Holds, LoadColumn, LoadPlan, Mark, Name, OnConflict, Span};

use super::blame;
use super::columns::{ColumnMatch, ColumnSides};
use super::marking::Marking;
use super::reader::{EarlierRuns, ReadEnd, Reader};
use super::rejects::Origin;
use super::resume::{Identity, head, head_of};
use super::retries::Retries;
use super::shared::Shared;
use super::spans::Spans;
use super::team::{Channels, Team};
use super::way::Ways;
use super::{Input, LoadError, MadeColumn, Opener, Run};
use crate::source::{Portion, PortionLimits, Source};

/// Bytes of values in a portion.
const PORTION_BYTES: usize = 4 << 20;

/// Bytes of values in all portions together: with raw records and places a portion takes up to
/// three times as much.
const ALL_PORTIONS_BYTES: usize = 40 << 20;

/// Fields in a portion: each takes some bytes besides its value.
const PORTION_FIELDS: usize = 400_000;

/// Rows of a portion for databases without a bulk form.
const PORTION_ROWS: usize = 10_000;

/// The default number of connections that load at once. More of them help only if the database has
/// idle cores.
const JOBS: usize = 2;

/// The outcome of a file.
pub(super) struct FileDone {
    pub(super) bytes: u64,
    pub(super) done_before: bool,
    /// The form by which its rows were written.
    pub(super) form: String,
    /// The line of a last record without its end, which was not loaded.
    pub(super) left: Option<u64>,
    /// The number of empty lines that were skipped, and the line of the first.
    pub(super) empty: (u64, u64),
    /// The line of the first backslash that may be an escape, in a tab-separated file.
    pub(super) backslashes: Option<u64>,
    pub(super) made: Vec<MadeColumn>,
}

/// An open file, with its columns matched to those of the table.
struct OpenFile {
    source: Box<dyn Source>,
    matched: ColumnMatch,
    /// Columns that stay the same when the file grows; they identify its load.
    lasting: Vec<Name>,
}

impl Run {
    /// Checks the columns of all files before the first file is loaded.
    pub(super) async fn look(&self, inputs: &[Input]) -> Result<(), LoadError> {
        let bulk = self.target.sink.bulk();
        let mut header: Option<Box<[u8]>> = None;
        for input in inputs.iter().filter(|input| !input.once) {
            let table = self.table(bulk.as_deref(), &input.name).await?;
            let open = Arc::clone(&input.open);
            let opened = self.open(&input.name, open, table.as_deref()).await?;
            let found = opened.source.header().unwrap_or_default();
            let first = header.get_or_insert_with(|| found.into());
            if **first != *found && self.rejects.keeps() {
                return Err(LoadError::Invalid(format!(
                    "{}: it has another header than the files before it, and refused rows of all of them are to be kept in one file \
                     behind one header; give each load a file of its own",
                    input.name
                )));
            }
        }
        Ok(())
    }

    /// Loads one file. `bytes_before` is the size of the files before it.
    pub(super) async fn file(
        &self,
        input: Input,
        bytes_before: u64,
    ) -> Result<FileDone, LoadError> {
        let bulk = self.target.sink.bulk();
        let halt = self.stop.child_token();
        let table = self.table(bulk.as_deref(), &input.name).await?;
        let opened = self.open(&input.name, input.open, table.as_deref()).await?;
        self.rejects.header(opened.source.header())?;
        let columns = &opened.matched.columns;
        let marking = match &input.identity {
            Some(identity) => {
                let lasting = &opened.lasting;
                Some(self.marking(bulk.as_deref(), identity, lasting).await?)
            }
            None => None,
        };
        let origin = Origin {
            file: input.name,
            load: marking.as_ref().map(|marking| marking.load.clone()),
        };
        if let Some(marking) = &marking {
            let head = opened.source.head();
            self.check_head(marking, head, &origin.file).await?;
        }
        let earlier = Arc::new(self.earlier(marking.as_ref(), &origin).await?);
        let plan = self.plan(columns);
        let jobs = self.jobs(bulk.as_deref());
        let passes = bulk.as_deref().is_some_and(Bulk::passes);
        let columns: Vec<Name> = columns.to_vec();
        let shared = Arc::new(Shared {
            origin,
            targets: blame::targets(&columns, table.as_deref()),
            rejects: Arc::clone(&self.rejects),
            meter: Arc::clone(&self.meter),
            marking,
            ways: Arc::new(Mutex::new(Ways::new(passes))),
            unsupported: Mutex::default(),
            witness: self.load.create.then(Mutex::default),
            away_wait: self.load.away_wait,
            halt,
        });
        let create = self.load.create && (table.is_none() || opened.matched.lacking);
        let declared = opened.source.declared();
        let channels = self.start(
            &shared,
            &earlier,
            opened,
            bulk.as_deref(),
            jobs,
            bytes_before,
        );
        let team = Team {
            run: self,
            shared: &shared,
            plan,
            bulk: bulk.clone(),
            jobs,
        };
        let create = create.then_some(&*declared);
        let worked = team.work(&channels, create).await;
        drop(channels.full);
        drop(channels.free);
        worked?;
        if self.stop.is_cancelled() {
            return Err(LoadError::Interrupted);
        }
        let read = channels.reader.await;
        let read = read.map_err(|_| LoadError::Defect("the reader of a file has crashed"))??;
        self.finish(&shared, &earlier.done, read).await?;
        let made = self
            .made(&shared, table.as_deref(), &columns, &declared)
            .await?;
        let unsupported = shared.unsupported.lock().clone();
        Ok(FileDone {
            form: match &unsupported {
                Some(why) => format!("row by row ({why})"),
                None => Self::form_of(bulk.as_deref()),
            },
            bytes: read.bytes,
            done_before: !earlier.done.is_empty()
                && earlier.done.end() == read.records
                && read.whole,
            left: read.left,
            empty: read.empty,
            backslashes: read.backslashes,
            made,
        })
    }

    /// Reads the table's columns if the database has a bulk form; waits for the database.
    async fn table(
        &self,
        bulk: Option<&dyn Bulk>,
        file: &str,
    ) -> Result<Option<Vec<LoadColumn>>, LoadError> {
        let Some(bulk) = bulk else { return Ok(None) };
        let columns = self.ask(file, || bulk.columns(&self.load.table)).await?;
        match columns {
            None if !self.load.create => Err(LoadError::Invalid(format!(
                "there is no table {} in the database; make it, or let it be made from the file with --create",
                self.load.table
            ))),
            found => Ok(found),
        }
    }

    async fn open(
        &self,
        name: &str,
        open: Opener,
        table: Option<&[LoadColumn]>,
    ) -> Result<OpenFile, LoadError> {
        let opening = tokio::task::spawn_blocking(move || open());
        let opened = tokio::select! {
            opened = opening => opened,
            () = self.stop.cancelled() => return Err(LoadError::Interrupted),
        };
        let mut source = opened.map_err(|_| LoadError::Defect("opening a file has crashed"))??;
        let picks = self.load.columns.as_deref();
        let further = self.sides(&*source, table).further(source.others());
        source.admit(&further, picks.is_some());
        let matched = self
            .sides(&*source, table)
            .matched()
            .map_err(|reason| LoadError::Invalid(format!("{name}: {reason}")))?;
        source.choose(&matched.chosen);
        source.means(&matched.means);
        let lasts = |at: usize| picks.is_some() || at < source.lasting();
        let columns = matched.chosen.iter().zip(&matched.columns);
        let lasting = columns.filter(|(at, _)| lasts(**at));
        Ok(OpenFile {
            lasting: lasting.map(|(_, column)| column.clone()).collect(),
            source,
            matched,
        })
    }

    fn sides<'a>(
        &'a self,
        source: &'a dyn Source,
        table: Option<&'a [LoadColumn]>,
    ) -> ColumnSides<'a> {
        ColumnSides {
            file: source.names(),
            fields: source.columns(),
            picks: self.load.columns.as_deref(),
            table,
            create: self.load.create,
        }
    }

    async fn marking(
        &self,
        bulk: Option<&dyn Bulk>,
        identity: &Identity,
        columns: &[Name],
    ) -> Result<Marking, LoadError> {
        let marks = bulk.and_then(Bulk::marks).ok_or_else(|| {
            LoadError::Invalid(format!(
                "--resume is not available: {} cannot write rows and the mark that says so in one transaction; \
                 run the load again with --on-conflict ignore instead, which leaves out what is there",
                self.target.sink.profile().name
            ))
        })?;
        self.ask(Mark::TABLE, || marks.prepare()).await?;
        Ok(Marking {
            marks,
            load: identity.load(&self.load.table, columns),
        })
    }

    /// Refuses a file that does not begin as it did when its load began.
    async fn check_head(
        &self,
        marking: &Marking,
        bytes: &[u8],
        file: &str,
    ) -> Result<(), LoadError> {
        let name = head_of(&marking.load);
        let known = self.ask(file, || marking.marks.read(&name)).await?;
        let length = known.first().map(|span| span.end - span.first);
        let found = head(bytes, length);
        match known.first() {
            Some(span) if *span == found => Ok(()),
            Some(_) => Err(LoadError::Invalid(format!(
                "{file}: the file has changed since its load began, so it cannot be known which of its rows are in; \
                 load it as another one with --resume-as NAME, or without --resume"
            ))),
            None => {
                let mark = Mark {
                    load: name,
                    span: found,
                };
                self.ask(file, || marking.marks.merge(&mark)).await
            }
        }
    }

    /// Reads which records earlier runs of the load have done.
    async fn earlier(
        &self,
        marking: Option<&Marking>,
        origin: &Origin,
    ) -> Result<EarlierRuns, LoadError> {
        let Some(marking) = marking else {
            return Ok(EarlierRuns::default());
        };
        let file = &origin.file;
        let marked = self.ask(file, || marking.marks.read(&marking.load)).await?;
        let rejected = self.rejects.before(&marking.load);
        let lane = marking.lane_name();
        let noted = self.ask(file, || marking.marks.read(&lane)).await?;
        Ok(EarlierRuns {
            done: Spans::new(marked.into_iter().chain(rejected)),
            by_lane: Spans::new(noted),
        })
    }

    /// Replaces the marks of the file by one.
    async fn finish(&self, shared: &Shared, done: &Spans, read: ReadEnd) -> Result<(), LoadError> {
        let file = &shared.origin.file;
        // An earlier run may have read a last line without its end as a record.
        let records = read.records + u64::from(read.left.is_some());
        if records < done.end() {
            return Err(LoadError::Invalid(format!(
                "{file}: the file has {} records, and an earlier run had done {} of them: it was cut or replaced since; \
                 load it as another one with --resume-as NAME, or without --resume",
                read.records,
                done.end()
            )));
        }
        let all = Span {
            first: 0,
            end: read.records,
        };
        match &shared.marking {
            Some(marking) if read.whole && all.first < all.end && done.end() <= all.end => {
                let mark = marking.mark(all);
                self.ask(file, || marking.marks.merge(&mark)).await?;
                let lane = marking.lane_name();
                self.ask(file, || marking.marks.forget(&lane)).await
            }
            _ => Ok(()),
        }
    }

    /// Returns the columns that were created or changed. `before` holds the table's columns before
    /// the load, `declared` the types that the file declares.
    async fn made(
        &self,
        shared: &Shared,
        before: Option<&[LoadColumn]>,
        columns: &[Name],
        declared: &[Option<Holds>],
    ) -> Result<Vec<MadeColumn>, LoadError> {
        let (Some(witness), Some(bulk)) = (&shared.witness, self.target.sink.bulk()) else {
            return Ok(Vec::new());
        };
        let file = &shared.origin.file;
        let now = self.table(Some(&*bulk), file).await?.unwrap_or_default();
        let witness = witness.lock();
        let made = |(place, name): (usize, &Name)| {
            let is_it = |column: &&LoadColumn| column.name == *name;
            let column = now.iter().find(is_it)?;
            let old = before.and_then(|columns| columns.iter().find(is_it));
            let new = old.is_none_or(|old| old.type_name != column.type_name);
            new.then(|| MadeColumn {
                column: name.clone(),
                type_name: column.type_name.clone(),
                file: file.clone(),
                declared: declared.get(place).is_some_and(Option::is_some),
                odd: witness
                    .odd(place)
                    .filter(|_| column.type_name.contains("text")),
            })
        };
        Ok(columns.iter().enumerate().filter_map(made).collect())
    }

    /// Calls the database, again while it is unreachable or other sessions conflict.
    pub(super) async fn ask<T, F: Future<Output = Result<T, Fault>>>(
        &self,
        place: &str,
        ask: impl Fn() -> F,
    ) -> Result<T, LoadError> {
        let mut retries = Retries::new(self.load.away_wait, &self.stop);
        retries.call(|| place.to_owned(), ask).await
    }

    fn plan(&self, columns: &[Name]) -> LoadPlan {
        LoadPlan {
            table: self.load.table.clone(),
            columns: columns.into(),
            on_conflict: self.load.on_conflict,
            key: self.load.key.clone(),
        }
    }

    /// Returns the number of workers.
    fn jobs(&self, bulk: Option<&dyn Bulk>) -> usize {
        // A later row replaces an earlier one, so their order matters.
        let usual = match self.load.on_conflict {
            OnConflict::Update => 1,
            OnConflict::Error | OnConflict::Ignore => JOBS,
        };
        let asked = self.load.jobs.map_or(usual, std::num::NonZero::get);
        asked.clamp(1, bulk.map_or(1, Bulk::most_loaders).max(1))
    }

    fn portion_rows(&self, bulk: Option<&dyn Bulk>) -> usize {
        let asked = self.load.portion_rows.map(std::num::NonZero::get);
        asked.unwrap_or_else(|| bulk.map_or(PORTION_ROWS, Bulk::portion_rows).max(1))
    }

    /// Starts reading. The rows of the file use the memory of the portions that are made here, two
    /// more than jobs.
    fn start(
        &self,
        shared: &Arc<Shared>,
        earlier: &Arc<EarlierRuns>,
        opened: OpenFile,
        bulk: Option<&dyn Bulk>,
        jobs: usize,
        bytes_before: u64,
    ) -> Channels {
        let columns = opened.matched.columns.len();
        let portions = jobs + 2;
        let (full_in, full) = mpsc::channel(1);
        let (free, free_out) = mpsc::channel(portions);
        for _ in 0..portions {
            free.try_send(Portion::new(columns)).ok();
        }
        let reader = Reader {
            style: opened.source.style().map(Arc::new),
            ways: Arc::clone(&shared.ways),
            source: opened.source,
            most: PortionLimits {
                records: self
                    .portion_rows(bulk)
                    .min((PORTION_FIELDS / columns.max(1)).max(1)),
                bytes: PORTION_BYTES.min(ALL_PORTIONS_BYTES / portions),
            },
            limit: self.load.limit.unwrap_or(u64::MAX),
            earlier: Arc::clone(earlier),
            meter: Arc::clone(&self.meter),
            bytes_before,
            halt: shared.halt.clone(),
        };
        Channels {
            full: Arc::new(tokio::sync::Mutex::new(full)),
            free,
            reader: tokio::task::spawn_blocking(move || reader.run(free_out, &full_in)),
        }
    }
}
