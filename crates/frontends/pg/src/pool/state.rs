//! The state of a server connection's session, and the statements that lead from one state to
//! another.

use std::sync::Arc;

use windrow_core::Name;

/// The state of a session on the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ConnectionState {
    /// The SET statements in force, each with the name of its setting.
    pub(super) set: Arc<[(Name, Name)]>,
    /// The session's `application_name`.
    pub(super) application_name: Name,
    /// The session's initial `application_name`, to which RESET ALL returns.
    pub(super) first_name: Name,
    /// True if statements of unknown effect were run: there may be settings that PostgreSQL does
    /// not show, and `lastval()` may return a value of another session.
    pub(super) is_touched: bool,
}

/// The settings that decide the session's role: they are changed back before all others.
const IDENTITY: [&str; 2] = ["session_authorization", "role"];

impl ConnectionState {
    /// Returns the statements that lead to another state, in their order; `None` if there is no
    /// way. Once set, a setting of a module that is not loaded (`app.tenant`) remains known and
    /// reads as an empty text.
    pub(super) fn bridge(
        &self,
        set: &[(Name, Name)],
        application_name: &str,
    ) -> Option<Vec<String>> {
        let knows = |name: &Name| set.iter().any(|(other, _)| other == name);
        let mut lasting = self.set.iter().filter(|(name, _)| lasts(name));
        if !lasting.all(|(name, _)| knows(name)) {
            return None;
        }
        let mut way = Vec::new();
        let same = |setting: &(Name, Name)| set.contains(setting);
        let is_identity = |(name, _): &&(Name, Name)| IDENTITY.contains(&&**name);
        // SET SESSION AUTHORIZATION changes the role as well, so both are set again if one differs.
        let identity =
            |of: &[(Name, Name)]| of.iter().filter(is_identity).cloned().collect::<Vec<_>>();
        let acts_for_another = identity(&self.set) != identity(set);
        if acts_for_another {
            way.push("RESET SESSION AUTHORIZATION".to_owned());
            way.push("RESET ROLE".to_owned());
        }
        if self.is_touched {
            way.push("RESET ALL".to_owned());
            way.push("DISCARD SEQUENCES".to_owned());
        }
        if !self.is_touched {
            let gone = self
                .set
                .iter()
                .filter(|setting| !is_identity(setting) && !same(setting) && !lasts(&setting.0));
            way.extend(gone.map(|(name, _)| format!("RESET {}", identifier(name))));
        }
        let missing = set.iter().filter(|setting| match is_identity(setting) {
            true => acts_for_another,
            false => self.is_touched || !self.set.contains(setting),
        });
        way.extend(missing.map(|(_, statement)| statement.to_string()));
        let name = if self.is_touched {
            &self.first_name
        } else {
            &self.application_name
        };
        let named = set.iter().any(|(name, _)| &**name == "application_name");
        if **name != *application_name && !named {
            way.push(format!(
                "SET application_name TO {}",
                literal(application_name)
            ));
        }
        Some(way)
    }
}

/// Returns true if a setting leaves a trace for as long as its connection lives.
pub(crate) fn lasts(name: &str) -> bool {
    name.contains('.')
}

/// Returns the statement that leaves such a setting in the state after its first use: known, and
/// empty.
pub(crate) fn emptied(name: &str) -> Name {
    format!("RESET {}", identifier(name)).into()
}

/// Returns a setting's name with its parts quoted.
fn identifier(name: &str) -> String {
    let parts = name
        .split('.')
        .map(|part| format!("\"{}\"", part.replace('"', "\"\"")));
    parts.collect::<Vec<_>>().join(".")
}

/// Returns a text as a literal that means the same whatever `standard_conforming_strings` is.
pub(crate) fn literal(text: &str) -> String {
    let doubled = text.replace('\'', "''").replace('\\', "\\\\");
    let escaped = if text.contains('\\') { "E" } else { "" };
    format!("{escaped}'{doubled}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(of: &[(&str, &str)]) -> Arc<[(Name, Name)]> {
        of.iter()
            .map(|(name, sql)| (Name::from(*name), Name::from(*sql)))
            .collect()
    }

    #[test]
    fn only_the_difference_is_said() {
        let utc = ("timezone", "SET TIME ZONE 'UTC'");
        let paris = ("timezone", "SET TIME ZONE 'Europe/Paris'");
        let path = ("search_path", "SET search_path = a");
        let own = ("my.var", "SET my.var = 1");
        let one = ConnectionState {
            set: set(&[own, path, utc]),
            ..ConnectionState::default()
        };
        assert_eq!(one.bridge(&set(&[own, path, utc]), ""), Some(Vec::new()));
        // Nobody else may see that there was one.
        assert_eq!(one.bridge(&set(&[path, utc]), ""), None);
        let emptied = ("my.var", "RESET \"my\".\"var\"");
        assert_eq!(
            one.bridge(&set(&[emptied, path, paris]), "it's").unwrap(),
            [
                "RESET \"timezone\"",
                "RESET \"my\".\"var\"",
                "SET TIME ZONE 'Europe/Paris'",
                "SET application_name TO 'it''s'"
            ]
        );
    }

    #[test]
    fn who_it_acts_for_begins_anew() {
        let (role, path) = (
            ("role", "SET ROLE a"),
            ("search_path", "SET search_path = a"),
        );
        let one = ConnectionState {
            set: set(&[role, path]),
            ..ConnectionState::default()
        };
        assert_eq!(
            one.bridge(&set(&[path]), "").unwrap(),
            ["RESET SESSION AUTHORIZATION", "RESET ROLE"]
        );
        assert_eq!(
            one.bridge(&set(&[("role", "SET ROLE b"), path]), "")
                .unwrap(),
            ["RESET SESSION AUTHORIZATION", "RESET ROLE", "SET ROLE b"]
        );
    }

    #[test]
    fn what_cannot_be_seen_is_wiped_out() {
        let path = ("search_path", "SET search_path = a");
        let one = ConnectionState {
            set: set(&[path]),
            application_name: "now".into(),
            first_name: "first".into(),
            is_touched: true,
        };
        assert_eq!(
            one.bridge(&set(&[path]), "now").unwrap(),
            [
                "RESET ALL",
                "DISCARD SEQUENCES",
                "SET search_path = a",
                "SET application_name TO 'now'"
            ]
        );
        assert_eq!(literal(r"a\'b"), r"E'a\\''b'");
    }
}
