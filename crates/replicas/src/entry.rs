//! Keys as the bytes of an entry: the number of its batch, what it is, and the reads of the rows.

use windrow_core::RowWrite;
use windrow_spool::Batch;
use windrow_spool::codec::{Decoder, Encoder};

/// Keys in one entry at most.
const MOST_KEYS: usize = 10_000;

/// Bytes of values in one entry, about.
const MOST_BYTES: usize = 1 << 20;

/// What an entry is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Rows that may have changed.
    Keys,
    /// Rows whose keys are not known yet: each read names a table alone.
    Note,
    /// The keys that a note of the same batch has promised.
    Closing,
}

/// An entry as it is read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) ticket: u64,
    pub(crate) kind: Kind,
    pub(crate) keys: Vec<RowWrite>,
}

/// Keys as batches to be appended one after the other. At least one: a closing entry may be empty.
pub(crate) fn batches(ticket: u64, kind: Kind, keys: &[RowWrite]) -> Vec<Batch> {
    let mut encoder = Encoder::new();
    let mut all = Vec::new();
    let mut rest = keys;
    loop {
        let (mut count, mut bytes) = (0, 0);
        for key in rest.iter().take(MOST_KEYS) {
            bytes += windrow_core::Work::bytes(key);
            if count > 0 && bytes > MOST_BYTES {
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

/// Reads an entry.
///
/// # Errors
/// Why it is none.
pub(crate) fn read(decoder: &mut Decoder, bytes: &[u8]) -> Result<Read, String> {
    let unreadable = || "the entry holds no keys of rows".to_owned();
    let (ticket, rest) = bytes.split_first_chunk::<8>().ok_or_else(unreadable)?;
    let (kind, rest) = rest.split_first().ok_or_else(unreadable)?;
    let kind = match kind {
        0 => Kind::Keys,
        1 => Kind::Note,
        2 => Kind::Closing,
        _ => return Err(unreadable()),
    };
    let keys = decoder.unit(rest).map_err(|why| why.to_string())?;
    Ok(Read {
        ticket: u64::from_le_bytes(*ticket),
        kind,
        keys,
    })
}
