//! The state that the writer, the readers and the trimmer of a partition share: its segments, its
//! durable end, and the trimmed position.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::common::Common;
use crate::entry::Position;
use crate::fault::SpoolFault;
use crate::files::FileHandle;
use crate::format::{GroupHeader, HEADER, Identity};
use crate::segment::{self, Segment};
use crate::window::Window;

/// A partition's shared state.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) common: Arc<Common>,
    pub(crate) directory: PathBuf,
    pub(crate) identity: Identity,
    stock: Mutex<Stock>,
    end: watch::Sender<End>,
}

/// The durable end of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) next: Position,
    /// True once nothing more will be appended.
    pub(crate) closed: bool,
}

/// The segments of a partition.
#[derive(Clone, Debug)]
pub(crate) struct Stock {
    /// The segments, never empty. The last one is the current one.
    pub(crate) volumes: VecDeque<Volume>,
    /// The position before which entries may be removed.
    pub(crate) trimmed: Position,
    /// The position after the last durable entry.
    pub(crate) next: Position,
    /// The group that contains the position `trimmed`; `None` if that is `next`.
    pub(crate) oldest: Option<Oldest>,
}

/// A segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Volume {
    pub(crate) first: Position,
    /// The durable bytes of the segment.
    pub(crate) bytes: u64,
    /// The bytes of the segment that count against the limit.
    pub(crate) counted: u64,
}

/// The location of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The first position of the segment.
    pub(crate) segment: Position,
    /// The offset of the group.
    pub(crate) offset: u64,
    /// The group's first position.
    pub(crate) first: Position,
}

/// The oldest group that is not trimmed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Oldest {
    pub(crate) place: Place,
    /// The time of writing.
    pub(crate) written: u64,
}

impl Shelf {
    pub(crate) fn new(
        common: Arc<Common>,
        directory: PathBuf,
        identity: Identity,
        stock: Stock,
    ) -> Self {
        common.hold(stock.volumes.iter().map(|volume| volume.counted).sum());
        let end = End {
            next: stock.next,
            closed: false,
        };
        Self {
            common,
            directory,
            identity,
            stock: Mutex::new(stock),
            end: watch::Sender::new(end),
        }
    }

    /// Locks the segments. No file is accessed while the lock is held.
    pub(crate) fn stock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock()
    }

    /// Returns the durable end of the log.
    pub(crate) fn end(&self) -> End {
        *self.end.borrow()
    }

    /// Returns a receiver for the durable end of the log.
    pub(crate) fn watch_end(&self) -> watch::Receiver<End> {
        self.end.subscribe()
    }

    /// Adds a durable group: from now on it counts, and readers see it.
    pub(crate) fn publish(&self, header: &GroupHeader) {
        let mut stock = self.stock();
        let Some(volume) = stock.volumes.back_mut() else {
            return;
        };
        let place = Place {
            segment: volume.first,
            offset: volume.bytes,
            first: header.first,
        };
        volume.bytes += header.bytes();
        volume.counted += header.bytes();
        self.common.hold(header.bytes());
        stock.next = header.end();
        let written = header.written;
        stock.oldest.get_or_insert(Oldest { place, written });
        let next = stock.next;
        drop(stock);
        self.end.send_modify(|end| end.next = next);
    }

    /// Adds a segment after the others.
    pub(crate) fn add(&self, first: Position) {
        self.stock().volumes.push_back(Volume {
            first,
            bytes: HEADER as u64,
            counted: 0,
        });
    }

    /// Notes that nothing more will be appended.
    pub(crate) fn close(&self) {
        self.end.send_modify(|end| end.closed = true);
    }

    /// Finds the group that contains a position, starting at a location that is not after it.
    /// Blocks.
    pub(crate) fn seek(
        &self,
        mut place: Place,
        position: Position,
    ) -> Result<(Place, GroupHeader), SpoolFault> {
        loop {
            let file = self.open(place.segment)?;
            let path = segment::path_of(&self.directory, place.segment);
            let segment = self.segment(&path, place.segment);
            let volume = self.volume(place.segment);
            let durable = volume.map_or(0, |(volume, _)| volume.bytes);
            let mut window = Window::new(&*file, durable);
            while volume.is_some_and(|(volume, _)| place.offset < volume.bytes) {
                let header = segment.header_at(&mut window, place.offset)?;
                let Some(header) = header.filter(|header| header.first == place.first) else {
                    let what = "the header of the group there is not what was written";
                    return Err(segment.damaged(place.offset, place.first, what));
                };
                if header.end() > position {
                    return Ok((place, header));
                }
                place.offset += header.bytes();
                place.first = header.end();
            }
            match volume {
                Some((_, Some(following))) => place = Place::start(following),
                _ => return Err(self.gone(position)),
            }
        }
    }

    /// Returns a segment of this log.
    pub(crate) fn segment<'p>(&self, path: &'p std::path::Path, first: Position) -> Segment<'p> {
        Segment {
            path,
            identity: self.identity,
            first,
        }
    }

    /// Opens a segment for reading. Blocks.
    pub(crate) fn open(&self, first: Position) -> Result<Box<dyn FileHandle>, SpoolFault> {
        let path = segment::path_of(&self.directory, first);
        match self.common.files.open_to_read(&path) {
            Ok(file) => Ok(file),
            // It may have been trimmed just now.
            Err(_) if self.volume(first).is_none() => Err(self.gone(first)),
            Err(e) => Err(SpoolFault::system("open", &path, e)),
        }
    }

    /// Returns a segment, and the first position of the next one.
    pub(crate) fn volume(&self, first: Position) -> Option<(Volume, Option<Position>)> {
        let stock = self.stock();
        let at = stock
            .volumes
            .binary_search_by_key(&first, |v| v.first)
            .ok()?;
        let following = stock.volumes.get(at + 1).map(|volume| volume.first);
        Some((*stock.volumes.get(at)?, following))
    }

    /// Returns the fault for a position that was trimmed.
    pub(crate) fn gone(&self, asked: Position) -> SpoolFault {
        let first = self.stock().first();
        SpoolFault::Trimmed {
            partition: self.identity.partition,
            asked,
            first,
        }
    }

    /// Returns the fault for a position beyond the end.
    pub(crate) fn beyond(&self, asked: Position) -> SpoolFault {
        SpoolFault::Beyond {
            partition: self.identity.partition,
            asked,
            end: self.end().next,
        }
    }
}

impl Stock {
    /// Returns the first position that can be read.
    pub(crate) fn first(&self) -> Position {
        self.volumes
            .front()
            .map_or(self.next, |volume| volume.first)
    }

    /// Returns the nearest known location that is not after a position.
    pub(crate) fn near(&self, position: Position) -> Option<Place> {
        let oldest = self.oldest.map(|oldest| oldest.place);
        let mut before = self.volumes.iter().rev();
        let volume = before.find(|volume| volume.first <= position)?;
        let start = Place::start(volume.first);
        Some(match oldest {
            Some(oldest) if start.first <= oldest.first && oldest.first <= position => oldest,
            _ => start,
        })
    }
}

impl Place {
    /// Returns the location of the first group of a segment.
    pub(crate) fn start(segment: Position) -> Self {
        Self {
            segment,
            offset: HEADER as u64,
            first: segment,
        }
    }
}
