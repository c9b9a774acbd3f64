//! Decides if a user can see triggers: the server shows them only to users who may create them.

use crate::quoted::quoted_name;

/// Returns true if the user can see the triggers of a table. `grants` is the result of SHOW GRANTS.
pub(crate) fn may_see_triggers(grants: &[String], database: &str, table: &str) -> bool {
    has_privilege(grants, "TRIGGER", database, Some(table))
}

/// Returns true if the user has a privilege in a database, or for one of its tables. `grants` is
/// the result of SHOW GRANTS.
pub(crate) fn has_privilege(
    grants: &[String],
    privilege: &str,
    database: &str,
    table: Option<&str>,
) -> bool {
    grants.iter().any(|grant| {
        let Some((what, rest)) = grant
            .strip_prefix("GRANT ")
            .and_then(|g| g.split_once(" ON "))
        else {
            return false;
        };
        let mut privileges = what.split(',').map(str::trim);
        let enough = privileges.any(|p| p == privilege || matches!(p, "ALL PRIVILEGES" | "ALL"));
        let Some((place, _)) = rest.split_once(" TO ").filter(|_| enough) else {
            return false;
        };
        match parts(place) {
            Some((None, _)) => true,
            Some((Some(pattern), None)) => is_like(&pattern, database),
            Some((Some(schema), Some(name))) => schema == database && Some(&*name) == table,
            None => false,
        }
    })
}

/// Parses `*.*`, `` `database`.* `` or `` `database`.`table` ``: the database and the table, each
/// `None` for all.
fn parts(place: &str) -> Option<(Option<String>, Option<String>)> {
    let (database, rest) = part(place)?;
    let (table, rest) = part(rest.strip_prefix('.')?)?;
    rest.is_empty().then_some((database, table))
}

fn part(text: &str) -> Option<(Option<String>, &str)> {
    if let Some(rest) = text.strip_prefix('*') {
        return Some((None, rest));
    }
    let (name, rest) = quoted_name('`', text)?;
    Some((Some(name), rest))
}

/// Returns true if a name matches a pattern, in which `_` stands for a letter, `%` for any number
/// of letters, and `\` escapes both.
fn is_like(pattern: &str, name: &str) -> bool {
    let mut letters = pattern.chars();
    match letters.next() {
        None => name.is_empty(),
        Some('%') => {
            let rest = letters.as_str();
            name.char_indices()
                .any(|(at, _)| is_like(rest, name.get(at..).unwrap_or("")))
                || is_like(rest, "")
        }
        Some(letter) => {
            let (any, letter) = match letter {
                '_' => (true, '_'),
                '\\' => (false, letters.next().unwrap_or('\\')),
                other => (false, other),
            };
            let mut left = name.chars();
            let first = left.next();
            first.is_some_and(|c| any || c == letter) && is_like(letters.as_str(), left.as_str())
        }
    }
}
