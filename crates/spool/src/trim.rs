//! Removes entries that have been applied.

use parking_lot::Mutex;

use crate::entry::Position;
use crate::fault::SpoolFault;
use crate::segment;
use crate::shelf::{Oldest, Shelf};

/// Trims one partition, one call at a time.
#[derive(Debug, Default)]
pub(crate) struct Trimmer {
    /// True if a file was removed and its directory is not synced yet.
    unsynced: Mutex<bool>,
}

impl Trimmer {
    /// Trims all entries before a position. Blocks.
    pub(crate) fn trim(&self, shelf: &Shelf, upto: Position) -> Result<(), SpoolFault> {
        let mut unsynced = self.unsynced.lock();
        if upto > shelf.end().next {
            return Err(shelf.beyond(upto));
        }
        advance(shelf, upto)?;
        while let Some(first) = free(shelf) {
            // Segments are removed one after the other, so that no crash leaves a gap between two.
            sync(shelf, &mut unsynced)?;
            let path = segment::path_of(&shelf.directory, first);
            let removed = shelf.common.files.remove(&path);
            removed.map_err(|e| SpoolFault::system("remove", &path, e))?;
            *unsynced = true;
            if let Some(volume) = shelf.stock().volumes.pop_front() {
                shelf.common.release(volume.counted);
            }
        }
        sync(shelf, &mut unsynced)
    }

    /// Waits until a trim under way has ended. Blocks.
    pub(crate) fn wait(&self) {
        drop(self.unsynced.lock());
    }
}

/// Returns the oldest segment if it is not the current one and all of its entries are trimmed.
fn free(shelf: &Shelf) -> Option<Position> {
    let stock = shelf.stock();
    let following = stock.volumes.get(1)?;
    (following.first <= stock.trimmed).then(|| stock.first())
}

fn sync(shelf: &Shelf, unsynced: &mut bool) -> Result<(), SpoolFault> {
    if !*unsynced {
        return Ok(());
    }
    let directory = &shelf.directory;
    let synced = shelf.common.files.sync_directory(directory);
    synced.map_err(|e| SpoolFault::system("sync", directory, e))?;
    *unsynced = false;
    Ok(())
}

/// Notes the trimmed position, and the oldest group after it.
fn advance(shelf: &Shelf, upto: Position) -> Result<(), SpoolFault> {
    let place = {
        let mut stock = shelf.stock();
        if upto <= stock.trimmed {
            return Ok(());
        }
        if upto == stock.next {
            stock.trimmed = upto;
            stock.oldest = None;
            // The current segment stays, but does not count against the limit: the next append
            // begins another one if this one is long.
            let counted: u64 = stock
                .volumes
                .iter_mut()
                .map(|v| std::mem::take(&mut v.counted))
                .sum();
            shelf.common.release(counted);
            return Ok(());
        }
        stock.near(upto)
    };
    let place = place.ok_or_else(|| shelf.gone(upto))?;
    let (place, header) = shelf.seek(place, upto)?;
    let mut stock = shelf.stock();
    stock.trimmed = upto;
    stock.oldest = Some(Oldest {
        place,
        written: header.written,
    });
    Ok(())
}
