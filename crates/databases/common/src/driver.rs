//! The port of a database: its URLs, and how it is opened.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Database, Fault, Profile};

use crate::Options;

/// A kind of database: its URLs, and how to open one.
#[async_trait]
pub trait Driver: Send + Sync {
    /// Returns the URL schemes of the database, without the colon.
    fn schemes(&self) -> &'static [&'static str];

    /// Returns the form of its URLs, for help and error texts.
    fn url_form(&self) -> &'static str;

    /// Returns the abilities and limits of the databases, for documentation: one profile for each
    /// database that the driver distinguishes.
    fn profiles(&self) -> &'static [Profile] {
        &[]
    }

    /// Returns the file that a URL names and that opening it would create; `None` if there is none.
    /// Creates nothing.
    ///
    /// # Errors
    /// The URL makes no sense, or the file can neither be opened nor created.
    fn file(&self, _url: &str) -> Result<Option<PathBuf>, Fault> {
        Ok(None)
    }

    /// Opens the database that a URL names. Need not connect yet: a database that is away is no
    /// error here.
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Invalid`] if the URL makes no sense.
    async fn open(&self, url: &str, options: &Options) -> Result<Arc<dyn Database>, Fault>;
}
