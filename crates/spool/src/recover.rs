//! Opens a partition: reads and checks everything in it, cuts off what a crash left behind, and
//! writes again what may only be in the system's memory.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{Common, Cut};
use crate::entry::Position;
use crate::fault::SpoolFault;
use crate::files::{FileHandle, read_full, write_all};
use crate::format::{HEADER, Identity, MARK, Mark, SegmentHeader, millis};
use crate::journal::{Begun, Journal, UNFINISHED, begin_file};
use crate::segment::{self, Scan, Segment};
use crate::shelf::{Oldest, Place, Shelf, Stock, Volume};

/// The file that records how far a partition is synced.
pub(crate) const MARK_FILE: &str = "mark";

/// Creates the first segment of a partition, whose directory exists.
pub(crate) fn make(
    common: &Common,
    directory: &Path,
    identity: Identity,
) -> Result<(), SpoolFault> {
    let header = SegmentHeader {
        identity,
        first: Position(0),
        made: millis(common.options.clock.now()),
    };
    let path = segment::path_of(directory, Position(0));
    let made = begin_file(&*common.files, &path, &header.encode());
    made.map(drop).map_err(|e| {
        let (Begun::Not(e) | Begun::Unsynced(e)) = e;
        SpoolFault::system("make", &path, e)
    })
}

/// Returns the segments of a partition, in order.
pub(crate) fn segments(common: &Common, directory: &Path) -> Result<Vec<Position>, SpoolFault> {
    let names = common.files.list(directory);
    let names = names.map_err(|e| SpoolFault::system("list", directory, e))?;
    let mut segments: Vec<_> = names
        .iter()
        .filter_map(|name| segment::first_of(name))
        .collect();
    segments.sort_unstable();
    Ok(segments)
}

/// A partition that is being opened.
struct Recovery<'a> {
    common: &'a Arc<Common>,
    directory: PathBuf,
    identity: Identity,
    mark: Option<Mark>,
    stock: Stock,
}

/// Opens a partition. Returns its journal, and what was cut off.
pub(crate) fn open(
    common: &Arc<Common>,
    directory: PathBuf,
    identity: Identity,
) -> Result<(Journal, Option<Cut>), SpoolFault> {
    clear(common, &directory)?;
    sync_names(common, &directory)?;
    let segments = segments(common, &directory)?;
    let Some((last, earlier)) = segments.split_last() else {
        return Err(no_segments(directory));
    };
    let mark = read_mark(common, &directory, identity);
    let first = *earlier.first().unwrap_or(last);
    let mut recovery = Recovery {
        common,
        directory,
        identity,
        mark,
        stock: Stock {
            volumes: VecDeque::new(),
            trimmed: mark.map_or(first, |mark| mark.trimmed).max(first),
            next: first,
            oldest: None,
        },
    };
    for first in earlier {
        recovery.earlier(*first)?;
    }
    let (file, cut) = recovery.last(*last)?;
    Ok((recovery.journal(*last, file), cut))
}

impl Recovery<'_> {
    /// Checks a segment that is not the last one: all of it was synced before the next one was
    /// begun.
    fn earlier(&mut self, first: Position) -> Result<(), SpoolFault> {
        let (_, scan) = self.read(first)?;
        if let Some(bad) = &scan.broken {
            return Err(self.damaged(first, bad.offset, bad.position, bad.what));
        }
        self.add(first, &scan);
        Ok(())
    }

    /// Checks the last segment, and prepares its end for further writes.
    fn last(&mut self, first: Position) -> Result<(Box<dyn FileHandle>, Option<Cut>), SpoolFault> {
        let (file, scan) = self.read(first)?;
        self.check_mark(first, &scan)?;
        let path = segment::path_of(&self.directory, first);
        let cannot = |doing, e| SpoolFault::system(doing, &path, e);
        let (mut end, mut cut) = (scan.length, None);
        if let Some(bad) = &scan.broken {
            if scan.followed_at.is_some() {
                return Err(self.damaged(first, bad.offset, bad.position, bad.what));
            }
            end = scan.end;
            file.truncate(end).map_err(|e| cannot("cut", e))?;
            cut = Some(Cut {
                path: path.clone(),
                offset: end,
                bytes: scan.length.saturating_sub(end),
                what: bad.what,
            });
        }
        let known = self.mark.filter(|mark| mark.segment == first);
        let from = known.map_or(HEADER as u64, |mark| mark.offset);
        // The space after the groups too: once another segment is begun, it must contain nothing
        // but zeros.
        if from < end || cut.is_some() {
            write_again(&*file, from, end).map_err(|e| cannot("write again", e))?;
            file.sync().map_err(|e| cannot("sync", e))?;
        }
        self.add(first, &scan);
        Ok((file, cut))
    }

    /// Reads a segment, which must begin where the one before it ended.
    fn read(&mut self, first: Position) -> Result<(Box<dyn FileHandle>, Scan), SpoolFault> {
        let path = segment::path_of(&self.directory, first);
        let opened = self.common.files.open(&path);
        let file = opened.map_err(|e| SpoolFault::system("open", &path, e))?;
        let segment = Segment {
            path: &path,
            identity: self.identity,
            first,
        };
        segment.check_header(&*file)?;
        if first != self.stock.next {
            let what = "entries before the first of this file are missing";
            return Err(segment.damaged(0, self.stock.next, what));
        }
        let trimmed = self.stock.trimmed;
        let oldest = &mut self.stock.oldest;
        let scan = segment.scan(&*file, |offset, header| {
            if oldest.is_none() && header.end() > trimmed {
                let place = Place {
                    segment: first,
                    offset,
                    first: header.first,
                };
                let written = header.written;
                *oldest = Some(Oldest { place, written });
            }
        })?;
        Ok((file, scan))
    }

    fn add(&mut self, first: Position, scan: &Scan) {
        let counted = if scan.next > self.stock.trimmed {
            scan.end
        } else {
            0
        };
        self.stock.volumes.push_back(Volume {
            first,
            bytes: scan.end,
            counted,
        });
        self.stock.next = scan.next;
    }

    /// Checks that everything is there that was synced according to the mark.
    fn check_mark(&self, last: Position, scan: &Scan) -> Result<(), SpoolFault> {
        let Some(mark) = self.mark else {
            return Ok(());
        };
        if mark.segment < last || (mark.segment == last && mark.offset <= scan.end) {
            return Ok(());
        }
        let (offset, position, what) = match &scan.broken {
            Some(bad) if mark.segment == last => (bad.offset, bad.position, bad.what),
            _ => (scan.end, scan.next, "what was synced behind it is missing"),
        };
        Err(self.damaged(last, offset, position, what))
    }

    fn damaged(&self, first: Position, offset: u64, position: Position, what: &str) -> SpoolFault {
        SpoolFault::Damaged {
            path: segment::path_of(&self.directory, first),
            offset,
            position,
            what: what.into(),
        }
    }

    fn journal(mut self, first: Position, file: Box<dyn FileHandle>) -> Journal {
        let stock = &mut self.stock;
        stock.trimmed = stock.trimmed.min(stock.next);
        let next = stock.next;
        let end = stock
            .volumes
            .back()
            .map_or(HEADER as u64, |volume| volume.bytes);
        let mark = open_mark(self.common, &self.directory);
        let common = Arc::clone(self.common);
        let shelf = Shelf::new(common, self.directory, self.identity, self.stock);
        Journal {
            shelf: Arc::new(shelf),
            // Space that an earlier process has allocated is used.
            length: file.length().map_or(end, |length| length.max(end)),
            file,
            first,
            end,
            next,
            sequence: 0,
            mark,
            writer: crate::format::GroupWriter::default(),
        }
    }
}

/// Makes the names of a directory durable. A process that was killed between naming a file and
/// syncing the name leaves a visible file, which a loss of power would remove with everything
/// written to it since.
pub(crate) fn sync_names(common: &Common, directory: &Path) -> Result<(), SpoolFault> {
    let synced = common.files.sync_directory(directory);
    synced.map_err(|e| SpoolFault::system("sync", directory, e))
}

/// Removes incomplete files.
fn clear(common: &Common, directory: &Path) -> Result<(), SpoolFault> {
    let names = common.files.list(directory);
    let names = names.map_err(|e| SpoolFault::system("list", directory, e))?;
    for path in names.iter().map(|name| directory.join(name)) {
        if path
            .extension()
            .is_none_or(|extension| extension != UNFINISHED)
        {
            continue;
        }
        let removed = common.files.remove(&path);
        removed.map_err(|e| SpoolFault::system("remove", &path, e))?;
    }
    Ok(())
}

/// Reads the mark, if there is a whole one. It is not essential.
pub(crate) fn read_mark(common: &Common, directory: &Path, identity: Identity) -> Option<Mark> {
    let path = directory.join(MARK_FILE);
    let file = common.files.open_to_read(&path).ok()?;
    let mut bytes = [0; MARK];
    let read = read_full(&*file, &mut bytes, 0).ok()?;
    Mark::decode(bytes.get(..read)?, identity)
}

/// Opens the mark's file, and creates it if needed. A full disk must not prevent the spool from
/// being opened, because opening is the way to empty it.
fn open_mark(common: &Common, directory: &Path) -> Option<Box<dyn FileHandle>> {
    let path = directory.join(MARK_FILE);
    let file = common.files.open(&path);
    file.or_else(|_| common.files.create(&path)).ok()
}

/// Writes existing bytes again. If an earlier process could not sync them, the system has them in
/// memory and believes that they need not be written: a sync alone would do nothing, and succeed.
fn write_again(file: &dyn FileHandle, from: u64, end: u64) -> io::Result<()> {
    let mut bytes = vec![0; 1 << 20];
    let mut at = from;
    while at < end {
        let left = usize::try_from(end - at).unwrap_or(usize::MAX);
        let most = left.min(bytes.len());
        let part = bytes.get_mut(..most).unwrap_or_default();
        let read = read_full(file, part, at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        write_all(file, part.get(..read).unwrap_or_default(), at)?;
        at += read as u64;
    }
    Ok(())
}

/// Returns the fault of a partition without segments, of which there is always one.
pub(crate) fn no_segments(directory: PathBuf) -> SpoolFault {
    SpoolFault::Damaged {
        path: directory,
        offset: 0,
        position: Position(0),
        what: "all segments of the partition are missing".into(),
    }
}
