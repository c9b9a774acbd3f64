//! Readers of files, by format.

mod csv;
mod csv_text;
mod decode;
mod fault;
mod input;
mod names;
mod ndjson;
mod opener;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
mod port;
mod portion;
mod skip;
mod window;
mod zip;

pub use self::fault::SourceFault;
pub use self::input::IDENTIFYING_BYTES;
pub use self::opener::open;
#[cfg(any(test, fuzzing))]
pub(crate) use self::opener::open_reader;
pub use self::options::{Escape, Format, Options};
pub use self::port::Source;
pub use self::portion::{BadRecord, Portion, PortionLimits};
pub use self::window::MAX_RECORD_BYTES;
