//! Writes one partition: groups, segments, and what happens if the disk fails.
//!
//! One thread owns the journal. Nothing is acknowledged before it is synced, and at most one group
//! is written and not synced: recovery relies on both.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::entry::{Batch, Origin, Position};
use crate::fault::SpoolFault;
use crate::files::{FileHandle, Files, write_all};
use crate::format::{GroupHeader, GroupWriter, HEADER, Mark, SegmentHeader, millis};
use crate::segment;
use crate::shelf::Shelf;

/// The extension of a file that is not complete.
pub(crate) const UNFINISHED: &str = "new";

/// The bytes allocated after the end of the log. A sync of a file that grows has to store its
/// length as well, which took a third to a half longer on ext4.
const AHEAD: u64 = 1 << 20;

/// The writing end of a partition.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) shelf: Arc<Shelf>,
    /// The current segment.
    pub(crate) file: Box<dyn FileHandle>,
    pub(crate) first: Position,
    /// The offset of the next group: everything before it is synced.
    pub(crate) end: u64,
    /// The length of the file: after `end` there are zeros.
    pub(crate) length: u64,
    pub(crate) next: Position,
    /// The next number in the origin of entries.
    pub(crate) sequence: u64,
    /// The mark's file; `None` if it could not be created. It is not essential.
    pub(crate) mark: Option<Box<dyn FileHandle>>,
    pub(crate) writer: GroupWriter,
}

impl Journal {
    /// Appends all entries of the batches, at least one, as one group. Returns the position of the
    /// first once all are durable.
    pub(crate) fn append(&mut self, batches: &[Batch]) -> Result<Position, SpoolFault> {
        self.shelf.common.check()?;
        let limit = self.shelf.common.options.segment_limit();
        if self.end >= limit {
            self.begin_another()?;
        }
        let written = millis(self.shelf.common.options.clock.now());
        let count: u64 = batches.iter().map(|batch| batch.len() as u64).sum();
        let origin = Origin {
            gateway: self.shelf.common.gateway,
            sequence: self.sequence,
        };
        // Even if the attempt fails: no two attempts may have the same checksums.
        self.sequence += count;
        let salt = self.shelf.identity.salt(self.first);
        let head = (self.next, written, origin);
        let bytes = self.writer.lay_out(salt, head, batches.iter());
        let header = GroupHeader::decode(bytes, salt);
        let behind = self.end + bytes.len() as u64;
        if behind > self.length {
            // Without allocated space, syncs take longer. The write itself reports a full disk.
            let ahead = behind + AHEAD.min(limit);
            let made = self.file.reserve(ahead);
            self.length = made.map_or(behind, |()| ahead);
        }
        if let Err(e) = write_all(&*self.file, bytes, self.end) {
            let bytes = bytes.len() as u64;
            return Err(self.take_back(e, bytes));
        }
        self.sync()?;
        let first = self.next;
        if let Some(header) = header {
            self.end += header.bytes();
            self.next = header.end();
            self.shelf.publish(&header);
        }
        self.write_mark();
        Ok(first)
    }

    /// Syncs the segment. If that fails, the content of the disk is unknown and cannot be found
    /// out: the system has dropped what it could not write, and reads return what it has in memory.
    fn sync(&self) -> Result<(), SpoolFault> {
        self.file.sync().map_err(|e| {
            let what = format!("a sync of the disk failed: {e}");
            let why = self.shelf.common.poison(&self.path(), &what);
            SpoolFault::Unknown { why }
        })?;
        if let Ok(false) = self.file.has_name() {
            let what = "the file was removed, with all that is in it";
            let why = self.shelf.common.poison(&self.path(), what);
            return Err(SpoolFault::Poisoned { why });
        }
        // If a sync of another partition has failed meanwhile, a success on this disk proves
        // nothing.
        match self.shelf.common.poisoned() {
            Some(why) => Err(SpoolFault::Unknown { why }),
            None => Ok(()),
        }
    }

    /// Removes a group that was not written completely, from the disk too, before another group
    /// takes its place.
    fn take_back(&mut self, source: io::Error, bytes: u64) -> SpoolFault {
        let common = &self.shelf.common;
        let path = self.path();
        let cut = self.file.truncate(self.end).and_then(|()| self.file.sync());
        self.length = self.end;
        if let Err(e) = cut {
            common.poison(
                &path,
                &format!("a failed write could not be taken back: {e}"),
            );
        } else if !is_full(&source) {
            common.poison(&path, &format!("a write failed: {source}"));
        }
        refused(source, path, bytes)
    }

    /// Begins another segment, unless nothing was written to the current one. Fails if the end of
    /// the current one is uncertain: a crash may leave anything at the end of the last segment, but
    /// not of an earlier one.
    pub(crate) fn begin_another(&mut self) -> Result<(), SpoolFault> {
        self.shelf.common.check()?;
        match self.end > HEADER as u64 {
            true => self.roll(),
            false => Ok(()),
        }
    }

    /// Begins another segment. It gets its name once its header is synced, so that a named segment
    /// has a whole header.
    fn roll(&mut self) -> Result<(), SpoolFault> {
        let common = &self.shelf.common;
        let made = millis(common.options.clock.now());
        let header = SegmentHeader {
            identity: self.shelf.identity,
            first: self.next,
            made,
        };
        let path = segment::path_of(&self.shelf.directory, self.next);
        let file = begin_file(&*common.files, &path, &header.encode());
        let file = file.map_err(|e| match e {
            Begun::Not(e) if is_full(&e) => refused(e, path.clone(), HEADER as u64),
            Begun::Not(e) => {
                let what = format!("a new file could not be made: {e}");
                let why = common.poison(&path, &what);
                SpoolFault::Poisoned { why }
            }
            Begun::Unsynced(e) => {
                let what = format!("a new file could not be made durable: {e}");
                let why = common.poison(&path, &what);
                SpoolFault::Poisoned { why }
            }
        })?;
        self.cut();
        self.file = file;
        self.first = self.next;
        (self.end, self.length) = (HEADER as u64, HEADER as u64);
        self.shelf.add(self.first);
        self.write_mark();
        Ok(())
    }

    /// Frees the space allocated after the last group. If that fails, or after a crash, zeros
    /// remain at the end of the segment, which mean nothing.
    fn cut(&mut self) {
        if self.length > self.end && self.file.truncate(self.end).is_ok() {
            self.length = self.end;
        }
    }

    /// Writes how far the log is synced. Does not wait for the mark to become durable, and ignores
    /// a failure: an older mark stays true.
    fn write_mark(&mut self) {
        let mark = Mark {
            segment: self.first,
            offset: self.end,
            next: self.next,
            trimmed: self.shelf.stock().trimmed,
        };
        let bytes = mark.encode(self.shelf.identity);
        if let Some(file) = &self.mark
            && write_all(&**file, &bytes, 0).is_err()
        {
            self.mark = None;
        }
    }

    /// Writes and syncs a last mark, after which no bytes at the end of the log can be mistaken for
    /// what a crash left.
    pub(crate) fn finish(mut self) {
        if self.shelf.common.poisoned().is_none() {
            self.cut();
            self.write_mark();
            if let Some(file) = &self.mark
                && let Err(error) = file.sync()
            {
                tracing::warn!(%error, "the mark of the spool could not be synced");
            }
        }
    }

    fn path(&self) -> PathBuf {
        segment::path_of(&self.shelf.directory, self.first)
    }
}

/// The reason why a file could not be begun.
pub(crate) enum Begun {
    /// The group is not in the file.
    Not(io::Error),
    /// The group was written, and the content of the disk is unknown.
    Unsynced(io::Error),
}

/// Creates a file that begins with the given bytes: either all of it is synced, or it does not
/// exist.
pub(crate) fn begin_file(
    files: &dyn Files,
    path: &std::path::Path,
    bytes: &[u8],
) -> Result<Box<dyn FileHandle>, Begun> {
    let unfinished = path.with_extension(UNFINISHED);
    let file = match files.create(&unfinished) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            // An attempt that failed has left it.
            files
                .remove(&unfinished)
                .and_then(|()| files.create(&unfinished))
        }
        other => other,
    };
    let file = file.map_err(Begun::Not)?;
    if let Err(e) = write_all(&*file, bytes, 0) {
        // If the file stays, the next attempt removes it, or the next opening of the spool.
        files.remove(&unfinished).ok();
        return Err(Begun::Not(e));
    }
    file.sync().map_err(Begun::Unsynced)?;
    // If this fails, the name may exist or not, unless the disk was full.
    files
        .rename(&unfinished, path)
        .map_err(|e| match is_full(&e) {
            true => Begun::Not(e),
            false => Begun::Unsynced(e),
        })?;
    let directory = path.parent().unwrap_or(path);
    files.sync_directory(directory).map_err(Begun::Unsynced)?;
    Ok(file)
}

fn refused(source: io::Error, path: PathBuf, bytes: u64) -> SpoolFault {
    if !is_full(&source) {
        return SpoolFault::system("write", &path, source);
    }
    SpoolFault::DiskFull {
        path,
        bytes,
        source: Arc::new(source),
    }
}

/// True if the disk is full, and nothing else is wrong.
fn is_full(e: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(e.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
