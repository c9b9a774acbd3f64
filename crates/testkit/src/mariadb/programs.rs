//! The installed programs of MariaDB, or of MySQL.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::own_server::{Account, installed, named_folder};

/// The environment variable that names the folder with the programs of the server to test with:
/// `mariadbd`, `mariadb-install-db` and `mariadb`, or `mysqld` and `mysql`.
pub const PROGRAMS: &str = "WINDROW_TEST_MARIADB_PROGRAMS";

/// The maker of an installation: the options of MariaDB and MySQL differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Brand {
    MariaDb,
    MySql,
}

/// The programs of one installation.
#[derive(Clone, Debug)]
pub(crate) struct MariaDbPrograms {
    pub(crate) brand: Brand,
    pub(crate) server: PathBuf,
    /// The program that makes a data directory.
    pub(crate) install: PathBuf,
    pub(crate) client: PathBuf,
}

impl MariaDbPrograms {
    /// Finds the programs in the folder that [`PROGRAMS`] names, or else MariaDB's on the PATH.
    pub(crate) fn find() -> Result<Self> {
        if let Some(folder) = named_folder(PROGRAMS) {
            let folder = fs::canonicalize(&folder)
                .with_context(|| format!("{PROGRAMS} names {}", folder.display()))?;
            return Self::in_folder(&folder)
                .with_context(|| format!("{PROGRAMS} names {}", folder.display()));
        }
        let advice = "no MariaDB server found (mariadbd, mariadb-install-db and mariadb); install it, for example with: \
                      apt-get install mariadb-server";
        Self::mariadb(installed).context(advice)
    }

    fn in_folder(folder: &Path) -> Result<Self> {
        let find = |name: &str| Some(folder.join(name)).filter(|file| file.is_file());
        Self::mariadb(find).or_else(|| Self::mysql(find)).context(
            "it holds neither mariadbd, mariadb-install-db and mariadb, nor mysqld and mysql",
        )
    }

    fn mariadb(find: impl Fn(&str) -> Option<PathBuf>) -> Option<Self> {
        Some(Self {
            brand: Brand::MariaDb,
            server: find("mariadbd")?,
            install: find("mariadb-install-db")?,
            client: find("mariadb")?,
        })
    }

    fn mysql(find: impl Fn(&str) -> Option<PathBuf>) -> Option<Self> {
        let server = find("mysqld")?;
        Some(Self {
            brand: Brand::MySql,
            install: server.clone(),
            server,
            client: find("mysql")?,
        })
    }

    /// Returns the options with which a data directory is made, but for its path.
    pub(crate) fn install_options(&self) -> &'static [&'static str] {
        match self.brand {
            Brand::MariaDb => &[
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--skip-name-resolve",
                "--innodb-log-file-size=8M",
            ],
            Brand::MySql => &[
                "--no-defaults",
                "--initialize-insecure",
                "--innodb-redo-log-capacity=8M",
            ],
        }
    }

    /// Returns the options that only servers of this brand need: a small log, which is copied
    /// faster; no TLS, which MariaDB 11.4 and later offer without being asked; and names for
    /// addresses on MySQL, whose only account is `root@localhost`.
    pub(crate) fn server_options(&self) -> &'static [&'static str] {
        match self.brand {
            Brand::MariaDb => &[
                "--innodb-log-file-size=8M",
                "--skip-ssl",
                "--skip-name-resolve",
            ],
            Brand::MySql => &[
                "--innodb-redo-log-capacity=8M",
                "--mysqlx=OFF",
                "--secure-file-priv=NULL",
                "--local-infile=ON",
            ],
        }
    }

    /// Returns the client's options for a connection without TLS.
    pub(crate) fn client_options(&self) -> &'static [&'static str] {
        match self.brand {
            Brand::MariaDb => &["--skip-ssl"],
            Brand::MySql => &["--ssl-mode=DISABLED", "--get-server-public-key"],
        }
    }
}

/// Returns the option that a program of the server needs to run as root.
pub(crate) fn as_root(account: &Account) -> Option<&'static str> {
    account.is_root().then_some("--user=root")
}
