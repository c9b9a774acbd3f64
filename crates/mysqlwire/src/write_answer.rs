//! The server's answer to a write that was joined with others, as the lane hands it to a frontend.

use bytes::{BufMut, Bytes, BytesMut};
use mysql_common::io::ParseBuf;

use crate::error_packet::ERROR;

/// A warning, as `SHOW WARNINGS` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// `Note`, `Warning` or `Error`.
    pub level: Box<[u8]>,
    /// The server's number.
    pub number: u16,
    /// The message.
    pub message: Box<[u8]>,
}

/// The server's answer to a write, besides the number of rows that it affected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteAnswer {
    /// The number in the success packet: usually the first number that AUTO_INCREMENT generated; 0
    /// if there is none.
    pub insert_id: u64,
    /// The value that the write gave `LAST_INSERT_ID()`; `None` if it left it as it was. A number
    /// that the client gave is an `insert_id`, and no `last_insert_id`.
    pub last_insert_id: Option<u64>,
    /// The number of warnings.
    pub warning_count: u16,
    /// The text of the success packet, such as `Rows matched: 1  Changed: 1  Warnings: 0`.
    pub info: Bytes,
    /// The rows of `SHOW WARNINGS` behind the write.
    pub warnings: Vec<Warning>,
    /// RETURNING: the contents of the packets of columns and of rows.
    pub result: Option<ResultPackets>,
}

/// The rows that a write returns. The packets have the form of the client's own protocol: text for
/// `COM_QUERY`, binary for `COM_STMT_EXECUTE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultPackets {
    /// The content of each column's packet.
    pub columns: Vec<Bytes>,
    /// The content of each row's packet.
    pub rows: Vec<Bytes>,
}

impl WriteAnswer {
    /// Returns true if there is nothing but the number of affected rows.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the answer as bytes, for [`WriteAnswer::decode`] in the same process.
    pub fn encode(&self) -> Bytes {
        let mut to = BytesMut::with_capacity(32 + self.info.len());
        to.put_u64_le(self.insert_id);
        to.put_u8(self.last_insert_id.is_some().into());
        to.put_u64_le(self.last_insert_id.unwrap_or_default());
        to.put_u16_le(self.warning_count);
        put(&mut to, &self.info);
        put_warnings(&mut to, &self.warnings);
        if let Some(result) = &self.result {
            for packets in [&result.columns, &result.rows] {
                put_len(&mut to, packets.len());
                packets.iter().for_each(|packet| put(&mut to, packet));
            }
        }
        to.freeze()
    }

    /// Reads what [`WriteAnswer::encode`] wrote. `None` for other bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = ParseBuf(bytes);
        let insert_id = from.checked_eat_u64_le()?;
        let is_set = from.checked_eat_u8()? != 0;
        let last_insert_id = from.checked_eat_u64_le()?;
        let mut answer = Self {
            insert_id,
            last_insert_id: is_set.then_some(last_insert_id),
            warning_count: from.checked_eat_u16_le()?,
            info: take(&mut from)?,
            ..Self::default()
        };
        answer.warnings = take_warnings(&mut from)?;
        if !from.is_empty() {
            answer.result = Some(ResultPackets {
                columns: packets(&mut from)?,
                rows: packets(&mut from)?,
            });
        }
        from.is_empty().then_some(answer)
    }
}

/// The server's answer to a write that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteFailure {
    /// RETURNING: the contents of the packets of columns, if the server sent them before the error.
    pub columns: Vec<Bytes>,
    /// The rows of `SHOW WARNINGS` behind the write; empty if they show nothing but the error.
    pub warnings: Vec<Warning>,
    /// The content of the error's packet.
    pub error: Bytes,
}

impl WriteFailure {
    /// Returns the answer as bytes, for [`WriteFailure::decode`] in the same process. Without
    /// columns and warnings, these are the error's packet.
    pub fn encode(&self) -> Bytes {
        if self.columns.is_empty() && self.warnings.is_empty() {
            return self.error.clone();
        }
        let mut to = BytesMut::new();
        to.put_u8(0);
        put_len(&mut to, self.columns.len());
        self.columns.iter().for_each(|column| put(&mut to, column));
        put_warnings(&mut to, &self.warnings);
        to.put_slice(&self.error);
        to.freeze()
    }

    /// Reads what [`WriteFailure::encode`] wrote. `None` for other bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = ParseBuf(bytes);
        let mut failure = Self::default();
        if bytes.first() == Some(&0) {
            from.checked_eat_u8()?;
            failure.columns = packets(&mut from)?;
            failure.warnings = take_warnings(&mut from)?;
        }
        failure.error = Bytes::copy_from_slice(from.0);
        (failure.error.first() == Some(&ERROR)).then_some(failure)
    }
}

fn put_warnings(to: &mut BytesMut, warnings: &[Warning]) {
    put_len(to, warnings.len());
    for warning in warnings {
        put(to, &warning.level);
        to.put_u16_le(warning.number);
        put(to, &warning.message);
    }
}

fn take_warnings(from: &mut ParseBuf<'_>) -> Option<Vec<Warning>> {
    let count = from.checked_eat_u32_le()?;
    let warning = |_| {
        Some(Warning {
            level: take(from)?.as_ref().into(),
            number: from.checked_eat_u16_le()?,
            message: take(from)?.as_ref().into(),
        })
    };
    (0..count).map(warning).collect()
}

fn put_len(to: &mut BytesMut, len: usize) {
    to.put_u32_le(u32::try_from(len).unwrap_or(u32::MAX));
}

fn put(to: &mut BytesMut, bytes: &[u8]) {
    put_len(to, bytes.len());
    to.put_slice(bytes);
}

fn take(from: &mut ParseBuf<'_>) -> Option<Bytes> {
    let len = usize::try_from(from.checked_eat_u32_le()?).ok()?;
    from.checked_eat(len).map(Bytes::copy_from_slice)
}

fn packets(from: &mut ParseBuf<'_>) -> Option<Vec<Bytes>> {
    let count = from.checked_eat_u32_le()?;
    (0..count).map(|_| take(from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_read_as_it_was_written() {
        let mut failure = WriteFailure {
            columns: Vec::new(),
            error: Bytes::from_static(b"\xff\x15\x04#28000no"),
            ..WriteFailure::default()
        };
        assert_eq!(failure.encode(), failure.error);
        assert_eq!(
            WriteFailure::decode(&failure.encode()),
            Some(failure.clone())
        );
        failure.columns = vec![Bytes::from_static(b"c")];
        failure.warnings = vec![Warning {
            level: b"Note"[..].into(),
            number: 1265,
            message: b"Data truncated"[..].into(),
        }];
        let bytes = failure.encode();
        assert_eq!(WriteFailure::decode(&bytes), Some(failure));
        assert_eq!(WriteFailure::decode(&bytes[..8]), None);
        assert_eq!(WriteFailure::decode(b""), None);
    }

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        let mut answer = WriteAnswer {
            insert_id: u64::MAX,
            last_insert_id: Some(7),
            warning_count: 1,
            info: Bytes::from_static(b"Rows matched: 1"),
            warnings: vec![Warning {
                level: b"Note"[..].into(),
                number: 1265,
                message: b"Data truncated"[..].into(),
            }],
            result: None,
        };
        assert_eq!(WriteAnswer::decode(&answer.encode()), Some(answer.clone()));
        answer.result = Some(ResultPackets {
            columns: vec![Bytes::from_static(b"c")],
            rows: vec![Bytes::new(), Bytes::from_static(b"\x011")],
        });
        let bytes = answer.encode();
        assert_eq!(WriteAnswer::decode(&bytes), Some(answer));
        assert_eq!(WriteAnswer::decode(&bytes[..bytes.len() - 1]), None);
        assert!(WriteAnswer::default().is_plain());
        assert_eq!(
            WriteAnswer::decode(&WriteAnswer::default().encode()),
            Some(WriteAnswer::default())
        );
    }
}
