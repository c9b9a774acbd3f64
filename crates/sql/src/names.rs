//! The names in a text. Whatever a statement runs beyond itself can only be reached by one of them.
//!
//! A table brings its triggers, defaults and policies, a view its query, a function its body, an
//! operator its function. The PostgreSQL frontend looks up all objects with these names in the
//! catalog, in any schema, because the text cannot mean others.

use std::cell::LazyCell;

use crate::ddl::only_defines;
use crate::effect::set_locally;
use crate::into::PassedPart;
use crate::kinds::{self, Property, PropertySet};
use crate::lex::{Token, TokenKind};
use crate::parentheses::Parentheses;
use crate::primary;
use crate::text::Text;
use crate::tokens::Tokens;
use crate::word::{self, Use};
use crate::words::Words;

/// The words of statements that write rows, which may occur within others.
const WRITING: [&str; 4] = ["insert", "update", "delete", "merge"];

/// Functions of the server, and words before a parenthesis, that give the same for the same rows in
/// any transaction.
#[rustfmt::skip]
const PURE: [&str; 68] = [
    "abs", "array_agg", "array_length", "avg", "bit", "bool_and", "bool_or", "btrim", "ceil",
    "ceiling", "char", "char_length", "character", "coalesce", "concat", "concat_ws", "count",
    "date_part", "date_trunc", "dec", "decimal", "dense_rank", "every", "exists", "extract",
    "filter", "floor", "greatest", "json_agg", "json_array_length", "json_build_object",
    "jsonb_agg", "jsonb_array_length", "jsonb_build_object", "least", "left", "length", "lower",
    "lpad", "ltrim", "max", "min", "mod", "nullif", "numeric", "over", "position", "rank",
    "replace", "right", "round", "row", "row_number", "rpad", "rtrim", "split_part", "string_agg",
    "substr", "substring", "sum", "time", "timestamp", "trim", "trunc", "unnest", "upper",
    "values", "varchar",
];

/// The names of a text, each once, sorted. They are equal for texts that differ only in their
/// literals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Names {
    /// All identifiers, folded. Reserved words are not identifiers.
    pub all: Vec<Box<str>>,
    /// The names in statements that may run the named objects. `CREATE FUNCTION` and `DROP TABLE`
    /// do not run what they name.
    pub reached: Vec<Box<str>>,
    /// The names before a parenthesis, which may call a function.
    pub called: Vec<Box<str>>,
    /// All operators of the text.
    pub operators: Vec<Box<str>>,
    /// The first word of each statement of the text, and `create` for a SELECT INTO.
    pub verbs: Vec<Box<str>>,
    /// The properties of the statements that each of these words begins.
    properties: Vec<PropertySet>,
    /// Settings that are set until the transaction ends (`SET LOCAL`, `set_config(.., true)`).
    pub local: Vec<Box<str>>,
    /// True if a statement may remove or change what a statement before it in the text has run.
    pub has_late_change: bool,
    /// True if the text may itself take values from sequences: by their functions, by defaults of
    /// columns, or by a text that it runs. Triggers, views and functions do not count.
    pub may_generate: bool,
    /// True if the text may ask when its transaction began.
    pub asks_time: bool,
}

impl Names {
    /// Returns true if a name occurs anywhere in the text.
    pub fn has(&self, name: &str) -> bool {
        let found = self.all.binary_search_by(|own| (**own).cmp(name));
        found.is_ok()
    }

    /// Returns true if a name occurs in a statement that may run the named object.
    pub fn reaches(&self, name: &str) -> bool {
        let found = self.reached.binary_search_by(|own| (**own).cmp(name));
        found.is_ok()
    }

    /// Returns true if a name occurs before a parenthesis.
    pub fn calls(&self, name: &str) -> bool {
        let found = self.called.binary_search_by(|own| (**own).cmp(name));
        found.is_ok()
    }

    /// Returns true if the text may remove or change an object that existed before, or the right to
    /// see it. `is_changed` is true if the transaction has changed the catalog, so that its end may
    /// do that too.
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
        let mut kinds = self.properties.iter();
        kinds.any(|kind| kind.has_one(&[property]))
    }

    /// Returns true if each statement of the text has one of these properties.
    pub fn all_are(&self, properties: &[Property]) -> bool {
        self.properties.iter().all(|kind| kind.has_one(properties))
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

    /// Returns true if the text calls a function that leaves nothing in its session but writes: a
    /// notification, or large objects.
    pub fn calls_writing(&self) -> bool {
        let is_one =
            |name: &str| name.starts_with("lo_") || matches!(name, "lowrite" | "pg_notify");
        self.called.iter().any(|name| is_one(name))
    }

    /// Returns true for queries that, as far as the text shows, return the same rows within their
    /// transaction as by themselves, and lock none. The objects that they name may do more.
    pub fn only_queries(&self) -> bool {
        let are = |names: &[Box<str>], known: &[&str]| {
            let mut names = names.iter();
            names.all(|name| known.binary_search(&&**name).is_ok())
        };
        are(&self.verbs, &["select", "table", "values", "with"])
            && are(&self.called, &PURE)
            && !self.writes()
            && !self.has("share")
            && !self.asks_time
            && !self.may_generate
    }

    /// Returns true for a text that takes values from sequences and does nothing else.
    pub fn only_generates(&self) -> bool {
        let mut reached = self.reached.iter();
        matches!(&*self.called, [nextval] if **nextval == *"nextval")
            && matches!(&*self.verbs, [verb] if **verb == *"select")
            && self.operators.is_empty()
            && reached.all(|name| matches!(&**name, "nextval" | "pg_catalog" | "regclass"))
    }

    /// Returns true if the words of the text may write rows.
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

    /// Returns true if the text may change the catalog.
    pub fn changes_catalog(&self) -> bool {
        self.any(Property::Defines) || self.any(Property::Calls)
    }

    /// Returns true for statements such as `DROP DATABASE`, which need the database without other
    /// sessions.
    pub fn is_about_database(&self) -> bool {
        self.begins_with(&["alter", "create", "drop"]) && self.has("database")
    }
}

/// Returns the names in a text. `None` if they are uncertain: the tokens depend on settings or on
/// the server's version, or the server would change a name.
pub fn names(text: &str) -> Option<Names> {
    Text::read(text, read)
}

fn read(text: Text<'_>) -> Option<Names> {
    let mut names = Names::default();
    let backslash = collect(text, true, &mut names)?;
    if backslash {
        // A string may end elsewhere if backslashes escape, so the names of both readings are
        // collected.
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
        once_each(list);
    }
    let kinds = names.verbs.iter();
    names.properties = kinds.map(|verb| PropertySet::of_kind(verb)).collect();
    names.may_generate |= names.calls("nextval") || names.calls("setval");
    Some(names)
}

fn collect(text: Text<'_>, standard: bool, names: &mut Names) -> Option<bool> {
    let tokens = Tokens::without_rows(text, standard).ok()?;
    let (text, list) = (text.as_str(), &*tokens.list);
    let all = Words::new(text, list);
    let parentheses = LazyCell::new(|| Parentheses::of(all));
    let (mut begin, mut first, mut runs, mut changes) = (0, true, true, false);
    let (last_body, mut passed) = (all.last("atomic"), PassedPart::default());
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
                let words = all.from(at);
                if first {
                    (begin, passed) = (at, PassedPart::default());
                    runs = !only_defines(words);
                    names.begin(words, runs, changes);
                    // The END of a function's body does not end a transaction.
                    let has_body = words.is(0, "create") && last_body >= Some(at);
                    changes |= may_change_catalog(words) && !has_body;
                }
                let is_into = words.is(0, "into") && runs;
                if is_into && !passed.writes_into(all.from(begin), at - begin) {
                    note(&mut names.verbs, "create".into());
                }
                let of_server = || -> Option<bool> {
                    Some(!behind_dot || slice_at(text, list, at.checked_sub(2)?)? == "pg_catalog")
                };
                let end = || parentheses.end_of(at + 1).map(|end| end - at);
                let local =
                    set_locally(words, first, end).filter(|_| of_server().unwrap_or(!behind_dot));
                names.asks_time |= !behind_dot && primary::is_clock(slice);
                if behind_dot || word::usage(slice) != Use::Reserved {
                    names.add(word::fold(slice)?, called && local.is_none(), runs);
                }
                if let Some(local) = local {
                    note(&mut names.local, local.into());
                }
            }
            TokenKind::Operator => note(&mut names.operators, slice.into()),
            _ => {}
        }
        passed.pass(all, at);
        first = token.kind == TokenKind::Semicolon || (first && token.kind == TokenKind::Open);
    }
    Some(tokens.backslash)
}

/// Adds a name. Before a full list grows, repeated names are removed. Then it gets room for as many
/// names again, so that it is not sorted for each name.
fn note(list: &mut Vec<Box<str>>, name: Box<str>) {
    if list.len() == list.capacity() {
        once_each(list);
        list.reserve(list.len());
    }
    list.push(name);
}

fn once_each(list: &mut Vec<Box<str>>) {
    list.sort_unstable();
    list.dedup();
}

/// Does what [`Names::may_change_what_ran`] does, for the statement that begins here.
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
/// columns, or runs a text from elsewhere.
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
    /// Notes the statement that begins here. `runs` is true if it may run what it names,
    /// `is_changed` if a statement before it may have changed the catalog.
    fn begin(&mut self, words: Words<'_>, runs: bool, is_changed: bool) {
        note(&mut self.verbs, words.slice(0).to_ascii_lowercase().into());
        let has_run = !self.reached.is_empty() || !self.operators.is_empty();
        self.has_late_change |= has_run && may_change_what_ran(words, is_changed);
        self.may_generate |= runs && may_use_defaults(words);
    }

    fn add(&mut self, name: String, called: bool, runs: bool) {
        let name = name.into_boxed_str();
        if called && runs {
            note(&mut self.called, name.clone());
        }
        if runs {
            note(&mut self.reached, name.clone());
        }
        note(&mut self.all, name);
    }
}

#[cfg(test)]
mod tests;
