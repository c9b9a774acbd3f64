//! Packets in which a server reports success: of a write, and after rows.

use bytes::{BufMut, Bytes};
use mysql_common::constants::StatusFlags;
use mysql_common::io::{BufMutExt, ParseBuf};

use crate::answer::Forms;
use crate::packet::Wire;
use crate::write_answer::ResultPackets;

/// The first byte of the packet after columns and rows.
const END: u8 = 0xfe;

/// The report of a write's success.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Success {
    /// The rows that were affected.
    pub affected: u64,
    /// The number that was generated; 0 if there is none.
    pub insert_id: u64,
    /// The session's status.
    pub status: StatusFlags,
    /// The number of warnings.
    pub warning_count: u16,
    /// A text for people.
    pub info: Bytes,
}

impl Success {
    /// Reads a packet's content: the report of success, or the packet after rows. `None` if it is
    /// neither.
    pub fn parse(content: &[u8], forms: Forms) -> Option<Self> {
        let mut from = ParseBuf(content);
        let is_end = from.checked_eat_u8()? == END;
        if is_end && !forms.has_no_eof {
            return Some(Self {
                warning_count: from.checked_eat_u16_le()?,
                status: StatusFlags::from_bits_truncate(from.checked_eat_u16_le()?),
                ..Self::default()
            });
        }
        Some(Self {
            affected: from.checked_eat_lenenc_int()?,
            insert_id: from.checked_eat_lenenc_int()?,
            status: StatusFlags::from_bits_truncate(from.checked_eat_u16_le()?),
            warning_count: from.checked_eat_u16_le()?,
            info: Bytes::copy_from_slice(from.checked_eat_lenenc_str().unwrap_or_default()),
        })
    }

    /// Returns the packet's content.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_as(0)
    }

    fn encode_as(&self, first: u8) -> Vec<u8> {
        let mut to = vec![first];
        to.put_lenenc_int(self.affected);
        to.put_lenenc_int(self.insert_id);
        to.put_u16_le(self.status.bits());
        to.put_u16_le(self.warning_count);
        if !self.info.is_empty() {
            to.put_lenenc_int(self.info.len() as u64);
            to.put_slice(&self.info);
        }
        to
    }

    /// Returns the content of the packet after columns (if there is one) or rows.
    pub fn encode_end(&self, forms: Forms) -> Vec<u8> {
        if forms.has_no_eof {
            return self.encode_as(END);
        }
        let mut to = vec![END];
        to.put_u16_le(self.warning_count);
        to.put_u16_le(self.status.bits());
        to
    }
}

/// Writes the packets of a result into the outbox of a client's wire.
pub fn put_result(wire: &mut Wire, forms: Forms, result: &ResultPackets, end: &Success) {
    put_columns(wire, forms, &result.columns, end.status);
    result.rows.iter().for_each(|row| wire.put(row));
    wire.put(&end.encode_end(forms));
}

/// Writes the packets of a result up to its rows into the outbox of a client's wire.
pub fn put_columns(wire: &mut Wire, forms: Forms, columns: &[Bytes], status: StatusFlags) {
    let mut count = Vec::new();
    count.put_lenenc_int(columns.len() as u64);
    if forms.may_leave_out_columns {
        // The columns follow.
        count.push(1);
    }
    wire.put(&count);
    columns.iter().for_each(|column| wire.put(column));
    if !forms.has_no_eof {
        let between = Success {
            status,
            ..Success::default()
        };
        wire.put(&between.encode_end(forms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_is_encoded_as_servers_do() {
        let success = Success {
            affected: 1,
            insert_id: 300,
            status: StatusFlags::SERVER_STATUS_AUTOCOMMIT,
            warning_count: 2,
            info: Bytes::from_static(b"ok"),
        };
        assert_eq!(success.encode(), b"\0\x01\xfc\x2c\x01\x02\0\x02\0\x02ok");
        let old = Forms::default();
        assert_eq!(success.encode_end(old), b"\xfe\x02\0\x02\0");
        let new = Forms {
            has_no_eof: true,
            ..old
        };
        assert_eq!(success.encode_end(new)[0], 0xfe);
        let read = Success::parse(&success.encode_end(new), new);
        assert_eq!(
            (read, Success::parse(&[0xfe, 1], old)),
            (Some(success.clone()), None)
        );
        assert_eq!(
            Success::parse(&success.encode(), old),
            Some(success.clone())
        );
        let end = Success::parse(&success.encode_end(old), old).unwrap();
        assert_eq!((end.warning_count, end.status), (2, success.status));
    }
}
