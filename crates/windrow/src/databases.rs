//! The databases that this build contains, one line each, and descriptions of what they promise.

mod words;

use std::path::PathBuf;
use std::sync::Arc;

use windrow_core::{Database, Fault};
use windrow_database::{Driver, Options};

pub use words::{listing, markdown};

/// The databases that this build holds.
pub const DRIVERS: &[&dyn Driver] = &[
    #[cfg(feature = "sqlite")]
    &windrow_sqlite::Sqlite,
    #[cfg(feature = "postgres")]
    &windrow_postgres::Postgres,
    #[cfg(feature = "mysql")]
    &windrow_mysql::Mysql,
    #[cfg(feature = "postgres")]
    &windrow_postgres::Cockroachdb,
    #[cfg(feature = "cratedb")]
    &windrow_cratedb::CrateDb,
    #[cfg(feature = "arangodb")]
    &windrow_arangodb::ArangoDb,
];

/// Returns true for a text that may be a file's name, and contains no password.
fn looks_like_path(url: &str) -> bool {
    let ends = [".db", ".sqlite", ".sqlite3", ".db3"];
    !url.contains(':')
        && (url.starts_with(['/', '.', '~']) || ends.iter().any(|end| url.ends_with(end)))
}

/// Opens the database that the URL's scheme names.
///
/// # Errors
/// [`windrow_core::FaultClass::Invalid`] if no driver knows the scheme or the URL is invalid. The
/// message never contains the URL, which may hold a password.
pub async fn open(url: &str, options: &Options) -> Result<Arc<dyn Database>, Fault> {
    driver(url)?.open(url, options).await
}

/// Opens the database of a URL without creating the file of an embedded one: a misspelt path is an
/// error, not an empty database.
///
/// # Errors
/// Those of [`open`]; [`windrow_core::FaultClass::Invalid`] if the file does not exist.
pub async fn open_existing(url: &str, options: &Options) -> Result<Arc<dyn Database>, Fault> {
    match file(url)? {
        Some(path) if !path.exists() => Err(Fault::invalid(format!(
            "the SQLite file {} does not exist; check the path, nothing was created",
            path.display()
        ))),
        _ => open(url, options).await,
    }
}

/// Returns the file of an embedded database, which [`open`] would create; `None` for all others.
/// Creates nothing.
///
/// # Errors
/// Those of [`open`] that are found without opening it.
pub fn file(url: &str) -> Result<Option<PathBuf>, Fault> {
    driver(url)?.file(url)
}

fn driver(url: &str) -> Result<&'static dyn Driver, Fault> {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    match DRIVERS.iter().find(|d| d.schemes().contains(&scheme)) {
        Some(driver) => Ok(*driver),
        None => {
            let forms: Vec<_> = DRIVERS.iter().map(|d| d.url_form()).collect();
            let what = match (looks_like_path(url), url.contains("://")) {
                (true, _) => "this is no URL; a file of SQLite is named sqlite:PATH".to_owned(),
                // The text before a slash is not secret.
                (false, true) => {
                    format!("no database is known by the scheme {scheme}:// of this URL")
                }
                (false, false) => "no database is known by the scheme of this URL".to_owned(),
            };
            Err(Fault::invalid(format!(
                "{what}; known are {}",
                forms.join(", ")
            )))
        }
    }
}
