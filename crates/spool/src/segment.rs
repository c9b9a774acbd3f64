//! Reads a segment: its groups one after the other, and the bytes after the last whole one.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::entry::Position;
use crate::fault::SpoolFault;
use crate::files::FileHandle;
use crate::format::{
    FORMAT, GROUP_HEADER, GROUP_MAGIC, GroupHeader, HEADER, Identity, SegmentHeader, Unread,
    entries,
};
use crate::window::Window;

/// The extension of a segment's file.
pub(crate) const SUFFIX: &str = ".log";

/// Returns the path of a segment.
pub(crate) fn path_of(directory: &Path, first: Position) -> PathBuf {
    directory.join(format!("{:020}{SUFFIX}", first.0))
}

/// Returns the first position of the segment with this file name; `None` if it is none.
pub(crate) fn first_of(name: &str) -> Option<Position> {
    let digits = name.strip_suffix(SUFFIX)?;
    let plain = digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok().map(Position)).flatten()
}

/// A segment to be read.
pub(crate) struct Segment<'a> {
    pub(crate) path: &'a Path,
    pub(crate) identity: Identity,
    /// The first position, from the file's name.
    pub(crate) first: Position,
}

/// The content of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scan {
    /// The offset after the last whole group.
    pub(crate) end: u64,
    /// The position after its last entry.
    pub(crate) next: Position,
    /// The length of the file.
    pub(crate) length: u64,
    /// The damage after the last whole group, if there are other bytes than zeros.
    pub(crate) broken: Option<Damage>,
    /// The offset and position of a whole header of a later group after the damage. Only bytes that
    /// were synced are followed by one.
    pub(crate) followed_at: Option<(u64, Position)>,
}

/// The first damaged bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) offset: u64,
    pub(crate) position: Position,
    pub(crate) what: &'static str,
}

impl Segment<'_> {
    /// Checks the segment's header.
    pub(crate) fn check_header(&self, file: &dyn FileHandle) -> Result<(), SpoolFault> {
        let mut window = Window::new(file, HEADER as u64);
        let bytes = window.at(0, HEADER).map_err(|e| self.cannot_read(e))?;
        match SegmentHeader::decode(bytes) {
            Ok(header) if header.identity != self.identity => {
                Err(self.damaged(0, self.first, "it belongs to another spool or partition"))
            }
            Ok(header) if header.first != self.first => Err(self.damaged(
                0,
                self.first,
                "its name and its header name different positions",
            )),
            Ok(_) => Ok(()),
            Err(unread) => Err(unread_fault(unread, self.path, self.first)),
        }
    }

    /// Reads all groups and checks every entry. Calls `each` with the offset and header of each
    /// whole group.
    pub(crate) fn scan(
        &self,
        file: &dyn FileHandle,
        mut each: impl FnMut(u64, &GroupHeader),
    ) -> Result<Scan, SpoolFault> {
        let length = file.length().map_err(|e| self.cannot_read(e))?;
        let mut window = Window::new(file, length);
        let mut scan = Scan {
            end: HEADER as u64,
            next: self.first,
            length,
            broken: None,
            followed_at: None,
        };
        while scan.end < length {
            let place = (scan.end, scan.next);
            match self.group(&mut window, place, length, |_, _| ())? {
                Ok(header) => {
                    each(scan.end, &header);
                    scan.end += header.bytes();
                    scan.next = header.end();
                }
                Err(_) if self.is_room(&mut window, scan.end, length)? => break,
                Err(bad) => {
                    let later = self.later_group(&mut window, place, length);
                    scan.followed_at = later.map_err(|e| self.cannot_read(e))?;
                    scan.broken = Some(bad);
                    break;
                }
            }
        }
        Ok(scan)
    }

    /// Reads the group at an offset, and checks all of it. Calls `each` with the position of each
    /// entry and the range of its payload in the body; those calls mean nothing unless the whole
    /// group is valid.
    pub(crate) fn group(
        &self,
        window: &mut Window<'_>,
        (at, next): (u64, Position),
        length: u64,
        mut each: impl FnMut(Position, Range<usize>),
    ) -> Result<Result<GroupHeader, Damage>, SpoolFault> {
        let bad = |offset, position, what| {
            Ok(Err(Damage {
                offset,
                position,
                what,
            }))
        };
        let Some(header) = self.header_at(window, at)? else {
            return bad(at, next, "no whole header of a group is there");
        };
        if header.first != next || header.count == 0 {
            return bad(at, next, "the group there is of another position");
        }
        if at + header.bytes() > length {
            return bad(length, next, "the file ends within a group");
        }
        let body_at = at + GROUP_HEADER as u64;
        let body = self.body_at(window, body_at, &header)?;
        let mut behind = next;
        for found in entries(&header, body) {
            match found {
                Ok((position, payload)) => {
                    each(position, payload);
                    behind = position.plus(1);
                }
                Err(offset) => {
                    let what = "the entry there is not what was written";
                    return bad(body_at + offset as u64, behind, what);
                }
            }
        }
        Ok(Ok(header))
    }

    /// Returns the header of the group at an offset, if a whole one is there.
    pub(crate) fn header_at(
        &self,
        window: &mut Window<'_>,
        at: u64,
    ) -> Result<Option<GroupHeader>, SpoolFault> {
        let bytes = window.at(at, GROUP_HEADER);
        let bytes = bytes.map_err(|e| self.cannot_read(e))?;
        let salt = self.identity.salt(self.first);
        Ok(GroupHeader::decode(bytes, salt))
    }

    /// Returns the body of a group.
    pub(crate) fn body_at<'w>(
        &self,
        window: &'w mut Window<'_>,
        at: u64,
        header: &GroupHeader,
    ) -> Result<&'w [u8], SpoolFault> {
        let body = window.at(at, header.body as usize);
        body.map_err(|e| self.cannot_read(e))
    }

    /// True if only zeros follow: space that was allocated and not used.
    pub(crate) fn is_room(
        &self,
        window: &mut Window<'_>,
        mut at: u64,
        length: u64,
    ) -> Result<bool, SpoolFault> {
        while at < length {
            let most = usize::try_from(length - at).unwrap_or(usize::MAX);
            let bytes = window.at(at, most.min(SEARCH));
            let bytes = bytes.map_err(|e| self.cannot_read(e))?;
            if bytes.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            if bytes.is_empty() {
                break;
            }
            at += bytes.len() as u64;
        }
        Ok(true)
    }

    /// Returns the offset and position of the next whole header of a later group.
    pub(crate) fn later_group(
        &self,
        window: &mut Window<'_>,
        (at, next): (u64, Position),
        length: u64,
    ) -> io::Result<Option<(u64, Position)>> {
        let salt = self.identity.salt(self.first);
        let mut from = at + 1;
        while from + GROUP_HEADER as u64 <= length {
            let bytes = window.at(from, SEARCH)?;
            let places = bytes.windows(GROUP_MAGIC.len()).enumerate();
            for (skip, _) in places.filter(|(_, magic)| magic == GROUP_MAGIC) {
                let header = GroupHeader::decode(bytes.get(skip..).unwrap_or_default(), salt);
                if let Some(header) = header.filter(|header| header.first > next) {
                    return Ok(Some((from + skip as u64, header.first)));
                }
            }
            from += (SEARCH - GROUP_HEADER + 1) as u64;
        }
        Ok(None)
    }

    /// Returns the fault for bytes that have changed since they were written.
    pub(crate) fn damaged(&self, offset: u64, position: Position, what: &str) -> SpoolFault {
        SpoolFault::Damaged {
            path: self.path.to_owned(),
            offset,
            position,
            what: what.into(),
        }
    }

    fn cannot_read(&self, source: io::Error) -> SpoolFault {
        SpoolFault::system("read", self.path, source)
    }
}

/// The number of bytes that are searched at once.
const SEARCH: usize = 64 << 10;

/// Returns the fault for a header that cannot be used.
pub(crate) fn unread_fault(unread: Unread, path: &Path, position: Position) -> SpoolFault {
    match unread {
        Unread::Newer(found) => SpoolFault::Newer {
            path: path.to_owned(),
            found,
            known: FORMAT,
        },
        Unread::Damaged(what) => SpoolFault::Damaged {
            path: path.to_owned(),
            offset: 0,
            position,
            what: what.into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_named_by_its_first_position() {
        let path = path_of(Path::new("/x"), Position(42));
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(name, "00000000000000000042.log");
        assert_eq!(first_of(name), Some(Position(42)));
        for other in [
            "mark",
            "42.log",
            "00000000000000000042.tmp",
            "+0000000000000000042.log",
        ] {
            assert_eq!(first_of(other), None, "{other}");
        }
        assert_eq!(first_of("99999999999999999999.log"), None);
    }
}
