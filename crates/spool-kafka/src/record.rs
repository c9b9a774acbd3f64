//! Encodes entries as records.
//!
//! A record's value is the entry's payload. Its key names the writer: a byte for the format, then
//! the gateway's number and the entry's sequence in eight bytes each, most significant byte first.
//! Its time is the entry's.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::records::{
    Compression, NO_PARTITION_LEADER_EPOCH, Record, RecordBatchDecoder, RecordBatchEncoder,
    RecordEncodeOptions, TimestampType,
};
use windrow_spool::{Batch, Entry, Origin, Position};

/// The most bytes of a record in addition to its entry's payload: its key, and the lengths.
pub(crate) const PER_RECORD: usize = 40;

/// The bytes of a batch in addition to its records.
pub(crate) const PER_BATCH: usize = 61;

/// The format of keys that is written and read.
const FORMAT: u8 = 1;

const KEY: usize = 17;

/// The identity by which a partition's leader recognizes a batch that is sent twice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Producer {
    pub(crate) id: i64,
    pub(crate) epoch: i16,
    /// The sequence number of the next record.
    pub(crate) sequence: i32,
}

/// Encodes one record batch of all entries.
pub(crate) fn encode<'a>(
    batches: impl Iterator<Item = &'a Batch>,
    producer: Producer,
    first: Origin,
    now: SystemTime,
) -> Result<Bytes, String> {
    let timestamp = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let timestamp = i64::try_from(timestamp.as_millis()).unwrap_or(i64::MAX);
    let mut records = Vec::new();
    for payload in batches.flat_map(Batch::iter) {
        let at = i32::try_from(records.len()).map_err(|_| "too many entries at once")?;
        let mut key = BytesMut::with_capacity(KEY);
        key.put_u8(FORMAT);
        key.put_u64(first.gateway);
        key.put_u64(first.sequence + records.len() as u64);
        records.push(Record {
            transactional: false,
            control: false,
            delete_horizon: false,
            partition_leader_epoch: NO_PARTITION_LEADER_EPOCH,
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            timestamp_type: TimestampType::Creation,
            offset: i64::from(at),
            sequence: producer.sequence + at,
            timestamp,
            key: Some(key.freeze()),
            value: Some(Bytes::copy_from_slice(payload)),
            headers: Default::default(),
        });
    }
    let options = RecordEncodeOptions {
        version: 2,
        compression: Compression::None,
    };
    let mut bytes = BytesMut::new();
    RecordBatchEncoder::encode(&mut bytes, &records, &options).map_err(|e| e.to_string())?;
    Ok(bytes.freeze())
}

/// The entries and errors that a reader finds.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) entries: Vec<Entry>,
    /// The offset after everything that was read.
    pub(crate) next: i64,
    /// The offset of a record that is not an entry, and the reason.
    pub(crate) strange: Option<(i64, String)>,
}

/// The first bytes of a batch.
struct Head {
    first: i64,
    /// The length of the whole batch in bytes.
    length: usize,
    attributes: i16,
    last: i64,
    records: usize,
}

impl Head {
    const BYTES: usize = 61;
    const BEFORE_LENGTH: usize = 12;

    /// Reads the head. `None` if the rest of the batch is missing.
    fn read(mut bytes: &[u8]) -> Result<Option<Self>, String> {
        let all = bytes.len();
        if all < Self::BYTES {
            return Ok(None);
        }
        let first = bytes.get_i64();
        let length = bytes.get_i32();
        bytes.advance(4);
        let magic = bytes.get_i8();
        bytes.advance(4);
        let attributes = bytes.get_i16();
        let last = bytes.get_i32();
        bytes.advance(8 + 8 + 8 + 2 + 4);
        let records = bytes.get_i32();
        if magic != 2 {
            return Err(format!("a batch of format {magic}"));
        }
        let length = usize::try_from(length).map_err(|_| "a batch of a negative length")?;
        let length = length + Self::BEFORE_LENGTH;
        // Each record takes at least 7 bytes, so no more memory is reserved than the bytes can
        // need.
        let records = usize::try_from(records).unwrap_or(usize::MAX);
        if length < Self::BYTES || records > (length - Self::BYTES) / 7 {
            return Err("a batch whose length and number of records do not fit".to_owned());
        }
        Ok((length <= all).then_some(Self {
            first,
            length,
            attributes,
            last: first.saturating_add(i64::from(last)),
            records,
        }))
    }

    fn is_control(&self) -> bool {
        self.attributes & (1 << 5) != 0
    }

    fn is_transactional(&self) -> bool {
        self.attributes & (1 << 4) != 0
    }
}

/// Decodes the entries from an offset on. Brokers return whole batches, the first of which may
/// begin before the offset, and a part of one at the end.
pub(crate) fn decode(mut bytes: Bytes, from: i64) -> Found {
    let mut found = Found {
        next: from,
        ..Found::default()
    };
    loop {
        let head = match Head::read(&bytes) {
            Ok(Some(head)) => head,
            Ok(None) => return found,
            Err(what) => {
                found.strange = Some((found.next, what));
                return found;
            }
        };
        let batch = bytes.split_to(head.length);
        if head.last < from {
            continue;
        }
        if let Err(what) = take(&mut found, batch, &head, from) {
            found.strange = Some((found.next, what));
            return found;
        }
        found.next = head.last.saturating_add(1);
    }
}

fn take(found: &mut Found, mut batch: Bytes, head: &Head, from: i64) -> Result<(), String> {
    if head.is_control() || head.records == 0 && head.first >= from {
        return Ok(());
    }
    if head.is_transactional() {
        // The transaction may have been rolled back.
        return Err("a record of a transaction, which Windrow does not write".to_owned());
    }
    let set = RecordBatchDecoder::decode(&mut batch).map_err(|error| error.to_string())?;
    for record in set.records {
        if record.offset < from {
            continue;
        }
        found.next = record.offset;
        found.entries.push(entry(record)?);
    }
    Ok(())
}

fn entry(record: Record) -> Result<Entry, String> {
    let key = record.key.filter(|key| key.len() == KEY);
    let mut key = key.ok_or("a record that Windrow has not written")?;
    let format = key.get_u8();
    if format != FORMAT {
        return Err(format!(
            "an entry of format {format}, and this program knows format {FORMAT}"
        ));
    }
    let written = u64::try_from(record.timestamp).unwrap_or_default();
    let position = u64::try_from(record.offset).map_err(|_| "a negative offset")?;
    Ok(Entry {
        position: Position(position),
        origin: Origin {
            gateway: key.get_u64(),
            sequence: key.get_u64(),
        },
        written: UNIX_EPOCH + Duration::from_millis(written),
        payload: record.value.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> Bytes {
        let mut batch = Batch::of(b"one");
        batch.push(b"");
        batch.push(&[7; 300]);
        let producer = Producer {
            id: 5,
            epoch: 0,
            sequence: 10,
        };
        let first = Origin {
            gateway: 9,
            sequence: 100,
        };
        let now = UNIX_EPOCH + Duration::from_millis(1234);
        let bytes = encode([&batch].into_iter(), producer, first, now).unwrap();
        assert!(bytes.len() <= PER_BATCH + batch.bytes() + batch.len() * PER_RECORD);
        bytes
    }

    #[test]
    fn entries_come_back_as_they_were() {
        let found = decode(batch(), 0);
        assert!(found.strange.is_none(), "{found:?}");
        assert_eq!((found.entries.len(), found.next), (3, 3));
        let last = &found.entries[2];
        assert_eq!(
            (last.position, &last.payload[..]),
            (Position(2), &[7; 300][..])
        );
        assert_eq!((last.origin.gateway, last.origin.sequence), (9, 102));
        assert_eq!(last.written, UNIX_EPOCH + Duration::from_millis(1234));
        let later = decode(batch(), 2);
        assert_eq!((later.entries.len(), later.next), (1, 3));
    }

    #[test]
    fn a_part_of_a_batch_is_left_for_the_next_read() {
        let whole = batch();
        for length in 0..whole.len() {
            let found = decode(whole.slice(..length), 0);
            assert!(
                found.strange.is_none() && found.entries.is_empty(),
                "{found:?}"
            );
            assert_eq!(found.next, 0);
        }
    }

    #[test]
    fn a_changed_byte_is_found() {
        let whole = batch();
        for at in 16..whole.len() {
            let mut changed = whole.to_vec();
            changed[at] ^= 1;
            let found = decode(changed.into(), 0);
            assert!(
                found.strange.is_some() && found.entries.is_empty(),
                "byte {at}"
            );
        }
    }
}
