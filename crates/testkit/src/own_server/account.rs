//! The account that the server runs as.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// The account that servers run as. Without ids it is the account of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    ids: Option<(u32, u32)>,
    own: u32,
}

impl Account {
    /// Returns this process's own account.
    pub(crate) fn own() -> Result<Self> {
        let own = fs::metadata("/proc/self")
            .context("/proc is needed to start servers")?
            .uid();
        Ok(Self { ids: None, own })
    }

    /// Returns this process's own account or, if that is root, `postgres` or else `nobody`.
    pub(crate) fn unprivileged() -> Result<Self> {
        let account = Self::own()?;
        if !account.is_root() {
            return Ok(account);
        }
        let passwd = fs::read_to_string("/etc/passwd")?;
        let ids = ["postgres", "nobody"]
            .iter()
            .find_map(|user| ids_of(&passwd, user))
            .context("PostgreSQL does not run as root, and /etc/passwd has neither `postgres` nor `nobody`")?;
        Ok(Self {
            ids: Some(ids),
            ..account
        })
    }

    /// True if servers run as root.
    pub(crate) fn is_root(&self) -> bool {
        self.uid() == 0
    }

    /// Returns the user id that files of the server belong to.
    pub(crate) fn uid(&self) -> u32 {
        self.ids.map_or(self.own, |(uid, _)| uid)
    }

    /// A command that runs as this account, in a directory that every account may enter, without
    /// the caller's `PG*` variables.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/");
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"PG") {
                command.env_remove(name);
            }
        }
        if let Some((uid, gid)) = self.ids {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Hands a file or folder to this account.
    pub(crate) fn give(&self, path: &Path) -> Result<()> {
        if let Some((uid, gid)) = self.ids {
            std::os::unix::fs::chown(path, Some(uid), Some(gid))
                .with_context(|| format!("chown {}", path.display()))?;
        }
        Ok(())
    }
}

fn ids_of(passwd: &str, user: &str) -> Option<(u32, u32)> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == user).then_some(())?;
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        Some((uid, gid))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_user_by_its_whole_name() {
        let passwd = "root:x:0:0::/root:/bin/sh\npostgres2:x:9:9::/:/bin/sh\npostgres:x:101:104::/:/bin/sh\n";
        assert_eq!(ids_of(passwd, "postgres"), Some((101, 104)));
        assert_eq!(ids_of(passwd, "nobody"), None);
    }
}
