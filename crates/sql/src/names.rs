//! The names that stand in a text: what a statement runs besides itself can only be reached by one
//! of them.
//!
//! A table brings its triggers, defaults and policies, a view its query, a function its body, an
//! operator its function. Who asks the catalog for everything of these names, in whatever schema,
//! has asked for all that the text can mean.

use crate::kinds::{self, Property};
use crate::lex::{Token, TokenKind};
use crate::parse::Tokens;
use crate::word::{self, Use};
use crate::words::Words;

/// The words of statements that write rows, which may stand in others.
const WRITING: [&str; 4] = ["insert", "update", "delete", "merge"];

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
    /// The word that each statement of the text begins with, and `create` for a SELECT INTO.
    pub verbs: Vec<Box<str>>,
    /// Settings that are set until the transaction ends (`SET LOCAL`, `set_config(.., true)`).
    pub local: Vec<Box<str>>,
    /// True if a statement may take away or change what a statement before it in the text has run.
    pub has_late_change: bool,
    /// True if the text may itself take values from sequences: by their functions, by defaults of
    /// columns, or by a text that it runs. Triggers, views and functions are not counted.
    pub may_generate: bool,
}

impl Names {
    /// Returns true if a name stands anywhere in the text.
    pub fn has(&self, name: &str) -> bool {
        let found = self.all.binary_search_by(|own| (**own).cmp(name));
        found.is_ok()
    }

    /// Returns true if a name stands in a statement that may run what it means.
    pub fn reaches(&self, name: &str) -> bool {
        let found = self.reached.binary_search_by(|own| (**own).cmp(name));
        found.is_ok()
    }

    /// Returns true if a name stands before a parenthesis.
    pub fn calls(&self, name: &str) -> bool {
        let found = self.called.binary_search_by(|own| (**own).cmp(name));
        found.is_ok()
    }

    /// Returns true if the text may take away or change an object that was there before, or the
    /// right to see it. `is_changed`: the transaction has changed the catalog, so its end may do
    /// that too.
    pub fn may_change_what_ran(&self, is_changed: bool) -> bool {
        let replaces = self.begins_with(&["create"]) && self.has("replace");
        replaces || self.any(Property::TakesAway) || (is_changed && self.any(Property::Ends))
    }

    /// Returns true if a statement of the text begins with one of these words.
    pub fn begins_with(&self, verbs: &[&str]) -> bool {
        self.verbs.iter().any(|verb| verbs.contains(&&**verb))
    }

    /// Returns true if a statement of the text has a property.
    pub fn any(&self, property: Property) -> bool {
        self.verbs.iter().any(|verb| kinds::has(verb, property))
    }

    /// Returns true if each statement of the text has one of these properties.
    pub fn all_are(&self, properties: &[Property]) -> bool {
        let is_one = |verb: &str| properties.iter().any(|one| kinds::has(verb, *one));
        self.verbs.iter().all(|verb| is_one(verb))
    }

    /// Returns true if PostgreSQL has each kind of statement in the text.
    pub fn are_known(&self) -> bool {
        self.verbs.iter().all(|verb| kinds::kind(verb).is_some())
    }

    /// Returns true if the text may write.
    pub fn writes(&self) -> bool {
        !self.all_are(&[Property::Reads, Property::RunsNothing])
            || WRITING.iter().any(|word| self.reaches(word))
    }

    /// Returns true if the text calls a function that leaves nothing in its session and writes all
    /// the same: a notification, or large objects.
    pub fn calls_writing(&self) -> bool {
        let is_one =
            |name: &str| name.starts_with("lo_") || matches!(name, "lowrite" | "pg_notify");
        self.called.iter().any(|name| is_one(name))
    }

    /// Returns true if the text may write rows, by its words.
    pub fn writes_rows(&self) -> bool {
        self.any(Property::WritesRows) || WRITING.iter().any(|word| self.has(word))
    }

    /// Returns true if all statements of the text are of kinds that run no code.
    pub fn runs_nothing(&self) -> bool {
        self.called.is_empty() && self.all_are(&[Property::RunsNothing])
    }

    /// Returns true if the text may leave, or remove, something that PostgreSQL shows to its
    /// session: temporary objects, prepared statements, channels, cursors, advisory locks,
    /// settings.
    pub fn keeps(&self) -> bool {
        let word = |name: &str| {
            matches!(name, "temp" | "temporary" | "hold")
                || name.starts_with("pg_temp")
                || name.starts_with("pg_advisory_")
                || name.starts_with("pg_try_advisory_")
        };
        self.any(Property::Keeps) || self.all.iter().any(|name| word(name))
    }

    /// Returns true if the text may change what the catalog says.
    pub fn changes_catalog(&self) -> bool {
        self.any(Property::Defines) || self.any(Property::Calls)
    }

    /// Returns true for `DROP DATABASE` and its kin, which want no other session in the database.
    pub fn is_about_database(&self) -> bool {
        self.begins_with(&["alter", "create", "drop"]) && self.has("database")
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
    names.may_generate |= names.calls("nextval") || names.calls("setval");
    Some(names)
}

fn collect(text: &str, standard: bool, names: &mut Names) -> Option<bool> {
    let tokens = Tokens::of(text, standard).ok()?;
    let list = &*tokens.list;
    let (mut begin, mut first, mut runs, mut changes) = (0, true, true, false);
    for (at, token) in list.iter().enumerate() {
        let slice = text.get(token.start..token.end)?;
        let called = list.get(at + 1).map(|next| next.kind) == Some(TokenKind::Open);
        match token.kind {
            TokenKind::Odd => return None,
            // U&"..." spells a name by its code points.
            TokenKind::Special if slice.ends_with('"') => return None,
            TokenKind::Quoted => names.add(word::unquote(slice)?, called, runs),
            TokenKind::Word => {
                let behind_dot = at > 0 && list.get(at - 1)?.kind == TokenKind::Dot;
                let words = Words::new(text, list.get(at..).unwrap_or_default());
                if first {
                    begin = at;
                    runs = !words.only_defines();
                    names.begin(words, runs, changes);
                    // The END of a function's body is none of a transaction.
                    changes |= may_change_catalog(words) && !words.creates_with_a_body();
                }
                if words.is(0, "into") && runs {
                    let statement = Words::new(text, list.get(begin..).unwrap_or_default());
                    let makes_a_table = !statement.writes_into(at - begin);
                    names.verbs.extend(makes_a_table.then(|| "create".into()));
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
            TokenKind::Operator => names.operators.push(slice.into()),
            _ => {}
        }
        first = token.kind == TokenKind::Semicolon || (first && token.kind == TokenKind::Open);
    }
    Some(tokens.backslash)
}

/// As [`Names::may_change_what_ran`], of the statement that begins here.
fn may_change_what_ran(words: Words<'_>, is_changed: bool) -> bool {
    let replaces = words.is(0, "create") && words.is(1, "or") && words.is(2, "replace");
    let first = words.slice(0).to_ascii_lowercase();
    replaces
        || kinds::has(&first, Property::TakesAway)
        || (is_changed && kinds::has(&first, Property::Ends))
}

fn may_change_catalog(words: Words<'_>) -> bool {
    let first = words.slice(0).to_ascii_lowercase();
    kinds::has(&first, Property::Defines) || kinds::has(&first, Property::Calls)
}

/// Returns true if the statement that begins here may take values from sequences by defaults of
/// columns, or runs a text that is elsewhere.
fn may_use_defaults(words: Words<'_>) -> bool {
    let words = words.first_statement();
    let fills = words.has("insert") || words.has("merge");
    let copies = words.is(0, "copy") && words.kind(1) != TokenKind::Open && words.has("from");
    let resets = words.has("update") && words.has("default");
    let adds = words.is(0, "alter") && words.any(1, &["table", "foreign", "materialized"]);
    let runs_a_script = words.is(0, "create") && words.is(1, "extension");
    let runs_another = words.any(0, &["call", "do"]) || words.has("execute");
    fills || copies || resets || adds || runs_a_script || runs_another
}

fn slice_at<'a>(text: &'a str, tokens: &[Token], at: usize) -> Option<&'a str> {
    let token = tokens.get(at)?;
    text.get(token.start..token.end)
}

impl Names {
    /// Notes the statement that begins here. `runs`: it may run what it names. `is_changed`: a
    /// statement before it may have changed the catalog.
    fn begin(&mut self, words: Words<'_>, runs: bool, is_changed: bool) {
        self.verbs.push(words.slice(0).to_ascii_lowercase().into());
        let has_run = !self.reached.is_empty() || !self.operators.is_empty();
        self.has_late_change |= has_run && may_change_what_ran(words, is_changed);
        self.may_generate |= runs && may_use_defaults(words);
    }

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
    fn values_are_taken_by_functions_and_by_defaults() {
        for text in [
            "INSERT INTO t VALUES (1)",
            "UPDATE t SET a = DEFAULT WHERE id = 1",
            "MERGE INTO t USING x ON (t.a = x.a) WHEN NOT MATCHED THEN INSERT (a) VALUES (1)",
            "WITH x AS (INSERT INTO t (a) VALUES (1) RETURNING a) SELECT * FROM x",
            "WITH x AS (UPDATE t SET a = DEFAULT RETURNING a) SELECT * FROM x",
            "SELECT nextval('s')",
            "SELECT pg_catalog.setval('s', 1)",
            "CREATE TABLE t AS SELECT nextval('s')",
            "COPY t FROM STDIN",
            "EXPLAIN ANALYZE INSERT INTO t VALUES (1)",
            "ALTER TABLE t ADD COLUMN a serial",
            "SELECT 1; INSERT INTO t VALUES (1)",
            "EXPLAIN ANALYZE EXECUTE p",
            "CREATE TABLE t AS EXECUTE p",
        ] {
            assert!(names(text).unwrap().may_generate, "{text}");
        }
        for text in [
            "SELECT 1 FROM t FOR UPDATE",
            "UPDATE t SET a = 1 WHERE id = 1",
            "DELETE FROM t",
            "COPY t TO STDOUT",
            "COPY (SELECT 1 FROM t) TO STDOUT",
            "CREATE TABLE t (a serial, b int default nextval('s'))",
            "CREATE INDEX i ON t (f(a))",
            "DROP TABLE t; SELECT 'nextval('",
            "BEGIN; UPDATE t SET a = 1; COMMIT",
        ] {
            assert!(!names(text).unwrap().may_generate, "{text}");
        }
    }

    #[test]
    fn a_select_into_makes_a_table() {
        for text in [
            "SELECT 1 INTO x",
            "WITH a AS (SELECT 1) SELECT * INTO TEMP x FROM a",
            "SELECT insert INTO x FROM t",
            "BEGIN; SELECT 1 INTO x; COMMIT",
        ] {
            let names = names(text).unwrap();
            assert!(names.changes_catalog() && names.writes(), "{text}");
        }
        for text in [
            "INSERT INTO t VALUES (1)",
            "WITH a AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM a",
            "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
            "MERGE INTO t USING x ON true WHEN MATCHED THEN DELETE",
            "EXPLAIN INSERT INTO t VALUES (1)",
        ] {
            assert!(!names(text).unwrap().changes_catalog(), "{text}");
        }
    }

    #[test]
    fn texts_that_write_are_distinguished_from_texts_that_read() {
        for text in [
            "select 1",
            "(table t)",
            "with a as (select 1) select * from a",
            "begin; select 1; commit",
            "set timezone = 'UTC'",
            "show timezone",
        ] {
            assert!(!names(text).unwrap().writes(), "{text}");
        }
        for text in [
            "with a as (delete from t returning 1) select * from a",
            "select * from t for update",
            "insert into t values (1)",
            "copy t to stdout",
            "begin; truncate t; commit",
        ] {
            assert!(names(text).unwrap().writes(), "{text}");
        }
    }

    #[test]
    fn state_that_postgresql_shows_to_its_session_is_found() {
        for text in [
            "create temp table t ()",
            "create table pg_temp.t ()",
            "select pg_try_advisory_lock(1)",
            "declare c cursor with hold for select 1",
            "listen c",
            "prepare p as select 1",
        ] {
            assert!(names(text).unwrap().keeps(), "{text}");
        }
        for text in ["select count(*) from t", "insert into t values (1)"] {
            assert!(!names(text).unwrap().keeps(), "{text}");
        }
    }
}
