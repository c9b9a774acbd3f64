//! Reads the server's whole answer to a command, for connections that Windrow uses itself.

use std::io;

use bytes::Bytes;
use mysql_common::io::ParseBuf;

use crate::answer::{Answer, Forms, LOOK_BYTES, PreparedStatement, Step};
use crate::error_packet::ERROR;
use crate::packet::Wire;
use crate::success::Success;
use crate::write_answer::{ResultPackets, WriteFailure};

/// The whole answer to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Success without rows.
    Ok(Success),
    /// An error, as [`WriteFailure::encode`] writes it.
    Error(Bytes),
    /// Rows, and the packet after them.
    Rows(ResultPackets, Success),
    /// A statement that was prepared.
    Prepared(PreparedStatement),
}

impl Reply {
    /// Reads the answer to a command that is under way. `most` is the length of the longest packet,
    /// in bytes.
    ///
    /// # Errors
    /// The stream fails or ends; the answer has a form that was not asked for.
    pub async fn read(wire: &mut Wire, command: u8, forms: Forms, most: usize) -> io::Result<Self> {
        let odd = || io::Error::new(io::ErrorKind::InvalidData, "an answer cannot be read");
        let mut answer = Answer::to(&[command], forms).ok_or_else(odd)?;
        let mut packets = Vec::new();
        loop {
            let packet = wire.packet(most).await?;
            let packet = packet.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
            let start = packet.get(..LOOK_BYTES).unwrap_or(&packet);
            let step = answer.take(start, packet.len());
            packets.push(packet);
            match step {
                Step::More => {}
                Step::File => return Err(odd()),
                Step::Done => break,
            }
        }
        match answer.prepared_statement() {
            Some(prepared) => Ok(Self::Prepared(prepared)),
            None => Self::of(packets, forms).ok_or_else(odd),
        }
    }

    /// Returns the contents of the packets of rows; none for an answer without rows.
    pub fn rows(&self) -> &[Bytes] {
        match self {
            Self::Rows(result, _) => &result.rows,
            Self::Ok(_) | Self::Error(_) | Self::Prepared(_) => &[],
        }
    }

    fn of(mut packets: Vec<Bytes>, forms: Forms) -> Option<Self> {
        let last = packets.last()?;
        if last.first() == Some(&ERROR) {
            let error = packets.pop()?;
            // The number of columns comes before them, and the rows after them.
            let count = packets
                .first()
                .map(|first| ParseBuf(first).checked_eat_lenenc_int());
            let mut columns = packets.split_off(packets.len().min(1));
            if count.flatten() != Some(columns.len() as u64) {
                columns.clear();
            }
            let failure = WriteFailure {
                columns,
                error,
                ..WriteFailure::default()
            };
            return Some(Self::Error(failure.encode()));
        }
        let first = packets.first()?;
        if first.first() == Some(&0) || packets.len() == 1 {
            let success = Success::parse(first, forms)?;
            return (packets.len() == 1).then_some(Self::Ok(success));
        }
        let mut from = ParseBuf(first);
        let columns = usize::try_from(from.checked_eat_lenenc_int()?).ok()?;
        let end = Success::parse(last, forms)?;
        packets.pop();
        let behind = usize::from(!forms.has_no_eof);
        let rows = packets.get(1 + columns + behind..)?.to_vec();
        packets.truncate(1 + columns);
        packets.remove(0);
        Some(Self::Rows(
            ResultPackets {
                columns: packets,
                rows,
            },
            end,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command;

    async fn read(packets: &[&[u8]], command: u8, forms: Forms) -> io::Result<Reply> {
        let (one, other) = tokio::io::duplex(10_000);
        let (mut server, mut wire) = (Wire::new(one), Wire::new(other));
        packets.iter().for_each(|packet| server.put(packet));
        server.close().await;
        Reply::read(&mut wire, command, forms, 1_000).await
    }

    fn new() -> Forms {
        Forms {
            has_no_eof: true,
            ..Forms::default()
        }
    }

    #[tokio::test]
    async fn reads_success_with_its_text() {
        let info = b"Rows matched: 1  Changed: 0  Warnings: 0";
        let mut packet = vec![0, 1, 0xfc, 0x2c, 1, 2, 0, 3, 0, 40];
        packet.extend_from_slice(info);
        let reply = read(&[&packet], command::QUERY, new()).await.unwrap();
        let Reply::Ok(ok) = reply else {
            panic!("{reply:?}")
        };
        assert_eq!((ok.affected, ok.insert_id, ok.warning_count), (1, 300, 3));
        assert_eq!((ok.status.bits(), &ok.info[..]), (2, &info[..]));
    }

    #[tokio::test]
    async fn reads_rows_in_both_forms_and_their_warnings() {
        let old = [
            &[1][..],
            b"column",
            &[0xfe, 0, 0, 2, 0],
            b"\x011",
            &[0xfe, 7, 0, 2, 0],
        ];
        let new_form = [&[1][..], b"column", b"\x011", &[0xfe, 0, 0, 2, 0, 7, 0]];
        for (packets, forms) in [(&old[..], Forms::default()), (&new_form[..], new())] {
            let reply = read(packets, command::QUERY, forms).await.unwrap();
            let Reply::Rows(result, end) = reply else {
                panic!("{reply:?}")
            };
            assert_eq!(result.columns, [&b"column"[..]]);
            assert_eq!(result.rows, [&b"\x011"[..]]);
            assert_eq!(end.warning_count, 7);
        }
    }

    #[tokio::test]
    async fn an_error_among_rows_is_an_error() {
        let error = b"\xff\x25\x05#70100no";
        let packets = [&[1][..], b"column", b"\x011", error];
        let reply = read(&packets, command::QUERY, new()).await.unwrap();
        assert_eq!(reply, Reply::Error(Bytes::from_static(error)));
        let packets = [&[1][..], b"column", error];
        let reply = read(&packets, command::QUERY, new()).await.unwrap();
        let failure = WriteFailure {
            columns: vec![Bytes::from_static(b"column")],
            error: Bytes::from_static(error),
            ..WriteFailure::default()
        };
        assert_eq!(reply, Reply::Error(failure.encode()));
        assert!(
            read(&[&[1], b"column"], command::QUERY, new())
                .await
                .is_err()
        );
    }

    #[tokio::test]
    async fn reads_a_prepared_statement() {
        let packets = [&[0, 9, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0][..], b"parameter"];
        let reply = read(&packets, command::STMT_PREPARE, new()).await.unwrap();
        let expected = Reply::Prepared(PreparedStatement {
            id: 9,
            parameters: 1,
        });
        assert_eq!(reply, expected);
    }
}
