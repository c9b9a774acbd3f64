//! Checks a configuration as a whole: finds all errors, each with its line.

use std::collections::BTreeMap;

use super::Settings;
use super::faults::Faults;
use super::file::File;
use super::keys::is_reloaded;
use super::reading::{self, Key};
use super::shown::line_of;

/// An error in a configuration. It contains no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The line in the file, from 1; `None` if it concerns no line.
    pub line: Option<usize>,
    /// The error, and what to do.
    pub said: String,
}

/// Checks the text of a configuration file. `lay` applies the environment and the command line to
/// it.
///
/// # Errors
/// All errors, in the order of the lines.
pub fn check(text: &str, lay: impl FnOnce(File) -> File) -> Result<Settings, Vec<Finding>> {
    let (file, troubles) = reading::read(text);
    let mut faults = Faults::default();
    let settings = Settings::served(&lay(file), &mut faults);
    let mut found: Vec<Finding> = troubles
        .into_iter()
        .map(|trouble| Finding {
            line: Some(trouble.line),
            said: trouble.said,
        })
        .collect();
    found.extend(findings(text, faults.all()));
    found.sort_by_key(|finding| finding.line.unwrap_or(usize::MAX));
    match found.is_empty() {
        true => Ok(settings),
        false => Err(found),
    }
}

/// Returns errors of settings, each with the line of the key that it names.
pub fn findings(text: &str, errors: &[anyhow::Error]) -> Vec<Finding> {
    let keys = reading::keys(text);
    let finding = |error: &anyhow::Error| {
        let said = format!("{error:#}");
        let line = place(&keys, &said).map(|key| line_of(text, key.span.start));
        Finding { line, said }
    };
    errors.iter().map(finding).collect()
}

/// Returns the key that a message names: the longest one.
fn place<'k>(keys: &'k [Key], said: &str) -> Option<&'k Key> {
    let is_named = |key: &&Key| match key.path.contains('.') {
        true => said.contains(&key.path),
        // The name of a section may be an ordinary word.
        false => said.contains(&format!("[{}]", key.path)),
    };
    let named = keys.iter().filter(is_named);
    named.max_by_key(|key| key.path.len())
}

/// Returns the settings that differ between two texts of a configuration file and need a restart,
/// by name.
pub fn changed(before: &str, after: &str) -> Vec<String> {
    let written = |text: &str| -> BTreeMap<String, String> {
        let keys = reading::keys(text).into_iter().filter(|key| !key.is_table);
        keys.map(|key| {
            let value = text.get(key.span).unwrap_or_default().to_owned();
            (key.path, value)
        })
        .collect()
    };
    let (before, after) = (written(before), written(after));
    let differs = |path: &&String| before.get(*path) != after.get(*path) && !is_reloaded(path);
    let mut names: Vec<String> = before
        .keys()
        .chain(after.keys())
        .filter(differs)
        .cloned()
        .collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<(Option<usize>, String)> {
        let found = check(text, |file| file).map(|_| ()).unwrap_err();
        found.into_iter().map(|one| (one.line, one.said)).collect()
    }

    #[test]
    fn what_is_written_and_what_is_meant_are_told_together() {
        let text = "[limits]\nflights = 0\nmemory = '5 apples'\n[http]\nlisten = 'here'\nmax_row = '0B'\n\
            [spool]\nmax_age = '1h'\n[pg.users.app]\nserver_password = 'x'\n";
        let found = lines(text);
        let told: Vec<_> = found.iter().map(|(line, _)| line.unwrap_or(0)).collect();
        assert_eq!(told, [2, 3, 5, 6, 7, 9], "{found:?}");
        assert!(
            found.iter().all(|(_, said)| !said.contains("apples")),
            "{found:?}"
        );
        assert!(check("", |file| file).is_ok());
    }

    #[test]
    fn what_is_laid_over_the_file_counts() {
        let found = check("", |mut file| {
            file.http.listen = Some("off".into());
            file
        });
        let found = found.map(|_| ()).unwrap_err();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, None);
    }

    #[test]
    fn only_what_needs_a_restart_is_named() {
        let before =
            "[limits]\nmemory = '1GiB'\nflights = 2\n[http]\ntoken = 'a'\n[log]\nfilter = 'info'";
        let after = "[limits]\nmemory = '2GiB'\nflights = 2\n[http]\ntoken = 'b'\nmax_row = '1MiB'\n[log]\nfilter = 'debug'";
        assert_eq!(changed(before, after), ["http.max_row", "limits.memory"]);
        assert!(changed(before, before).is_empty());
        let token = |file: &str| format!("[http]\ntoken = {{ file = '{file}' }}");
        assert!(changed(&token("a"), &token("b")).is_empty());
        let user = "[pg.users.app]\nverifier = 'x'";
        assert!(changed("", user).is_empty());
    }
}
