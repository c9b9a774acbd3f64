//! A file's contents: what the system sees, and what would be there after a loss of power.

use super::random::Random;

/// Bytes that the device writes at once, if it is kind.
pub(crate) const SECTOR: usize = 512;

/// A file's contents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) seen: Vec<u8>,
    pub(crate) durable: Vec<u8>,
    /// What was done since the last sync.
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

impl Node {
    pub(crate) fn synced(bytes: &[u8]) -> Self {
        Self {
            seen: bytes.to_vec(),
            durable: bytes.to_vec(),
            pending: Vec::new(),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8], at: usize) {
        put(&mut self.seen, bytes, at);
        self.pending.push(Change::Write(at, bytes.to_vec()));
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.seen.resize(length, 0);
        self.pending.push(Change::Length(length));
    }

    /// Writes are on the disk after it. Only what was written is: what a failed sync has lost
    /// before stays lost.
    pub(crate) fn sync(&mut self) {
        for change in self.pending.drain(..) {
            match change {
                Change::Write(at, bytes) => put(&mut self.durable, &bytes, at),
                Change::Length(length) => self.durable.resize(length, 0),
            }
        }
    }

    /// The sync has failed: a part has come through, the rest is forgotten.
    pub(crate) fn forget(&mut self, random: &mut Random) {
        let seen = self.seen.clone();
        self.lose(random);
        self.seen = seen;
    }

    /// Power is lost: any part of what was not synced may be there, sector by sector, in any order,
    /// sectors torn; where nothing was synced before, there may be anything.
    pub(crate) fn lose(&mut self, random: &mut Random) {
        let synced = self.durable.len();
        // Now and then all or nothing has come through.
        let mood = random.below(8);
        for change in std::mem::take(&mut self.pending) {
            match change {
                Change::Length(length) if kept(random, mood) => self.durable.resize(length, 0),
                Change::Length(_) => {}
                Change::Write(at, bytes) => self.sectors(random, mood, at, &bytes),
            }
        }
        if mood > 1 && self.durable.len() > synced && random.below(4) == 0 {
            self.rubbish(random, synced);
        }
        self.seen.clone_from(&self.durable);
    }

    fn sectors(&mut self, random: &mut Random, mood: u64, mut at: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let length = bytes.len().min(SECTOR - at % SECTOR);
            let (sector, rest) = bytes.split_at(length);
            if kept(random, mood) {
                let torn = mood > 1 && random.below(8) == 0;
                let cut = random.below(length as u64) as usize;
                match (torn, random.coin()) {
                    (false, _) => put(&mut self.durable, sector, at),
                    (true, false) => put(&mut self.durable, &sector[..cut], at),
                    (true, true) => put(&mut self.durable, &sector[cut..], at + cut),
                }
            }
            (at, bytes) = (at + length, rest);
        }
    }

    /// Bytes that nobody wrote there, or that belong elsewhere.
    fn rubbish(&mut self, random: &mut Random, synced: usize) {
        let start = synced + random.below((self.durable.len() - synced) as u64) as usize;
        let end = (start + SECTOR).min(self.durable.len());
        let from = random.below(start as u64 + 1) as usize;
        let copied = random.coin();
        for at in start..end {
            let old = self.durable[from + (at - start) % (start - from).max(1)];
            self.durable[at] = if copied { old } else { random.next() as u8 };
        }
    }
}

fn kept(random: &mut Random, mood: u64) -> bool {
    match mood {
        0 => false,
        1 => true,
        _ => random.coin(),
    }
}

fn put(contents: &mut Vec<u8>, bytes: &[u8], at: usize) {
    if bytes.is_empty() {
        return;
    }
    let end = at + bytes.len();
    if contents.len() < end {
        contents.resize(end, 0);
    }
    contents[at..end].copy_from_slice(bytes);
}
