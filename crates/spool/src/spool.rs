//! A spool in files: a directory that one process uses.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::task::spawn_blocking;

use crate::common::{Common, Cut};
use crate::entry::{Position, SpoolId};
use crate::fault::SpoolFault;
use crate::files::{FileHandle, Files, RealFiles, read_full};
use crate::format::{HEADER, Identity, Meta, millis};
use crate::journal::{Begun, UNFINISHED, begin_file};
use crate::log::FileLog;
use crate::options::Options;
use crate::port::{Log, Spool};
use crate::recover;
use crate::segment::unread_fault;
use crate::writer::Guard;

/// The file that contains a spool's name and its number of partitions. It is created last, so if it
/// exists, everything else does.
pub(crate) const META_FILE: &str = "spool";

/// The file that is locked.
const LOCK_FILE: &str = "lock";

/// A spool in files.
#[derive(Debug)]
pub struct FileSpool {
    id: SpoolId,
    common: Arc<Common>,
    files: Vec<Arc<FileLog>>,
    logs: Vec<Arc<dyn Log>>,
    cuts: Vec<Cut>,
}

impl FileSpool {
    /// Opens the spool in a directory, or creates one. Reads and checks all entries, which takes
    /// about a second for each gigabyte that is not trimmed. Not cancel safe: after a dropped
    /// future, the directory stays locked until it has been opened.
    ///
    /// # Errors
    /// [`SpoolFault::InUse`], [`SpoolFault::NotASpool`], [`SpoolFault::Newer`],
    /// [`SpoolFault::Damaged`], [`SpoolFault::Partitions`], [`SpoolFault::Option`] and
    /// [`SpoolFault::System`]. Then nothing is changed, except that bytes left by a crash may be
    /// cut off.
    pub async fn open(directory: impl Into<PathBuf>, options: Options) -> Result<Self, SpoolFault> {
        Self::open_on(Arc::new(RealFiles), directory, options).await
    }

    /// Opens the spool on another file system.
    ///
    /// # Errors
    /// Those of [`FileSpool::open`].
    pub async fn open_on(
        files: Arc<dyn Files>,
        directory: impl Into<PathBuf>,
        options: Options,
    ) -> Result<Self, SpoolFault> {
        let directory = directory.into();
        let opening = spawn_blocking(move || open(files, &directory, options));
        // An error means that the runtime is shutting down.
        opening.await.map_err(|_| SpoolFault::Closed)?
    }

    /// Checks that a directory is a spool, or can become one, and that no process uses it. Writes
    /// nothing.
    ///
    /// # Errors
    /// [`SpoolFault::InUse`], [`SpoolFault::NotASpool`], and the errors of the system.
    pub fn check(directory: &Path) -> Result<(), SpoolFault> {
        let names = match RealFiles.list(directory) {
            Ok(names) => names,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(SpoolFault::system("list", directory, e)),
        };
        is_spool(directory, &names)?;
        match names.iter().any(|name| name == LOCK_FILE) {
            true => lock(&RealFiles, directory).map(drop),
            false => Ok(()),
        }
    }

    /// Returns the bytes that were cut off the ends of the logs when the spool was opened. A crash
    /// had left them; no client had got an answer for their writes.
    pub fn cuts(&self) -> &[Cut] {
        &self.cuts
    }
}

#[async_trait]
impl Spool for FileSpool {
    fn id(&self) -> SpoolId {
        self.id
    }

    fn logs(&self) -> &[Arc<dyn Log>] {
        &self.logs
    }

    fn failure(&self) -> Option<Arc<str>> {
        self.common.poisoned()
    }

    async fn close(&self) -> Result<(), SpoolFault> {
        for log in &self.files {
            log.shut();
        }
        for log in &self.files {
            log.closed().await;
        }
        self.common.check()
    }
}

fn open(
    files: Arc<dyn Files>,
    directory: &Path,
    options: Options,
) -> Result<FileSpool, SpoolFault> {
    options.check()?;
    let above = prepare(&*files, directory)?;
    let guard = lock(&*files, directory)?;
    let gateway = options.gateway.unwrap_or_else(rand::random);
    let common = Arc::new(Common::new(files, options, gateway));
    let meta = match read_meta(&*common.files, directory)? {
        Some(meta) => {
            recover::sync_names(&common, directory)?;
            meta
        }
        None => make(&common, directory, above.as_deref())?,
    };
    check_partitions(directory, &meta, &common.options)?;
    let mut opened = FileSpool {
        id: meta.id,
        common,
        files: Vec::new(),
        logs: Vec::new(),
        cuts: Vec::new(),
    };
    // All are checked before the first is started, so that a refused spool stays as it is.
    let mut journals = Vec::new();
    for partition in 0..meta.partitions {
        let identity = identity(&meta, partition);
        let path = partition_path(directory, partition);
        let (journal, cut) = recover::open(&opened.common, path, identity)?;
        if let Some(cut) = &cut {
            tracing::warn!(
                file = %cut.path.display(), at = cut.offset, bytes = cut.bytes, why = cut.what,
                "the end of the spool was cut off: a crash had left it, and no client had got an answer for it"
            );
        }
        opened.cuts.extend(cut);
        journals.push(journal);
    }
    for journal in journals {
        let log = Arc::new(FileLog::start(journal, Arc::clone(&guard))?);
        opened.logs.push(Arc::clone(&log) as Arc<dyn Log>);
        opened.files.push(log);
    }
    Ok(opened)
}

/// Returns the path of a partition.
pub(crate) fn partition_path(directory: &Path, partition: u32) -> PathBuf {
    directory.join(format!("{partition:04}"))
}

/// Returns the identity of a partition's log.
pub(crate) fn identity(meta: &Meta, partition: u32) -> Identity {
    Identity {
        spool: meta.id,
        partition,
    }
}

/// Creates the directory if needed, and checks that it may be a spool's. If it contains no spool
/// yet, returns its parent, which must be synced.
fn prepare(files: &dyn Files, directory: &Path) -> Result<Option<PathBuf>, SpoolFault> {
    let made = files.make_directory(directory);
    made.map_err(|e| SpoolFault::system("make the directory", directory, e))?;
    let names = files.list(directory);
    let names = names.map_err(|e| SpoolFault::system("list", directory, e))?;
    if is_spool(directory, &names)? {
        return Ok(None);
    }
    let above = directory
        .parent()
        .filter(|path| !path.as_os_str().is_empty());
    Ok(Some(above.unwrap_or(Path::new(".")).to_owned()))
}

/// Returns true if a directory with these names holds a spool, and false if one can be made there.
fn is_spool(directory: &Path, names: &[String]) -> Result<bool, SpoolFault> {
    if names.iter().any(|name| name == META_FILE) {
        return Ok(true);
    }
    let is_partition = |name: &str| name.len() == 4 && name.parse::<u32>().is_ok();
    let unfinished = format!("{META_FILE}.{UNFINISHED}");
    let is_ours = |name: &str| name == LOCK_FILE || name == unfinished || is_partition(name);
    if let Some(other) = names.iter().find(|name| !is_ours(name)) {
        return Err(SpoolFault::NotASpool {
            path: directory.to_owned(),
            what: format!("it holds {other:?} and no file {META_FILE:?}").into(),
        });
    }
    Ok(false)
}

fn lock(files: &dyn Files, directory: &Path) -> Result<Guard, SpoolFault> {
    match files.lock(&directory.join(LOCK_FILE)) {
        Ok(guard) => Ok(Arc::from(guard)),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Err(SpoolFault::InUse {
            path: directory.to_owned(),
        }),
        Err(e) => Err(SpoolFault::system("lock", directory, e)),
    }
}

/// Reads the spool's own file; `None` if there is none yet.
pub(crate) fn read_meta(files: &dyn Files, directory: &Path) -> Result<Option<Meta>, SpoolFault> {
    let path = directory.join(META_FILE);
    let file: Box<dyn FileHandle> = match files.open_to_read(&path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(SpoolFault::system("open", &path, e)),
    };
    let mut bytes = [0; HEADER];
    let read = read_full(&*file, &mut bytes, 0);
    let read = read.map_err(|e| SpoolFault::system("read", &path, e))?;
    let meta = Meta::decode(bytes.get(..read).unwrap_or_default());
    meta.map(Some)
        .map_err(|unread| unread_fault(unread, &path, Position(0)))
}

/// Creates a spool: everything else first, then the file that shows that it exists.
fn make(common: &Common, directory: &Path, above: Option<&Path>) -> Result<Meta, SpoolFault> {
    let files = &*common.files;
    let meta = Meta {
        id: common.options.id.unwrap_or_else(|| SpoolId(rand::random())),
        partitions: common.options.partitions,
        made: millis(common.options.clock.now()),
    };
    for partition in 0..meta.partitions {
        let path = partition_path(directory, partition);
        let made = files.make_directory(&path);
        made.map_err(|e| SpoolFault::system("make the directory", &path, e))?;
        clear_away(common, &path)?;
        recover::make(common, &path, identity(&meta, partition))?;
    }
    for path in above.into_iter().chain([directory]) {
        let synced = files.sync_directory(path);
        synced.map_err(|e| SpoolFault::system("sync", path, e))?;
    }
    let path = directory.join(META_FILE);
    let made = begin_file(files, &path, &meta.encode());
    made.map_err(|e| {
        let (Begun::Not(e) | Begun::Unsynced(e)) = e;
        SpoolFault::system("make", &path, e)
    })?;
    Ok(meta)
}

/// Removes what an attempt to create a spool left behind, unless it contains entries.
fn clear_away(common: &Common, directory: &Path) -> Result<(), SpoolFault> {
    for first in recover::segments(common, directory)? {
        let path = crate::segment::path_of(directory, first);
        let system = |doing, e| SpoolFault::system(doing, &path, e);
        let file = common
            .files
            .open_to_read(&path)
            .map_err(|e| system("open", e))?;
        let length = file.length().map_err(|e| system("read", e))?;
        if first != Position(0) || length > HEADER as u64 {
            return Err(SpoolFault::NotASpool {
                path: path.clone(),
                what: format!("there are entries here, but the file {META_FILE:?} is missing")
                    .into(),
            });
        }
        common
            .files
            .remove(&path)
            .map_err(|e| system("remove", e))?;
    }
    Ok(())
}

fn check_partitions(directory: &Path, meta: &Meta, options: &Options) -> Result<(), SpoolFault> {
    if meta.partitions == options.partitions {
        return Ok(());
    }
    Err(SpoolFault::Partitions {
        path: directory.to_owned(),
        found: meta.partitions,
        asked: options.partitions,
    })
}
