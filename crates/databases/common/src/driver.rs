//! The port of a database: which URLs are its own, and how it is opened.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Database, Fault, Profile};

use crate::Options;

/// A kind of sink: what it is called, which URLs are its own, how it is opened.
#[async_trait]
pub trait Driver: Send + Sync {
    /// The URL schemes that name it, without the colon.
    fn schemes(&self) -> &'static [&'static str];

    /// The form of its URLs, for help and error texts.
    fn url_form(&self) -> &'static str;

    /// Returns the abilities and limits of the databases, for documentation: one profile for each
    /// database that the driver distinguishes.
    fn profiles(&self) -> &'static [Profile] {
        &[]
    }

    /// The file that a URL names and that opening it would make; `None` where there is none. Makes
    /// nothing.
    ///
    /// # Errors
    /// The URL makes no sense, or the file can be neither opened nor made.
    fn file(&self, _url: &str) -> Result<Option<PathBuf>, Fault> {
        Ok(None)
    }

    /// Opens the sink that a URL names. No connection has to be made yet: a database that is away
    /// is no error here.
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Invalid`] if the URL makes no sense.
    async fn open(&self, url: &str, options: &Options) -> Result<Arc<dyn Database>, Fault>;
}
