//! Directories: what the system sees, and what would be there after a loss of power.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::random::Random;

/// A name's meaning: a file's number, or `None` for a directory.
type Table = BTreeMap<PathBuf, Option<u64>>;

#[derive(Clone, Debug)]
enum Change {
    Add(PathBuf, Option<u64>),
    Rename(PathBuf, PathBuf, u64),
    Remove(PathBuf),
}

/// All names of a disk. The root is there.
#[derive(Debug, Default)]
pub(crate) struct Names {
    seen: Table,
    durable: Table,
    pending: Vec<Change>,
}

impl Names {
    pub(crate) fn find(&self, path: &Path) -> Option<u64> {
        self.seen.get(path).copied().flatten()
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        let files = self.seen.iter().filter(|(_, file)| file.is_some());
        files.map(|(path, _)| path.display().to_string()).collect()
    }

    fn check_parent(&self, path: &Path) -> io::Result<()> {
        let parent = path.parent().unwrap();
        if parent == Path::new("/") || self.seen.get(parent) == Some(&None) {
            return Ok(());
        }
        Err(io::ErrorKind::NotFound.into())
    }

    pub(crate) fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.check_parent(&directory.join("x"))?;
        let inside = self
            .seen
            .keys()
            .filter(|path| path.parent() == Some(directory));
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        Ok(inside.map(name).collect())
    }

    pub(crate) fn add(&mut self, path: &Path, file: u64) -> io::Result<()> {
        self.check_parent(path)?;
        self.change(Change::Add(path.to_owned(), Some(file)));
        Ok(())
    }

    pub(crate) fn make_directory(&mut self, path: &Path) -> io::Result<()> {
        if self.seen.get(path) == Some(&None) {
            return Ok(());
        }
        self.check_parent(path)?;
        self.change(Change::Add(path.to_owned(), None));
        Ok(())
    }

    pub(crate) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        assert_eq!(from.parent(), to.parent());
        let file = self.find(from).ok_or(io::ErrorKind::NotFound)?;
        self.change(Change::Rename(from.to_owned(), to.to_owned(), file));
        Ok(())
    }

    pub(crate) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.find(path).ok_or(io::ErrorKind::NotFound)?;
        self.change(Change::Remove(path.to_owned()));
        Ok(())
    }

    /// Puts a file there durably.
    pub(crate) fn put(&mut self, path: &Path, file: u64) {
        for parent in path.ancestors().skip(1).filter(|p| *p != Path::new("/")) {
            self.seen.insert(parent.to_owned(), None);
            self.durable.insert(parent.to_owned(), None);
        }
        self.seen.insert(path.to_owned(), Some(file));
        self.durable.insert(path.to_owned(), Some(file));
    }

    /// Removes a file durably.
    pub(crate) fn erase(&mut self, path: &Path) {
        self.seen.remove(path);
        self.durable.remove(path);
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.seen, &change);
        self.pending.push(change);
    }

    pub(crate) fn sync(&mut self, directory: &Path) {
        let of_it = |change: &Change| path_of(change).parent() == Some(directory);
        let pending = std::mem::take(&mut self.pending);
        let (now, later) = pending.into_iter().partition(of_it);
        self.pending = later;
        let now: Vec<Change> = now;
        now.iter()
            .for_each(|change| apply(&mut self.durable, change));
    }

    /// Power is lost: any of what was not synced may be there, or the first so many changes.
    pub(crate) fn lose(&mut self, random: &mut Random) {
        let in_order = random.coin();
        let upto = random.below(self.pending.len() as u64 + 1) as usize;
        for (index, change) in std::mem::take(&mut self.pending).iter().enumerate() {
            if if in_order {
                index < upto
            } else {
                random.coin()
            } {
                apply(&mut self.durable, change);
            }
        }
        // What is in a directory that is not there is not there either.
        let directories = self.durable.clone();
        self.durable.retain(|path, _| {
            let mut above = path.ancestors().skip(1).filter(|p| *p != Path::new("/"));
            above.all(|directory| directories.contains_key(directory))
        });
        self.seen.clone_from(&self.durable);
    }
}

fn path_of(change: &Change) -> &Path {
    match change {
        Change::Add(path, _) | Change::Rename(_, path, _) | Change::Remove(path) => path,
    }
}

fn apply(table: &mut Table, change: &Change) {
    match change {
        Change::Add(path, file) => {
            table.insert(path.clone(), *file);
        }
        Change::Rename(from, to, file) => {
            table.remove(from);
            table.insert(to.clone(), Some(*file));
        }
        Change::Remove(path) => {
            table.remove(path);
        }
    }
}
