//! All sinks there are, a line each.

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Fault, Profile, Sink};

use crate::options::Options;

/// A kind of sink: what it is called, which URLs are its own, how it is opened.
#[async_trait]
pub trait Driver: Send + Sync {
    /// The URL schemes that name it, without the colon.
    fn schemes(&self) -> &'static [&'static str];

    /// The form of its URLs, for help and error texts.
    fn url_form(&self) -> &'static str;

    /// What the databases behind it can do and cannot promise, for documentation: one for each that
    /// it tells apart.
    fn profiles(&self) -> &'static [Profile] {
        &[]
    }

    /// Opens the sink that a URL names. No connection has to be made yet: a database that is away
    /// is no error here.
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Invalid`] if the URL makes no sense.
    async fn open(&self, url: &str, options: &Options) -> Result<Arc<dyn Sink>, Fault>;
}

/// The sinks that this build holds.
pub const DRIVERS: &[&dyn Driver] = &[
    #[cfg(feature = "sqlite")]
    &crate::sqlite::Sqlite,
    #[cfg(feature = "postgres")]
    &crate::postgres::Postgres,
    #[cfg(feature = "mysql")]
    &crate::mysql::Mysql,
    #[cfg(feature = "postgres")]
    &crate::cockroachdb::Cockroachdb,
    #[cfg(feature = "cratedb")]
    &crate::cratedb::CrateDb,
    #[cfg(feature = "arangodb")]
    &crate::arangodb::ArangoDb,
];

/// Opens the sink that the URL's scheme names.
///
/// # Errors
/// [`windrow_core::FaultClass::Invalid`] if no driver knows the scheme or the URL makes no sense;
/// the message never repeats the URL, which may hold a password.
pub async fn open(url: &str, options: &Options) -> Result<Arc<dyn Sink>, Fault> {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    match DRIVERS.iter().find(|d| d.schemes().contains(&scheme)) {
        Some(driver) => driver.open(url, options).await,
        None => Err(Fault::invalid(format!(
            "no database is known by the scheme of this URL; known are {}",
            DRIVERS
                .iter()
                .map(|d| d.url_form())
                .collect::<Vec<_>>()
                .join(", ")
        ))),
    }
}
