//! Properties of reading that are tested with random bytes (`./test fuzz`) and, in every test run,
//! with the bytes that were kept.

use std::io::{Cursor, Read};
use std::sync::Arc;

use crate::source::{self, Format, Options, Portion, PortionLimits, Source, SourceFault};

/// A reader that returns a few bytes at a time.
struct Dribble {
    data: Cursor<Vec<u8>>,
    most: usize,
}

impl Read for Dribble {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = buffer.len().min(self.most);
        self.data.read(buffer.get_mut(..most).unwrap_or_default())
    }
}

/// The content of a file: its rows and invalid records, and the fault that ended it.
type Content = (Vec<String>, Option<String>);

/// Checks that a file gives the same rows and faults in portions of any size, split at once or
/// later. The first bytes are the options.
pub fn file(bytes: &[u8]) {
    let Some((&[how, records, room], text)) = bytes.split_first_chunk() else {
        return;
    };
    let is_csv = how & 1 == 0;
    let options = Options {
        format: Some(if is_csv { Format::Csv } else { Format::Ndjson }),
        delimiter: (is_csv && how & 2 != 0).then_some(b';'),
        quote: (how & 4 == 0).then_some(b'"'),
        header: how & 8 == 0,
        unfinished: how & 16 != 0,
        ..Options::default()
    };
    let all = PortionLimits {
        records: usize::MAX,
        bytes: usize::MAX,
    };
    let most = PortionLimits {
        records: usize::from(records).max(1),
        bytes: usize::from(room).max(1),
    };
    let open = |piece: usize| {
        let data = Cursor::new(text.to_vec());
        let piece = piece.max(1);
        source::open_reader("x", Dribble { data, most: piece }, &options)
    };
    let (mut whole, mut parts) = match (open(usize::MAX), open(usize::from(room))) {
        (Ok(whole), Ok(parts)) => (whole, parts),
        (Err(_), Err(_)) => return,
        // If much is unpacked at once, damage after the header is found earlier.
        (Ok(_), Err(fault)) | (Err(fault), Ok(_)) => return assert!(is_damage(&fault.to_string())),
    };
    let whole = content(&mut *whole, |source, portion| source.read(portion, all));
    let split = content(&mut *parts, |source, portion| source.read(portion, most));
    agree(&whole, &split);
    let Ok(mut later) = open(usize::MAX) else {
        return;
    };
    if let Some(style) = later.style().map(Arc::new) {
        let later = content(&mut *later, |source, portion| {
            let more = source.read_unsplit(&style, portion, most);
            portion.split();
            more
        });
        agree(&whole, &later);
    }
}

/// Checks that two readings agree. Of a damaged archive one reading may have more rows: the point
/// where it ends depends on how much is unpacked at once.
fn agree(one: &Content, other: &Content) {
    let is_damaged = |content: &Content| content.1.as_deref().is_some_and(is_damage);
    if !is_damaged(one) || !is_damaged(other) {
        return assert_eq!(one, other);
    }
    let both = one.0.len().min(other.0.len());
    assert_eq!(one.0.get(..both), other.0.get(..both));
}

fn is_damage(why: &str) -> bool {
    why.contains("is damaged")
}

fn content(
    source: &mut dyn Source,
    mut read: impl FnMut(&mut dyn Source, &mut Portion) -> Result<bool, SourceFault>,
) -> Content {
    let Some(columns) = source.columns() else {
        return (Vec::new(), None);
    };
    let mut portion = Portion::new(columns);
    let mut found = Vec::new();
    loop {
        let more = read(source, &mut portion);
        let mut fields = portion.rows.fields();
        for (row, (record, line)) in portion.records.iter().zip(portion.rows.lines()).enumerate() {
            let fields: Vec<_> = fields.by_ref().take(columns).collect();
            let raw = portion.raw(row).escape_ascii();
            found.push((*record, format!("{line} {raw} {fields:?}")));
        }
        let bad = portion.bad.iter();
        found.extend(bad.map(|bad| (bad.record, format!("{bad:?}"))));
        let ended = match more {
            Ok(true) => continue,
            Ok(false) => None,
            Err(fault) => Some(fault.to_string()),
        };
        // Records that are split later report their faults in another order.
        found.sort();
        return (found.into_iter().map(|(_, record)| record).collect(), ended);
    }
}

#[cfg(test)]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chance_has_found() {
        corpus::each("file", file);
    }
}
