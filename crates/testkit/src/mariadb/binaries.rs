//! Where MariaDB is installed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// Debian puts the server where only root's PATH leads.
const MORE_FOLDERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin"];

/// The programs of one installation.
#[derive(Clone, Debug)]
pub(crate) struct Binaries {
    pub(crate) server: PathBuf,
    pub(crate) install: PathBuf,
    pub(crate) client: PathBuf,
}

impl Binaries {
    /// The server, its installer and its client.
    pub(crate) fn find() -> Result<Self> {
        let advice = "no MariaDB server found (mariadbd, mariadb-install-db and mariadb); install it, for example with: \
                      apt-get install mariadb-server";
        Ok(Self {
            server: program("mariadbd").context(advice)?,
            install: program("mariadb-install-db").context(advice)?,
            client: program("mariadb").context(advice)?,
        })
    }

    /// Its version, such as `10.11.6-MariaDB-0+deb12u1`.
    pub(crate) fn version(&self) -> String {
        let output = Command::new(&self.server).arg("--version").output();
        let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
        let text = text.unwrap_or_default();
        let mut words = text.split_whitespace().skip_while(|word| *word != "Ver");
        words.nth(1).unwrap_or("unknown").to_owned()
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(MORE_FOLDERS.map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// What makes a program of the server run as the user who runs this process: it refuses root unless
/// it is told so.
pub(crate) fn as_self() -> Option<&'static str> {
    let own = fs::metadata(Path::new("/proc/self")).map(|meta| meta.uid());
    (own.ok() == Some(0)).then_some("--user=root")
}
