//! Others on the same machine, who come and go.

use std::fs::File;
use std::io::{Seek, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Result, anyhow};

/// The kinds of neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    /// Threads that only count.
    burners: u32,
    /// Threads that write 8 KiB and wait until they are on the disk, over and over.
    syncers: u32,
}

const fn phase(name: &'static str, burners: u32, syncers: u32) -> Phase {
    Phase {
        name,
        burners,
        syncers,
    }
}

/// The schedule, in parts of the same length.
pub(super) const PHASES: [Phase; 6] = [
    phase("1: alone", 0, 0),
    phase("2: a CPU burner", 1, 0),
    phase("3: alone again", 0, 0),
    phase("4: one who syncs", 0, 1),
    phase("5: two CPU burners, one who syncs", 2, 1),
    phase("6: alone at last", 0, 0),
];

/// The bytes that a syncing neighbour writes each time, and the number of writes to one file.
const PIECE: [u8; 8 << 10] = [7; 8 << 10];
const PIECES: u32 = 1024;

/// The neighbours of a phase. They leave when this value is dropped.
pub(super) struct Neighbours {
    leave: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<()>>>,
}

impl Neighbours {
    pub(super) fn come(phase: Phase) -> Self {
        let leave = Arc::new(AtomicBool::new(false));
        let burners = (0..phase.burners).map(|_| {
            let leave = Arc::clone(&leave);
            thread::spawn(move || {
                burn(&leave);
                Ok(())
            })
        });
        let syncers = (0..phase.syncers).map(|_| {
            let leave = Arc::clone(&leave);
            thread::spawn(move || sync(&leave))
        });
        let threads = burners.chain(syncers).collect();
        Self { leave, threads }
    }

    /// Ends the neighbours.
    ///
    /// # Errors
    /// One could not do what it came for.
    pub(super) fn go(mut self) -> Result<()> {
        self.leave.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread
                .join()
                .map_err(|_| anyhow!("a neighbour panicked"))??;
        }
        Ok(())
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        self.leave.store(true, Ordering::Relaxed);
    }
}

fn burn(leave: &AtomicBool) {
    let mut count = 0_u64;
    while !leave.load(Ordering::Relaxed) {
        count = std::hint::black_box(count.wrapping_add(1));
    }
}

/// On the disk of temporary files, where the private server has its data too.
fn sync(leave: &AtomicBool) -> Result<()> {
    let mut file: File = tempfile::tempfile()?;
    while !leave.load(Ordering::Relaxed) {
        file.rewind()?;
        for _ in 0..PIECES {
            file.write_all(&PIECE)?;
            file.sync_data()?;
            if leave.load(Ordering::Relaxed) {
                break;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_every_phase_come_and_go() {
        for phase in PHASES {
            Neighbours::come(phase).go().unwrap();
        }
    }
}
