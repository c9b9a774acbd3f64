//! The spool, as sessions use it: which of them may.

use std::sync::Arc;

use windrow_core::{Fault, FaultClass, Name, RowWrite, Spooling};

use crate::client::{Identity, Settings};

/// A spool that writes of SQL clients can be acknowledged by.
#[derive(Clone, Debug)]
pub struct SqlSpool {
    /// Where writes go.
    pub spooling: Arc<dyn Spooling<RowWrite>>,
    /// The database that it is applied to, under the name that clients know, and the role as which
    /// that is done. Who works elsewhere, or as somebody else, cannot use it.
    pub applied: Identity,
    /// Sessions that can use it do so, unless they say otherwise.
    pub default: bool,
}

/// Settings that change nothing about the rows that are written, where their values are spelled in
/// a way that reads the same everywhere.
const HARMLESS: [&str; 18] = [
    "application_name",
    "bytea_output",
    "client_encoding",
    "client_min_messages",
    "datestyle",
    "deadlock_timeout",
    "extra_float_digits",
    "geqo",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "intervalstyle",
    "lock_timeout",
    "search_path",
    "standard_conforming_strings",
    "statement_timeout",
    "synchronous_commit",
    "timezone",
    "work_mem",
];

impl SqlSpool {
    /// That clients of a database and a role can use it.
    ///
    /// # Errors
    /// Why they cannot.
    pub(crate) fn check(&self, identity: &Identity) -> Result<(), Fault> {
        if *identity == self.applied {
            return Ok(());
        }
        let (Identity { database, role }, applied) = (identity, &self.applied);
        let text = format!(
            "windrow.ack cannot be \"spool\" here: what is in the spool is applied to the database \"{}\" as \"{}\", and this session is in \"{database}\" as \"{role}\"",
            applied.database, applied.role
        );
        Err(Fault::new(FaultClass::Unsupported, "55000", text))
    }

    /// True where what is written under these settings is what is applied later under others.
    pub(crate) fn suits(settings: &Settings) -> bool {
        let harmless = |(name, _): &(Name, Name)| {
            let name = name.to_ascii_lowercase();
            HARMLESS.binary_search(&&*name).is_ok()
        };
        settings.startup.iter().all(harmless) && settings.set.iter().all(harmless)
    }
}

/// What is said where there is no spool.
pub(crate) fn missing() -> Fault {
    let text = "windrow.ack cannot be \"spool\": this server has no spool";
    Fault::new(FaultClass::Unsupported, "55000", text).with_hint(Some(
        "It has one where it is started with --spool DIR, before a PostgreSQL database.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_that_are_known_to_be_harmless_are() {
        assert!(HARMLESS.is_sorted());
        let settings = |name: &str| Settings {
            set: [(Name::from(name), Name::from("x"))].into(),
            ..Settings::default()
        };
        assert!(SqlSpool::suits(&Settings::default()));
        assert!(SqlSpool::suits(&settings("TimeZone")));
        for name in [
            "role",
            "session_replication_role",
            "row_security",
            "my.setting",
        ] {
            assert!(!SqlSpool::suits(&settings(name)), "{name}");
        }
    }
}
