//! Verdicts on statements: whether they may leave something behind that affects other sessions.

use std::sync::Arc;

use windrow_core::Apart;
use windrow_sql::{Effect, Names, Property};

const ADVICE_CODE: &str =
    "what it leaves behind is not known; use unproven = \"reset\" if nothing of it is needed";

/// The tables that the names in a text mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    /// Tables visible with a role and settings of this fingerprint.
    Of(u64),
    /// Tables of any schema, because the session has changed what it sees.
    Any,
}

/// The verdict on a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The statement leaves nothing behind except what its text says.
    Clean {
        /// The sequences that it may take values from, according to the catalog.
        sequences: Arc<[u32]>,
        /// True if it may run more than its text shows: a view, a policy, a function.
        runs_hidden: bool,
    },
    /// As `Clean`, but a view, a rule or a trusted function may take values from sequences.
    Takes(Arc<[u32]>),
    /// The statement may run unproven code.
    Unproven(Arc<Apart>),
}

impl Verdict {
    /// Returns true if a session that has relied on one verdict may rely on the other.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Clean { runs_hidden, .. },
                Self::Clean {
                    runs_hidden: other, ..
                },
            ) => runs_hidden == other,
            (Self::Takes(_), Self::Takes(_)) => true,
            _ => self == other,
        }
    }
}

/// Returns the reason why a statement is unproven, if its text shows one; `None` if that depends on
/// the meaning of its names. `names`: those of its text, if they are certain.
pub(crate) fn of_text(names: Option<&Names>, effect: &Effect) -> Option<Apart> {
    let unproven = |phrase| Some(Apart::of(phrase).advised(ADVICE_CODE).unproven());
    let Some(names) = names else {
        return unproven("a text that cannot be read");
    };
    if names.begins_with(&["do"]) {
        return unproven("a DO block");
    }
    if names.has_late_change {
        return unproven("a text that may change what it has run");
    }
    if !names.are_known() || names.any(Property::Hides) {
        return unproven("a statement that is not known");
    }
    // A seed of the random number generator cannot be reset, not even after SET LOCAL.
    let seeds = match effect {
        Effect::Several(effects) => effects.contains(&Effect::Seed),
        // The text was not completely understood.
        Effect::Other => names.begins_with(&["set"]) && names.has("seed"),
        effect => *effect == Effect::Seed,
    };
    if seeds || names.local.iter().any(|name| &**name == "seed") {
        return unproven("a seed for random numbers");
    }
    if names.has("pg_settings") && names.has("update") {
        return unproven("an UPDATE of pg_settings");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrase(text: &str) -> Option<&'static str> {
        let effect = windrow_sql::read(text, &[]).effect();
        of_text(windrow_sql::names(text).as_ref(), &effect).map(|apart| apart.phrase)
    }

    #[test]
    fn a_text_that_does_not_show_all_that_it_runs_is_unproven() {
        for (text, said) in [
            ("do $$ begin end $$", Some("a DO block")),
            ("load 'x'", Some("a statement that is not known")),
            ("select 'open", Some("a text that cannot be read")),
            ("set seed = 0.5", Some("a seed for random numbers")),
            ("set local seed = 0.5", Some("a seed for random numbers")),
            (
                "select set_config('seed', '0.5', true)",
                Some("a seed for random numbers"),
            ),
            ("set timezone = 'UTC'; select seed from t", None),
            (
                "set seed = 0.5; set timezone = 'UTC'",
                Some("a seed for random numbers"),
            ),
            (
                "update pg_settings set setting = 'x' where name = 'y'",
                Some("an UPDATE of pg_settings"),
            ),
            ("select * from pg_settings", None),
            ("with a as (select 1) select * from a", None),
            ("(select 1)", None),
            ("begin; insert into t values (1); commit", None),
            (
                "select f(); drop function f",
                Some("a text that may change what it has run"),
            ),
        ] {
            assert_eq!(phrase(text), said, "{text}");
        }
    }
}
