//! Reads a partition in order, and follows its end.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use crate::entry::{Entry, Origin, Position};
use crate::fault::SpoolFault;
use crate::format::{GROUP_HEADER, GroupHeader, time};
use crate::port::Cursor;
use crate::segment::{self, Damage, Segment};
use crate::shelf::{End, Place, Shelf};
use crate::window::Window;

/// The most bytes that are read at once, except for a longer group.
const MOST: usize = 1 << 20;

/// A reader of a partition.
#[derive(Debug)]
pub(crate) struct FileCursor {
    shelf: Arc<Shelf>,
    end: watch::Receiver<End>,
    poison: watch::Receiver<Option<Arc<str>>>,
    /// Entries that were read and not returned yet.
    ready: VecDeque<Entry>,
    /// The position after the last ready entry.
    next: Position,
    /// The location of the group of `next`, once it is known.
    place: Option<Place>,
}

impl FileCursor {
    pub(crate) fn new(shelf: Arc<Shelf>, from: Position) -> Result<Self, SpoolFault> {
        if from > shelf.end().next {
            return Err(shelf.beyond(from));
        }
        if from < shelf.stock().first() {
            return Err(shelf.gone(from));
        }
        Ok(Self {
            end: shelf.watch_end(),
            poison: shelf.common.watch_poison(),
            shelf,
            ready: VecDeque::new(),
            next: from,
            place: None,
        })
    }

    /// Waits until an entry after the ready ones is durable.
    async fn wait(&mut self) -> Result<(), SpoolFault> {
        loop {
            let end = *self.end.borrow_and_update();
            if end.next > self.next {
                return Ok(());
            }
            if let Some(why) = self.poison.borrow_and_update().clone() {
                return Err(SpoolFault::Poisoned { why });
            }
            if end.closed {
                return Err(SpoolFault::Closed);
            }
            // The shelf holds both senders, so none can be dropped.
            tokio::select! {
                _ = self.end.changed() => {}
                _ = self.poison.changed() => {}
            }
        }
    }

    /// Returns as many ready entries as are wanted.
    fn take(&mut self, most: usize) -> Vec<Entry> {
        let (mut bytes, mut taken) = (0, Vec::new());
        while let Some(entry) = self.ready.front() {
            bytes += entry.payload.len();
            if bytes > most && !taken.is_empty() {
                break;
            }
            taken.extend(self.ready.pop_front());
        }
        taken
    }
}

#[async_trait]
impl Cursor for FileCursor {
    fn position(&self) -> Position {
        self.ready.front().map_or(self.next, |entry| entry.position)
    }

    async fn next(&mut self, most_bytes: usize) -> Result<Vec<Entry>, SpoolFault> {
        while self.ready.is_empty() {
            self.wait().await?;
            let shelf = Arc::clone(&self.shelf);
            let (place, next) = (self.place, self.next);
            let most = most_bytes.min(MOST);
            let loading = spawn_blocking(move || load(&shelf, place, next, most));
            // An error means that the runtime is shutting down.
            let loaded = loading.await.map_err(|_| SpoolFault::Closed)??;
            self.place = Some(loaded.behind);
            self.next = loaded.behind.first;
            self.ready = loaded.entries;
        }
        Ok(self.take(most_bytes))
    }
}

/// Entries that were read together.
struct LoadedEntries {
    entries: VecDeque<Entry>,
    /// The group after them.
    behind: Place,
}

/// Reads whole groups from a position on, which must be durable.
fn load(
    shelf: &Shelf,
    mut place: Option<Place>,
    from: Position,
    most: usize,
) -> Result<LoadedEntries, SpoolFault> {
    loop {
        match read(shelf, place, from, most) {
            // The segment that was read last is gone, and the reader is past its end.
            Err(SpoolFault::Trimmed { .. }) if from >= shelf.stock().first() => place = None,
            loaded => return loaded,
        }
    }
}

fn read(
    shelf: &Shelf,
    place: Option<Place>,
    from: Position,
    most: usize,
) -> Result<LoadedEntries, SpoolFault> {
    let near = || shelf.stock().near(from);
    let place = place.or_else(near).ok_or_else(|| shelf.gone(from))?;
    let durable = |place: Place| {
        let volume = shelf.volume(place.segment);
        volume.map_or(0, |(volume, _)| volume.bytes)
    };
    // A reader that follows the end is already at the beginning of a group.
    let mut place = match place.first == from && place.offset < durable(place) {
        true => place,
        false => shelf.seek(place, from)?.0,
    };
    let file = shelf.open(place.segment)?;
    let path = segment::path_of(&shelf.directory, place.segment);
    let segment = shelf.segment(&path, place.segment);
    let durable = durable(place);
    let mut window = Window::new(&*file, durable);
    let (mut entries, mut bytes) = (VecDeque::new(), 0);
    while place.offset < durable && (bytes == 0 || bytes < most) {
        let group = read_group(&segment, &mut window, place, durable, &mut entries)?;
        bytes += group.body as usize;
        place.offset += group.bytes();
        place.first = group.end();
    }
    while entries
        .front()
        .is_some_and(|entry: &Entry| entry.position < from)
    {
        entries.pop_front();
    }
    Ok(LoadedEntries {
        entries,
        behind: place,
    })
}

/// Reads the group at a location and adds its entries.
fn read_group(
    segment: &Segment<'_>,
    window: &mut Window<'_>,
    place: Place,
    durable: u64,
    entries: &mut VecDeque<Entry>,
) -> Result<GroupHeader, SpoolFault> {
    let mut found = Vec::new();
    let at = (place.offset, place.first);
    let group = segment.group(window, at, durable, |position, payload| {
        found.push((position, payload));
    })?;
    let header = group.map_err(
        |Damage {
             offset,
             position,
             what,
         }| { segment.damaged(offset, position, what) },
    )?;
    let body = segment.body_at(window, place.offset + GROUP_HEADER as u64, &header)?;
    let body = Bytes::copy_from_slice(body);
    entries.extend(found.into_iter().map(|found| entry(&header, &body, found)));
    Ok(header)
}

/// Returns an entry of a group.
pub(crate) fn entry(
    header: &GroupHeader,
    body: &Bytes,
    (position, payload): (Position, Range<usize>),
) -> Entry {
    let sequence = header
        .origin
        .sequence
        .wrapping_add(position.since(header.first));
    Entry {
        position,
        origin: Origin {
            sequence,
            ..header.origin
        },
        written: time(header.written),
        payload: body.slice(payload),
    }
}
