//! Entries as bytes: eight for a number, one for the kind of entry, and the rest depending on the
//! kind.
//!
//! | kind | the number | the rest |
//! | --- | --- | --- |
//! | keys, notes | their batch | the reads of the rows |
//! | a sign of life | the position before which the gateway has applied its entries | one byte |
//! | a takeover | the gateway that counts as lost | |

use windrow_core::Write;
use windrow_spool::Batch;
use windrow_spool::codec::{Decoder, Encoder};

/// The most keys in one entry.
const MOST_KEYS: usize = 10_000;

/// The flags in the byte of a sign of life.
const COPIED: u8 = 1;
const LEAVES: u8 = 2;

/// The purpose of an entry of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Rows that may have changed.
    Keys,
    /// Rows whose keys are not known yet: each read only names a table.
    Note,
    /// The keys that a note of the same batch has promised.
    Closing,
}

/// An entry of rows.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) ticket: u64,
    pub(crate) kind: Kind,
    pub(crate) keys: Vec<Write>,
}

/// The periodic message of a gateway to those that share its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sign {
    /// The position before which all of its entries, and all that it has taken over, are applied.
    pub(crate) applied: u64,
    /// True if the replica has got all rows that existed before it.
    pub(crate) copied: bool,
    /// True if this is the gateway's last message.
    pub(crate) leaves: bool,
}

/// A decoded entry.
#[derive(Debug)]
pub(crate) enum LogEntry {
    Rows(Read),
    Sign(Sign),
    /// A gateway counts as lost: the gateway that logs this applies its entries.
    Lost(u64),
}

impl Sign {
    pub(crate) fn batch(self) -> Batch {
        let mut bytes = Vec::from(self.applied.to_le_bytes());
        let flag = |is_so: bool, flag: u8| if is_so { flag } else { 0 };
        bytes.extend([3, flag(self.copied, COPIED) | flag(self.leaves, LEAVES)]);
        Batch::of(&bytes)
    }
}

/// Returns the entry that declares a gateway lost.
pub(crate) fn lost(gateway: u64) -> Batch {
    let mut bytes = Vec::from(gateway.to_le_bytes());
    bytes.push(4);
    Batch::of(&bytes)
}

/// Returns keys as batches of entries with about `most_bytes` of values each, to be appended one
/// after the other. At least one, because a closing entry may be empty.
pub(crate) fn batches(
    (ticket, kind): (u64, Kind),
    keys: &[Write],
    most_bytes: usize,
) -> Vec<Batch> {
    let mut encoder = Encoder::new();
    let mut all = Vec::new();
    let mut rest = keys;
    loop {
        let (mut count, mut bytes) = (0, 0);
        for key in rest.iter().take(MOST_KEYS) {
            bytes += key.bytes();
            if count > 0 && bytes > most_bytes {
                break;
            }
            count += 1;
        }
        let (part, behind) = rest.split_at(count);
        let mut batch = Batch::new();
        batch.push_with(|bytes| {
            bytes.extend(ticket.to_le_bytes());
            bytes.push(match kind {
                Kind::Keys => 0,
                Kind::Note => 1,
                Kind::Closing => 2,
            });
            encoder.unit(part, bytes);
        });
        all.push(batch);
        rest = behind;
        if rest.is_empty() {
            return all;
        }
    }
}

/// Decodes an entry.
///
/// # Errors
/// The reason why it is invalid.
pub(crate) fn read(decoder: &mut Decoder, bytes: &[u8]) -> Result<LogEntry, String> {
    let unreadable = || "the entry holds nothing of a replica's log".to_owned();
    let (number, rest) = bytes.split_first_chunk::<8>().ok_or_else(unreadable)?;
    let number = u64::from_le_bytes(*number);
    let (kind, rest) = rest.split_first().ok_or_else(unreadable)?;
    let kind = match kind {
        0 => Kind::Keys,
        1 => Kind::Note,
        2 => Kind::Closing,
        3 => {
            return rest
                .first()
                .map(|flags| sign(number, *flags))
                .ok_or_else(unreadable);
        }
        4 => return Ok(LogEntry::Lost(number)),
        _ => return Err(unreadable()),
    };
    let keys = decoder.unit(rest).map_err(|why| why.to_string())?;
    Ok(LogEntry::Rows(Read {
        ticket: number,
        kind,
        keys,
    }))
}

fn sign(applied: u64, flags: u8) -> LogEntry {
    LogEntry::Sign(Sign {
        applied,
        copied: flags & COPIED != 0,
        leaves: flags & LEAVES != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gateways_tell_each_other_comes_back_as_it_was() {
        let mut decoder = Decoder::new();
        let mut read = |batch: Batch| read(&mut decoder, batch.iter().next().unwrap()).unwrap();
        for (copied, leaves) in [(false, false), (true, false), (false, true), (true, true)] {
            let sign = Sign {
                applied: 77,
                copied,
                leaves,
            };
            assert!(matches!(read(sign.batch()), LogEntry::Sign(found) if found == sign));
        }
        assert!(matches!(read(lost(9)), LogEntry::Lost(9)));
    }
}
