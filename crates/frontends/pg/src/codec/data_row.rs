//! Reads and writes DataRow messages.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::answer::message;

/// The columns of a row; `None` is NULL.
pub(crate) type Columns = Vec<Option<Bytes>>;

/// Reads messages that are rows; `None` if one is incomplete or something else.
pub(crate) fn rows(messages: &Bytes) -> Option<Vec<Columns>> {
    let (mut rest, mut rows) = (messages.clone(), Vec::new());
    while !rest.is_empty() {
        if rest.try_get_u8().ok()? != b'D' {
            return None;
        }
        let length = usize::try_from(rest.try_get_u32().ok()?).ok()?;
        let length = length
            .checked_sub(4)
            .filter(|length| *length <= rest.len())?;
        rows.push(columns(rest.split_to(length))?);
    }
    Some(rows)
}

/// Reads the body of a row; `None` if it is incomplete.
pub(crate) fn columns(mut body: Bytes) -> Option<Columns> {
    let count = body.try_get_u16().ok()?;
    let mut columns = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        columns.push(match body.try_get_i32().ok()? {
            -1 => None,
            length => {
                let length = usize::try_from(length).ok()?;
                (length <= body.len()).then(|| Some(body.split_to(length)))?
            }
        });
    }
    body.is_empty().then_some(columns)
}

/// Writes a row.
pub(crate) fn row<'c>(
    out: &mut BytesMut,
    columns: impl ExactSizeIterator<Item = Option<&'c [u8]>>,
) {
    message(out, b'D', |out| {
        out.put_u16(u16::try_from(columns.len()).unwrap_or(u16::MAX));
        columns.for_each(|column| value(out, column));
    });
}

/// Writes a value in the form of rows and of Bind.
pub(crate) fn value(out: &mut BytesMut, value: Option<&[u8]>) {
    match value {
        None => out.put_i32(-1),
        Some(value) => {
            // A received value is far below 2 GiB.
            out.put_i32(i32::try_from(value.len()).unwrap_or(i32::MAX));
            out.put_slice(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let mut out = BytesMut::new();
        row(&mut out, [Some(&b"17"[..]), None].into_iter());
        row(&mut out, [Some(&b""[..])].into_iter());
        let messages = out.freeze();
        let read = rows(&messages).unwrap();
        let value = |text: &'static [u8]| Some(Bytes::from_static(text));
        assert_eq!(read, [vec![value(b"17"), None], vec![value(b"")]]);
        for end in 1..messages.len() {
            let cut = rows(&messages.slice(..end));
            assert!(cut.is_none_or(|rows| rows.len() == 1), "{end}");
        }
        assert_eq!(rows(&Bytes::from_static(b"N\0\0\0\x04")), None);
    }
}
