//! A build without PostgreSQL: `[pg]` can be read, but not asked for.

use std::net::SocketAddr;

use super::file::File;

/// Nobody can make one.
#[derive(Clone)]
pub enum PgSettings {}

impl PgSettings {
    /// What is said where it listens.
    pub fn greeting(&self, _: SocketAddr) -> Vec<String> {
        match *self {}
    }
}

pub(super) fn settings(file: &File, _: &str) -> anyhow::Result<Option<PgSettings>> {
    anyhow::ensure!(
        file.pg.listen.is_none(),
        "pg.listen is set, but this build has no PostgreSQL: it was made without the feature `postgres`"
    );
    Ok(None)
}
