//! libpq's password file: lines of `host:port:database:user:password`, where `*` matches anything.
//!
//! <https://www.postgresql.org/docs/current/libpq-pgpass.html>

use std::path::{Path, PathBuf};

use windrow_core::Secret;

use super::host::{Address, Host};

/// Sets each host's password from the file, for this database and user. A missing file, or one that
/// other users may read, is ignored. Without a `path` the file is `~/.pgpass`.
pub(super) fn fill_in(
    hosts: &mut [Host],
    database: &str,
    user: &str,
    path: Option<String>,
    env: impl Fn(&str) -> Option<String>,
) {
    let path = path
        .map(PathBuf::from)
        .or_else(|| env("HOME").map(|home| Path::new(&home).join(".pgpass")));
    let Some(text) = path.and_then(|path| read(&path)) else {
        return;
    };
    for host in hosts {
        host.password = find(&text, host, database, user);
    }
}

fn read(path: &Path) -> Option<String> {
    let meta = path.metadata().ok()?;
    if !meta.is_file() || is_open_to_others(&meta) {
        tracing::warn!(
            path = %path.display(),
            "the password file is not used: it must be a plain file that only its owner may read (chmod 600)"
        );
        return None;
    }
    std::fs::read_to_string(path).ok()
}

#[cfg(unix)]
fn is_open_to_others(meta: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    meta.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_: &std::fs::Metadata) -> bool {
    false
}

fn find(text: &str, host: &Host, database: &str, user: &str) -> Option<Secret> {
    let name = match &host.address {
        Address::Tcp(name) => name.clone(),
        // libpq does this only for its default directory; here every socket counts as local.
        Address::Unix(_) => "localhost".to_owned(),
    };
    let wanted = [&name, &host.port.to_string(), database, user];
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let mut fields = split(line).into_iter();
            let matches = wanted.iter().all(|wanted| {
                fields
                    .next()
                    .is_some_and(|(field, plain)| (plain && field == "*") || field == **wanted)
            });
            fields
                .next()
                .filter(|(password, _)| matches && !password.is_empty())
        })
        .map(|(password, _)| Secret::from(password))
}

/// Splits a line into its five fields, each with true if it has no escape. A password with a bare
/// colon extends to the end of the line.
fn split(line: &str) -> Vec<(String, bool)> {
    let mut fields = vec![(String::new(), true)];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let count = fields.len();
        let Some((field, plain)) = fields.last_mut() else {
            break;
        };
        match c {
            ':' if count < 5 => fields.push((String::new(), true)),
            '\\' => {
                *plain = false;
                field.extend(chars.next());
            }
            c => field.push(c),
        }
    }
    fields
}
