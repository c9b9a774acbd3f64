//! A simulated disk: knows what is synced and what is not.

mod crash;
mod names;
mod node;
mod random;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windrow_spool::{FileHandle, Files};

use self::names::Names;
use self::node::Node;
pub(crate) use self::random::Random;

/// A simulated disk. Cheap to clone: all clones are one disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk(Arc<Mutex<State>>);

/// What the disk is and does.
#[derive(Debug, Default)]
pub(crate) struct State {
    names: Names,
    nodes: BTreeMap<u64, Node>,
    locks: BTreeSet<PathBuf>,
    /// Counts how often the machine was started: handles of an earlier time are dead.
    boot: u64,
    random: Random,
    /// Calls that change something, so far.
    calls: u64,
    pub(crate) faults: Faults,
    pub(crate) syncs: u64,
    pub(crate) directory_syncs: u64,
}

/// What goes wrong.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Writes take only a part of what they are given.
    pub(crate) short_writes: bool,
    /// Bytes by which files may still grow.
    pub(crate) room: Option<u64>,
    /// The sync that fails, counted from now: 0 is the next.
    pub(crate) fail_sync: Option<u64>,
    /// The sync of a directory that fails.
    pub(crate) fail_directory_sync: Option<u64>,
    /// The write that fails with an error of the device.
    pub(crate) fail_write: Option<u64>,
    /// Cutting a file fails.
    pub(crate) fail_truncate: bool,
    /// The machine goes off after so many calls more.
    pub(crate) off_after: Option<u64>,
}

fn error(what: &str) -> io::Error {
    io::Error::other(what.to_owned())
}

/// Counts down; true at 0, once.
fn due(counter: &mut Option<u64>) -> bool {
    match counter {
        Some(0) => {
            *counter = None;
            true
        }
        Some(left) => {
            *left -= 1;
            false
        }
        None => false,
    }
}

impl State {
    /// A call that changes something; `Err` once the machine is off.
    fn change(&mut self) -> io::Result<()> {
        self.running()?;
        self.calls += 1;
        if let Some(left) = &mut self.faults.off_after {
            *left = left.saturating_sub(1);
        }
        Ok(())
    }

    fn running(&self) -> io::Result<()> {
        if self.faults.off_after == Some(0) {
            return Err(error("the machine is off"));
        }
        Ok(())
    }
}

impl Disk {
    pub(crate) fn new(seed: u64) -> Self {
        let disk = Self::default();
        disk.state().random = Random(seed);
        disk
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls that changed something, so far.
    pub(crate) fn calls(&self) -> u64 {
        self.state().calls
    }

    /// The bytes of a file, without the room that was made behind them.
    pub(crate) fn written(&self, path: &str) -> Vec<u8> {
        let mut bytes = self.contents(path);
        let end = bytes.iter().rposition(|byte| *byte != 0);
        bytes.truncate(end.map_or(0, |last| last + 1));
        bytes
    }

    /// The contents of a file, as the running system sees them.
    pub(crate) fn contents(&self, path: &str) -> Vec<u8> {
        let state = self.state();
        let node = state.names.find(Path::new(path)).expect("no such file");
        state.nodes[&node].seen.clone()
    }

    /// Flips a bit, in memory and on the disk.
    pub(crate) fn flip(&self, path: &str, bit: usize) {
        let mut state = self.state();
        let node = state.names.find(Path::new(path)).expect("no such file");
        let node = state.nodes.get_mut(&node).unwrap();
        for bytes in [&mut node.seen, &mut node.durable] {
            if let Some(byte) = bytes.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
        }
    }

    /// Puts a file there, durably.
    pub(crate) fn put(&self, path: &str, bytes: &[u8]) {
        let mut state = self.state();
        let number = state.names.find(Path::new(path)).unwrap_or_else(|| {
            let number = state.nodes.len() as u64;
            state.names.put(Path::new(path), number);
            number
        });
        state.nodes.insert(number, Node::synced(bytes));
    }

    /// Removes a file, durably.
    pub(crate) fn erase(&self, path: &str) {
        self.state().names.erase(Path::new(path));
    }

    /// The paths of all files.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.state().names.paths()
    }

    fn handle(&self, number: u64) -> Box<dyn FileHandle> {
        let boot = self.state().boot;
        Box::new(Handle {
            disk: self.clone(),
            number,
            boot,
        })
    }
}

impl Files for Disk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn FileHandle>> {
        let number = {
            let mut state = self.state();
            state.change()?;
            if state.names.find(path).is_some() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            let number = state.nodes.len() as u64;
            state.nodes.insert(number, Node::default());
            state.names.add(path, number)?;
            number
        };
        Ok(self.handle(number))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn FileHandle>> {
        let number = {
            let state = self.state();
            state.running()?;
            state.names.find(path).ok_or(io::ErrorKind::NotFound)?
        };
        Ok(self.handle(number))
    }

    fn open_to_read(&self, path: &Path) -> io::Result<Box<dyn FileHandle>> {
        self.open(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        state.running()?;
        state.names.list(directory)
    }

    fn make_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        state.names.make_directory(directory)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        state.names.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        let gone = state
            .names
            .find(path)
            .map_or(0, |number| state.nodes[&number].seen.len());
        state.names.remove(path)?;
        if let Some(room) = &mut state.faults.room {
            *room += gone as u64;
        }
        Ok(())
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        state.directory_syncs += 1;
        if due(&mut state.faults.fail_directory_sync) {
            return Err(error("the device failed"));
        }
        state.names.sync(directory);
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Debug + Send + Sync>> {
        let mut state = self.state();
        state.change()?;
        if !state.locks.insert(path.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(Locked {
            disk: self.clone(),
            path: path.to_owned(),
            boot: state.boot,
        }))
    }
}

#[derive(Debug)]
struct Locked {
    disk: Disk,
    path: PathBuf,
    boot: u64,
}

impl Drop for Locked {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.boot == self.boot {
            state.locks.remove(&self.path);
        }
    }
}

#[derive(Debug)]
struct Handle {
    disk: Disk,
    number: u64,
    boot: u64,
}

impl Handle {
    /// The disk, unless the machine or the process has ended since this was opened.
    fn disk(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.state();
        state.running()?;
        if state.boot != self.boot {
            return Err(error("this handle is of another process"));
        }
        Ok(state)
    }
}

impl FileHandle for Handle {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk()?;
        let most = if state.faults.short_writes {
            state.random.below(buffer.len() as u64).max(1) as usize
        } else {
            buffer.len()
        };
        let seen = &state.nodes[&self.number].seen;
        let rest = seen.get(offset as usize..).unwrap_or_default();
        let length = rest.len().min(buffer.len()).min(most);
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk()?;
        state.change()?;
        let state = &mut *state;
        if due(&mut state.faults.fail_write) {
            return Err(error("the device failed"));
        }
        let mut taken = bytes.len();
        let is_last = state.faults.off_after == Some(0);
        if state.faults.short_writes || is_last {
            taken = 1 + state.random.below(bytes.len() as u64) as usize;
        }
        let node = state.nodes.get_mut(&self.number).unwrap();
        if let Some(room) = &mut state.faults.room {
            let free = (node.seen.len() as u64).saturating_sub(offset) + *room;
            taken = taken.min(free as usize);
            if taken == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            *room -= (offset + taken as u64).saturating_sub(node.seen.len() as u64);
        }
        node.write(&bytes[..taken], offset as usize);
        if is_last {
            return Err(error("the machine is off"));
        }
        Ok(taken)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.disk()?.nodes[&self.number].seen.len() as u64)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let mut state = self.disk()?;
        state.change()?;
        if state.faults.fail_truncate {
            return Err(error("the device failed"));
        }
        let node = state.nodes.get_mut(&self.number).unwrap();
        let before = node.seen.len() as u64;
        node.truncate(length as usize);
        if let Some(room) = &mut state.faults.room {
            *room += before.saturating_sub(length);
        }
        Ok(())
    }

    fn reserve(&self, length: u64) -> io::Result<()> {
        let mut state = self.disk()?;
        state.change()?;
        let state = &mut *state;
        let node = state.nodes.get_mut(&self.number).unwrap();
        let more = length.saturating_sub(node.seen.len() as u64);
        if let Some(room) = &mut state.faults.room {
            let free = room.checked_sub(more);
            *room = free.ok_or(io::ErrorKind::StorageFull)?;
        }
        node.truncate(node.seen.len() + more as usize);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk()?;
        state.change()?;
        state.syncs += 1;
        let state = &mut *state;
        let fails = due(&mut state.faults.fail_sync);
        let node = state.nodes.get_mut(&self.number).unwrap();
        if fails {
            // Some of it may have come through; the system takes all for written and tries no more.
            node.forget(&mut state.random);
            return Err(error("the device failed"));
        }
        // The machine may go off within it: then nobody knows what has come through.
        if state.faults.off_after == Some(0) {
            return Err(error("the machine is off"));
        }
        node.sync();
        Ok(())
    }
}
