//! The spool: a durable log that acknowledges writes before a database has them.
//!
//! | module | content |
//! | --- | --- |
//! | [`port`] | a spool: logs to append to, to read in order, and to trim |
//! | [`entry`] | entries, their positions, and batches of them |
//! | [`fault`] | the reasons why an operation of the spool failed |
//! | [`options`] | limits |
//! | [`spool`] | a spool in files |
//! | [`inspect`] | reading a spool's files without changing them |
//! | [`codec`] | units of row writes as the bytes of an entry |
//! | [`appender`] | answers units of an intake once a log has them |
//! | [`files`] | the port to the file system |
//!
//! **Promises.** An entry whose append has succeeded is in the log, at its position and unchanged,
//! also after kill -9 and after loss of power. Otherwise the spool cannot be opened or read, and
//! the error says where it is damaged. An entry whose append failed is not in the log, unless the
//! error says that this cannot be known.
//!
//! **Assumptions.** A sync that succeeds means that the bytes are on the disk. A sector that is
//! written again with the same first bytes keeps them, even if power is lost during the write
//! (SQLite calls this *powersafe overwrite*; PostgreSQL's log relies on it as well). A rename is
//! atomic.
//!
//! The bytes of the files are described in `format.rs`.

pub mod appender;
pub mod codec;
mod common;
mod cursor;
pub mod entry;
pub mod fault;
pub mod files;
mod format;
pub mod inspect;
mod journal;
mod log;
pub mod options;
pub mod port;
mod recover;
mod segment;
mod shelf;
pub mod spool;
mod trim;
mod window;
mod writer;

pub use appender::Appender;
pub use common::Cut;
pub use entry::{Batch, Entry, Origin, Position, SpoolId};
pub use fault::SpoolFault;
pub use files::{FileHandle, Files, RealFiles};
pub use options::{Clock, Options};
pub use port::{Cursor, Log, LogStatus, Spool};
pub use spool::FileSpool;
