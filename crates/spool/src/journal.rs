//! Writing one partition: groups, segments, and what is done where the disk fails.
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

/// Room that is made behind what is written. A sync of a file that grows has to note its length as
/// well, which took another third to a half of the time on ext4.
const AHEAD: u64 = 1 << 20;

/// The writing end of a partition.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) shelf: Arc<Shelf>,
    /// The segment that is written to.
    pub(crate) file: Box<dyn FileHandle>,
    pub(crate) first: Position,
    /// Where the next group goes: all before it is synced.
    pub(crate) end: u64,
    /// The length of the file: behind `end` there are zeros.
    pub(crate) length: u64,
    pub(crate) next: Position,
    /// The next number in the origin of entries.
    pub(crate) sequence: u64,
    /// `None` where it could not be made: it only helps.
    pub(crate) mark: Option<Box<dyn FileHandle>>,
    pub(crate) writer: GroupWriter,
}

impl Journal {
    /// Appends all entries of the batches as one group; gives the position of the first once all
    /// are durable. There must be at least one entry.
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
        // Also where the attempt fails: no two attempts have the same checksums.
        self.sequence += count;
        let salt = self.shelf.identity.salt(self.first);
        let head = (self.next, written, origin);
        let bytes = self.writer.lay_out(salt, head, batches.iter());
        let header = GroupHeader::decode(bytes, salt);
        let behind = self.end + bytes.len() as u64;
        if behind > self.length {
            // Without space ahead, syncs take longer. The write itself reports a full disk.
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

    /// Where a group could be written but not synced, nobody knows what is on the disk, and nobody
    /// can find out: the system has given up what it could not write, and reads give what it has in
    /// memory.
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
        // Where another partition's sync has failed meanwhile, this disk's word is worth nothing.
        match self.shelf.common.poisoned() {
            Some(why) => Err(SpoolFault::Unknown { why }),
            None => Ok(()),
        }
    }

    /// A group could not be written whole. What there is of it goes, on the disk too, before
    /// another group takes its place.
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

    /// Begins another segment, unless nothing was written to the one there is. Not behind one whose
    /// end is not certain: a crash may leave anything there, but at the end of the last alone.
    pub(crate) fn begin_another(&mut self) -> Result<(), SpoolFault> {
        self.shelf.common.check()?;
        match self.end > HEADER as u64 {
            true => self.roll(),
            false => Ok(()),
        }
    }

    /// Begins another segment. It gets its name once its header is synced: a segment that is there
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

    /// Gives back the room behind the last group. What stays of it where that fails, or a crash
    /// comes first, does no harm: zeros at the end of a segment say nothing.
    fn cut(&mut self) {
        if self.length > self.end && self.file.truncate(self.end).is_ok() {
            self.length = self.end;
        }
    }

    /// Notes how far the log is synced. Not waited for, and no matter if it fails: what an older
    /// mark says stays true.
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

    /// Leaves a mark that is synced, after which nothing at the end of the log can be taken for
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

/// Why a file could not be begun.
pub(crate) enum Begun {
    /// The group is not in the file.
    Not(io::Error),
    /// The group was written, and the content of the disk is unknown.
    Unsynced(io::Error),
}

/// Makes a file that begins with the given bytes, all of it synced or none of it there.
pub(crate) fn begin_file(
    files: &dyn Files,
    path: &std::path::Path,
    bytes: &[u8],
) -> Result<Box<dyn FileHandle>, Begun> {
    let unfinished = path.with_extension(UNFINISHED);
    let file = match files.create(&unfinished) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            // Left by an attempt that failed.
            files
                .remove(&unfinished)
                .and_then(|()| files.create(&unfinished))
        }
        other => other,
    };
    let file = file.map_err(Begun::Not)?;
    if let Err(e) = write_all(&*file, bytes, 0) {
        // What stays is removed by the next attempt, or when the spool is opened.
        files.remove(&unfinished).ok();
        return Err(Begun::Not(e));
    }
    file.sync().map_err(Begun::Unsynced)?;
    // Where this fails, the name may be there or not, unless there was only no room for it.
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

/// True if the only failure is that the disk is full.
fn is_full(e: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(e.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
