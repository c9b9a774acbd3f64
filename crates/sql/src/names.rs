//! The names that stand in a text: what a statement runs besides itself can only be reached by one
//! of them.
//!
//! A table brings its triggers, defaults and policies, a view its query, a function its body, an
//! operator its function. Who asks the catalog for everything of these names, in whatever schema,
//! has asked for all that the text can mean.

use crate::effect;
use crate::lex::{Kind, Token};
use crate::parse::Tokens;
use crate::word::{self, Use};
use crate::words::Words;

/// Statements that change the catalog, by their first words.
const DDL: &[&str] = &[
    "alter", "call", "comment", "create", "do", "drop", "grant", "import", "reassign", "refresh",
    "revoke", "security",
];

/// Words of statements that may remove or change an existing object, or the right to see it.
const CHANGES: &[&str] = &[
    "alter", "call", "discard", "do", "drop", "grant", "import", "reassign", "revoke", "security",
];

/// Words of statements that end a transaction, and with it what lasts no longer.
const ENDS: &[&str] = &["abort", "commit", "end", "prepare", "rollback"];

/// The names of a text, each once, sorted: equal for texts that differ in their literals only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Names {
    /// All identifiers, folded; reserved words are none.
    pub all: Vec<Box<str>>,
    /// The names in statements that may run the named objects. `CREATE FUNCTION` and `DROP TABLE`
    /// do not run what they name.
    pub reached: Vec<Box<str>>,
    /// The names before a parenthesis, which may call a function.
    pub called: Vec<Box<str>>,
    /// All operators of the text.
    pub operators: Vec<Box<str>>,
    /// The word that each statement of the text begins with.
    pub verbs: Vec<Box<str>>,
    /// Settings that are set until the transaction ends (`SET LOCAL`, `set_config(.., true)`).
    pub local: Vec<Box<str>>,
    /// True if a statement may take away or change what a statement before it in the text has run.
    pub has_late_change: bool,
}

impl Names {
    /// True where a name stands anywhere in it.
    pub fn has(&self, name: &str) -> bool {
        let found = self.all.binary_search_by(|own| (**own).cmp(name));
        found.is_ok()
    }

    /// True where a name stands in a statement that may run what it means.
    pub fn reaches(&self, name: &str) -> bool {
        let found = self.reached.binary_search_by(|own| (**own).cmp(name));
        found.is_ok()
    }

    /// True where a name stands before a parenthesis.
    pub fn calls(&self, name: &str) -> bool {
        let found = self.called.binary_search_by(|own| (**own).cmp(name));
        found.is_ok()
    }

    /// True if the text may take away or change an object that was there before, or the right to
    /// see it. `is_changed`: the transaction has changed the catalog, so its end may do that too.
    pub fn may_change_what_ran(&self, is_changed: bool) -> bool {
        let replaces = self.begins_with(&["create"]) && self.has("replace");
        replaces || self.begins_with(CHANGES) || (is_changed && self.begins_with(ENDS))
    }

    /// True where a statement of the text begins with one of these words.
    pub fn begins_with(&self, verbs: &[&str]) -> bool {
        self.verbs.iter().any(|verb| verbs.contains(&&**verb))
    }
}

/// Returns the names in a text. `None` if they are uncertain: the tokens depend on settings or on
/// the server's version, or the server would change a name.
pub fn names(text: &str) -> Option<Names> {
    let mut names = Names::default();
    let backslash = collect(text, true, &mut names)?;
    if backslash {
        // A string may end elsewhere where backslashes escape: the names of either reading.
        collect(text, false, &mut names)?;
    }
    for list in [
        &mut names.all,
        &mut names.reached,
        &mut names.called,
        &mut names.operators,
        &mut names.verbs,
        &mut names.local,
    ] {
        list.sort_unstable();
        list.dedup();
    }
    Some(names)
}

fn collect(text: &str, standard: bool, names: &mut Names) -> Option<bool> {
    let tokens = Tokens::of(text, standard).ok()?;
    let list = &*tokens.list;
    let (mut first, mut runs, mut changes) = (true, true, false);
    for (at, token) in list.iter().enumerate() {
        let slice = text.get(token.start..token.end)?;
        let called = list.get(at + 1).map(|next| next.kind) == Some(Kind::Open);
        match token.kind {
            Kind::Odd => return None,
            // U&"..." spells a name by its code points.
            Kind::Special if slice.ends_with('"') => return None,
            Kind::Quoted => names.add(word::unquote(slice)?, called, runs),
            Kind::Word => {
                let behind_dot = at > 0 && list.get(at - 1)?.kind == Kind::Dot;
                let words = Words::new(text, list.get(at..).unwrap_or_default());
                if first {
                    names.verbs.push(slice.to_ascii_lowercase().into());
                    runs = !words.only_defines();
                    let has_run = !names.reached.is_empty() || !names.operators.is_empty();
                    names.has_late_change |= has_run && may_change_what_ran(words, changes);
                    // The END of a function's body is none of a transaction.
                    changes |= words.any(0, DDL) && !words.creates_with_a_body();
                }
                let of_server = || -> Option<bool> {
                    Some(!behind_dot || slice_at(text, list, at.checked_sub(2)?)? == "pg_catalog")
                };
                let local = words
                    .set_locally(first)
                    .filter(|_| of_server().unwrap_or(!behind_dot));
                if behind_dot || word::usage(slice) != Use::Reserved {
                    names.add(word::fold(slice)?, called && local.is_none(), runs);
                }
                names.local.extend(local.map(String::into_boxed_str));
            }
            Kind::Operator => names.operators.push(slice.into()),
            _ => {}
        }
        first = token.kind == Kind::Semicolon || (first && token.kind == Kind::Open);
    }
    Some(tokens.backslash)
}

/// As [`Names::may_change_what_ran`], of the statement that begins here.
fn may_change_what_ran(words: Words<'_>, is_changed: bool) -> bool {
    let replaces = words.is(0, "create") && words.is(1, "or") && words.is(2, "replace");
    replaces || words.any(0, CHANGES) || (is_changed && words.any(0, ENDS))
}

fn slice_at<'a>(text: &'a str, tokens: &[Token], at: usize) -> Option<&'a str> {
    let token = tokens.get(at)?;
    text.get(token.start..token.end)
}

impl Names {
    fn add(&mut self, name: String, called: bool, runs: bool) {
        let name = name.into_boxed_str();
        if called && runs {
            self.called.push(name.clone());
        }
        if runs {
            self.reached.push(name.clone());
        }
        self.all.push(name);
    }
}

/// True for a built-in function (in `pg_catalog`) that leaves nothing behind in the session that
/// calls it, or nothing but what the session can be asked for: values of sequences, advisory locks.
pub fn leaves_nothing_hidden(function: &str) -> bool {
    effect::is_listed(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[Box<str>]) -> Vec<&str> {
        names.iter().map(|name| &**name).collect()
    }

    #[test]
    fn all_that_a_text_names_is_found_once() {
        let names = names(
            "SELECT a.Total, \"Odd\" (1), f(x) FROM s.t AS a WHERE x @@ 'a;b' AND y = $1; call p()",
        )
        .unwrap();
        assert_eq!(
            list(&names.all),
            ["Odd", "a", "call", "f", "p", "s", "t", "total", "x", "y"]
        );
        assert_eq!(list(&names.called), ["Odd", "f", "p"]);
        assert_eq!(list(&names.operators), ["=", "@@"]);
        assert_eq!(list(&names.verbs), ["call", "select"]);
        assert!(names.has("total") && names.calls("f") && !names.calls("x"));
        assert!(names.begins_with(&["call"]) && !names.begins_with(&["do"]));
    }

    #[test]
    fn what_only_defines_reaches_nothing() {
        for text in [
            "create or replace function f(a int default g()) returns trigger language plpgsql as $$x$$",
            "create constraint trigger c after insert on t for each row when (g()) execute function f()",
            "create trigger c before insert or update on t for each row execute procedure f()",
            "create table t (id int default g() check (g() > 0), n bigint generated always as identity)",
            "create view v as select f()",
            "drop function if exists f()",
            "alter function f() strict",
            "comment on table t is 'x'",
            "grant insert on t to u",
        ] {
            let names = names(text).unwrap();
            assert_eq!(list(&names.reached), [""; 0], "{text}");
            assert_eq!(list(&names.called), [""; 0], "{text}");
            assert!(names.all.len() > 1, "{text}");
        }
        for (text, reached) in [
            ("create table t as select f()", &["f"][..]),
            (
                "create table t partition of p for values from (f()) to (2)",
                &["f"],
            ),
            (
                "create table t (a int, b int generated always as (f(a)) stored)",
                &["f"],
            ),
            ("create index i on t (f(a))", &["f", "t"]),
            ("alter table t add a int default f()", &["f", "t"]),
            ("alter domain d add check (f(value))", &["f"]),
            (
                "create table t (a int); insert into u values (f())",
                &["f", "u"],
            ),
            ("select f(); drop table t", &["f"]),
            ("create extension e", &["e"]),
            (
                "create function f() begin atomic select g(); select h(); end",
                &["h"],
            ),
        ] {
            let names = names(text).unwrap();
            for name in reached {
                assert!(names.reaches(name), "{name} in {text}");
            }
        }
    }

    #[test]
    fn a_change_of_what_has_run_is_seen_in_its_place() {
        for text in [
            "select f(); drop function f",
            "begin; insert into t values (1); alter table t disable trigger all; commit",
            "select f(); create or replace function f() returns int language sql as 'select 1'",
            "create function f() returns int language sql as 'select 1'; select f(); rollback",
            "select 1 operator(s.+) 2; revoke usage on schema s from u",
            "select f(); do $$ begin end $$",
            "insert into t values (1); discard temp",
        ] {
            assert!(names(text).unwrap().has_late_change, "{text}");
        }
        for text in [
            "drop function f; select f()",
            "begin; insert into t values (1); rollback",
            "insert into t values (1); create table u (id int)",
            "insert into t values (1); rollback to a; select 1",
            "select f()",
            "create table t (id int); create index on t (id)",
        ] {
            assert!(!names(text).unwrap().has_late_change, "{text}");
        }
    }

    #[test]
    fn literals_make_no_difference_and_riddles_are_not_guessed() {
        let of = |text| names(text);
        assert_eq!(of("select 1 from t"), of("SELECT 22 FROM t"));
        assert_eq!(of("select U&\"d!0061t\" from t"), None);
        assert_eq!(of("select 'open"), None);
        assert_eq!(names(&format!("select {}", "a".repeat(64))), None);
        // Either end of a string.
        assert_eq!(of(r"select 'a\', f(1), 'b'"), None);
        assert!(of(r"select 'a\', f(1), 'b\'").is_none_or(|names| names.calls("f")));
    }

    #[test]
    fn what_ends_with_the_transaction_is_told_apart() {
        for (text, local, calls) in [
            ("SET LOCAL app.Tenant = '1'", &["app.tenant"][..], false),
            ("set local work_mem = '1MB'", &["work_mem"], false),
            ("set local role a", &["role"], false),
            ("select set_config('App.a', $1, true)", &["app.a"], false),
            (
                "select set_config('a.b', f(1, ')'), TRUE), pg_catalog.set_config('c.d', $1, true)",
                &["a.b", "c.d"],
                false,
            ),
            ("select set_config('role', $1, true)", &["role"], false),
            ("select set_config('a.b', $1, $2)", &[], true),
            ("select set_config($1, $2, true)", &[], true),
            ("select set_config('a.b', '1', false)", &[], true),
            (
                "select set_config('a.b', '1', true), set_config('a', '1', false)",
                &["a.b"],
                true,
            ),
            ("select set_config('a.b', '1', true or false)", &[], true),
            ("select other.set_config('a.b', '1', true)", &[], true),
        ] {
            let names = names(text).unwrap();
            assert_eq!(list(&names.local), local, "{text}");
            assert_eq!(names.calls("set_config"), calls, "{text}");
        }
    }

    #[test]
    fn functions_that_hide_something_are_not_listed() {
        for function in ["lower", "nextval", "pg_advisory_lock", "pg_notify"] {
            assert!(leaves_nothing_hidden(function), "{function}");
        }
        for function in [
            "set_config",
            "setseed",
            "query_to_xml",
            "lo_import",
            "ts_rewrite",
        ] {
            assert!(!leaves_nothing_hidden(function), "{function}");
        }
    }
}
