//! The spool: a durable log that acknowledges writes before a database has them.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`port`] | what a spool is: logs to append to, to read in order, and to trim |
//! | [`entry`] | entries, their positions, and batches of them |
//! | [`fault`] | why the spool did not do what it was asked for |
//! | [`options`] | limits |
//! | [`spool`] | a spool in files |
//! | [`inspect`] | looking into a spool's files without touching them |
//! | [`codec`] | units of row writes as the bytes of an entry |
//! | [`appender`] | the end of an intake that is a log |
//! | [`files`] | the port to the file system |
//!
//! **What is promised.** An entry whose append has ended well is there afterwards, at its position,
//! as it was written, after kill -9 and after loss of power; or the spool refuses to be opened or
//! read and says where it is damaged. An entry whose append failed is not there, unless the failure
//! says that this cannot be known.
//!
//! **What is relied on.** A sync that succeeds means that the bytes are on the disk. A sector that
//! is written again with the same first bytes keeps them, whatever happens meanwhile (SQLite calls
//! it *powersafe overwrite*; PostgreSQL's log relies on it as well). A rename is seen whole or not
//! at all.
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
