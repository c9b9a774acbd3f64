//! Where PostgreSQL is installed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Where Debian, Ubuntu and the PGDG packages put each version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// A folder with `postgres` and `initdb` of one version.
#[derive(Clone, Debug)]
pub(crate) struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// The newest version under `/usr/lib/postgresql`, or else what is on the PATH.
    pub(crate) fn find() -> Result<Self> {
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

    /// The path of a program. Client programs (psql, pgbench) may be installed elsewhere; then its
    /// bare name.
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

/// A link to `postgres` elsewhere stands for the folder it leads to, where its neighbours are.
fn real_folder(folder: &Path) -> PathBuf {
    fs::canonicalize(folder.join("postgres"))
        .ok()
        .and_then(|file| file.parent().map(Path::to_path_buf))
        .unwrap_or_else(|| folder.to_path_buf())
}
