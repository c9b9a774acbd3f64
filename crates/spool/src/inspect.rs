//! Reads a spool's files without changing them, for `windrow spool`, also while a gateway uses
//! them. Bytes that are being written at that moment look like what a crash leaves.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use crate::common::{Common, Cut};
use crate::cursor::entry;
use crate::entry::{Entry, Position, SpoolId};
use crate::fault::SpoolFault;
use crate::files::{FileHandle, Files};
use crate::format::{GROUP_HEADER, HEADER, Mark, Meta, time};
use crate::options::Options;
use crate::recover::{no_segments, read_mark, segments};
use crate::segment::{self, Damage, Segment};
use crate::spool::{META_FILE, identity, partition_path, read_meta};
use crate::window::Window;

/// The content of a spool.
#[derive(Debug)]
pub struct Survey {
    /// The spool's name.
    pub id: SpoolId,
    /// The time of creation, if it is known.
    pub made: Option<SystemTime>,
    /// The partitions of the spool.
    pub partitions: Vec<PartitionSurvey>,
}

/// The content of a partition, all of which was read and checked.
#[derive(Debug)]
pub struct PartitionSurvey {
    /// The partition.
    pub partition: u32,
    /// The first position in the files.
    pub first: Position,
    /// The position up to which entries were trimmed; perhaps more were.
    pub trimmed: Position,
    /// The position after the last whole group, or before the first damage.
    pub end: Position,
    /// The number of segments; 0 if the spool is not in files.
    pub segments: usize,
    /// The bytes of all segments.
    pub bytes: u64,
    /// The time at which the first entry in the files was written.
    pub oldest: Option<SystemTime>,
    /// The bytes after the last whole group: being written now, or left by a crash. They are cut
    /// off when the spool is opened.
    pub tail: Option<Cut>,
    /// The reason why the spool cannot be opened.
    pub damage: Option<SpoolFault>,
}

/// Reads and checks all of a spool.
///
/// # Errors
/// [`SpoolFault::NotASpool`], [`SpoolFault::Newer`] and [`SpoolFault::System`]; damage to a
/// partition is reported in its survey.
pub fn survey(files: Arc<dyn Files>, directory: &Path) -> Result<Survey, SpoolFault> {
    let meta = meta_of(&*files, directory)?;
    // The parts used here open nothing for writing.
    let common = Common::new(files, Options::default(), 0);
    let survey = |partition| survey_partition(&common, directory, &meta, partition);
    Ok(Survey {
        id: meta.id,
        made: Some(time(meta.made)),
        partitions: (0..meta.partitions).map(survey).collect::<Result<_, _>>()?,
    })
}

fn meta_of(files: &dyn Files, directory: &Path) -> Result<Meta, SpoolFault> {
    let missing = || SpoolFault::NotASpool {
        path: directory.to_owned(),
        what: format!("the file {META_FILE:?} is missing").into(),
    };
    read_meta(files, directory)?.ok_or_else(missing)
}

fn survey_partition(
    common: &Common,
    directory: &Path,
    meta: &Meta,
    partition: u32,
) -> Result<PartitionSurvey, SpoolFault> {
    let path = partition_path(directory, partition);
    let segments = segments(common, &path)?;
    let mark = read_mark(common, &path, identity(meta, partition));
    let first = segments.first().copied().unwrap_or_default();
    let mut survey = PartitionSurvey {
        partition,
        first,
        trimmed: mark.map_or(first, |mark| mark.trimmed),
        end: first,
        segments: segments.len(),
        bytes: 0,
        oldest: None,
        tail: None,
        damage: segments.is_empty().then(|| no_segments(path.clone())),
    };
    for first in &segments {
        let is_last = Some(first) == segments.last();
        let found = survey_segment(common, &path, meta, *first, is_last, mark, &mut survey);
        if let Err(fault) = found {
            survey.damage.get_or_insert(fault);
        }
    }
    Ok(survey)
}

fn survey_segment(
    common: &Common,
    directory: &Path,
    meta: &Meta,
    first: Position,
    is_last: bool,
    mark: Option<Mark>,
    survey: &mut PartitionSurvey,
) -> Result<(), SpoolFault> {
    let path = segment::path_of(directory, first);
    let segment = Segment {
        path: &path,
        identity: identity(meta, survey.partition),
        first,
    };
    let file = open(&*common.files, &path)?;
    segment.check_header(&*file)?;
    let oldest = &mut survey.oldest;
    let scan = segment.scan(&*file, |_, header| {
        oldest.get_or_insert(time(header.written));
    })?;
    survey.bytes += match scan.broken {
        None => scan.end,
        Some(_) => scan.length,
    };
    if survey.damage.is_none() {
        if first != survey.end {
            let what = "entries before the first of this file are missing";
            return Err(segment.damaged(0, survey.end, what));
        }
        survey.end = scan.next;
    }
    let Some(bad) = scan.broken else {
        return Ok(());
    };
    let synced = mark.is_some_and(|mark| mark.segment == first && mark.offset > scan.end);
    if !is_last || synced || scan.followed_at.is_some() {
        return Err(segment.damaged(bad.offset, bad.position, bad.what));
    }
    survey.tail = Some(Cut {
        bytes: scan.length.saturating_sub(scan.end),
        offset: scan.end,
        what: bad.what,
        path,
    });
    Ok(())
}

fn open(files: &dyn Files, path: &Path) -> Result<Box<dyn FileHandle>, SpoolFault> {
    let opened = files.open_to_read(path);
    opened.map_err(|e| SpoolFault::system("open", path, e))
}

/// Passes each entry from a position on to `each`, and each damage. After damage, goes on with the
/// next whole group. Ends when `each` says so.
///
/// # Errors
/// Those of [`survey`].
pub fn dump(
    files: &Arc<dyn Files>,
    directory: &Path,
    (partition, from): (u32, Position),
    mut each: impl FnMut(Result<Entry, SpoolFault>) -> ControlFlow<()>,
) -> Result<(), SpoolFault> {
    let meta = meta_of(&**files, directory)?;
    let path = partition_path(directory, partition);
    let common = Common::new(Arc::clone(files), Options::default(), 0);
    let segments = segments(&common, &path)?;
    let mark = read_mark(&common, &path, identity(&meta, partition));
    let following = segments.iter().skip(1).map(Some).chain([None]);
    for (first, following) in segments.iter().zip(following) {
        if following.is_some_and(|following| *following <= from) {
            continue;
        }
        let path = segment::path_of(&path, *first);
        let dumping = Dumping {
            file: open(&**files, &path)?,
            path,
            meta,
            partition,
            first: *first,
            from,
            tail: following.is_none().then(|| match mark {
                Some(mark) if mark.segment == *first => mark.offset,
                _ => HEADER as u64,
            }),
        };
        if dumping.run(&mut each)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// A segment whose entries are shown.
struct Dumping {
    file: Box<dyn FileHandle>,
    path: PathBuf,
    meta: Meta,
    partition: u32,
    first: Position,
    from: Position,
    /// For the last segment, the offset from which on unreadable bytes count as left by a crash, if
    /// nothing readable follows them.
    tail: Option<u64>,
}

impl Dumping {
    fn run(
        &self,
        each: &mut impl FnMut(Result<Entry, SpoolFault>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, SpoolFault> {
        let segment = Segment {
            path: &self.path,
            identity: identity(&self.meta, self.partition),
            first: self.first,
        };
        if let Err(fault) = segment.check_header(&*self.file)
            && each(Err(fault)).is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
        let cannot_read = |e| SpoolFault::system("read", &self.path, e);
        let length = self.file.length().map_err(cannot_read)?;
        let mut window = Window::new(&*self.file, length);
        let (mut at, mut next) = (HEADER as u64, self.first);
        while at < length {
            let mut found = Vec::new();
            let add = |position, payload| found.push((position, payload));
            let group = segment.group(&mut window, (at, next), length, add)?;
            if group.is_err() && segment.is_room(&mut window, at, length)? {
                break;
            }
            let later = match group {
                Ok(_) => None,
                Err(_) => segment
                    .later_group(&mut window, (at, next), length)
                    .map_err(cannot_read)?,
            };
            // No client got an answer for these bytes, and they are cut off when the spool is
            // opened.
            if group.is_err() && later.is_none() && self.tail.is_some_and(|tail| at >= tail) {
                break;
            }
            // Of a damaged group, show the entries before the damage.
            if let Some(header) = segment.header_at(&mut window, at)? {
                let body = segment.body_at(&mut window, at + GROUP_HEADER as u64, &header)?;
                let body = Bytes::copy_from_slice(body);
                found.retain(|(position, _)| *position >= self.from);
                for found in found {
                    if each(Ok(entry(&header, &body, found))).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            match group {
                Ok(header) => (at, next) = (at + header.bytes(), header.end()),
                Err(Damage {
                    offset,
                    position,
                    what,
                }) => {
                    if each(Err(segment.damaged(offset, position, what))).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                    let Some((later, first)) = later else { break };
                    (at, next) = (later, first);
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
