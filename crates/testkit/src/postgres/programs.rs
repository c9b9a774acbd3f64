//! Where PostgreSQL is installed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::own_server::named_folder;

/// Where Debian, Ubuntu and the PGDG packages put each version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// The environment variable that names the folder with `postgres` and `initdb` of the version to
/// test with.
pub const PROGRAMS: &str = "WINDROW_TEST_POSTGRES_PROGRAMS";

/// A folder with `postgres` and `initdb` of one version.
#[derive(Clone, Debug)]
pub(crate) struct PostgresPrograms {
    folder: PathBuf,
}

impl PostgresPrograms {
    /// Finds the version in the folder that [`PROGRAMS`] names, or else the newest one under
    /// `/usr/lib/postgresql`, or else the one on the PATH.
    pub(crate) fn find() -> Result<Self> {
        if let Some(folder) = named_folder(PROGRAMS) {
            let folder = fs::canonicalize(&folder)
                .with_context(|| format!("{PROGRAMS} names {}", folder.display()))?;
            return Ok(Self { folder });
        }
        debian_folders()
            .into_iter()
            .chain(path_folders())
            .find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
            .map(|folder| Self { folder })
            .context(
                "no PostgreSQL server found (initdb and postgres, on the PATH or in /usr/lib/postgresql/*/bin); \
                 install it, for example with: apt-get install postgresql",
            )
    }

    /// Returns true if the library of TimescaleDB lies beside this version's own.
    pub(crate) fn has_timescaledb(&self) -> bool {
        let library = self.folder.join("../lib/timescaledb.so");
        library.is_file()
    }

    /// Returns the path of a program. Client programs (psql, pgbench) may be installed elsewhere;
    /// then its bare name.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        let here = self.folder.join(name);
        if here.is_file() {
            here
        } else {
            PathBuf::from(name)
        }
    }
}

fn debian_folders() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(DEBIAN) else {
        return Vec::new();
    };
    let mut versions: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version = path.file_name()?.to_str()?.parse().ok()?;
            Some((version, path.join("bin")))
        })
        .collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    versions.into_iter().map(|(_, path)| path).collect()
}

fn path_folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| real_folder(&folder))
        .collect()
}

/// Follows a link to `postgres` to the folder of its neighbours.
fn real_folder(folder: &Path) -> PathBuf {
    fs::canonicalize(folder.join("postgres"))
        .ok()
        .and_then(|file| file.parent().map(Path::to_path_buf))
        .unwrap_or_else(|| folder.to_path_buf())
}
