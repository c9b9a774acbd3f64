//! What a statement leaves behind in its session, read off its tokens.
//!
//! Every call of a function has a parenthesis behind the function's name, so a text without a name
//! that is not known to be harmless before a parenthesis calls nothing that is not. (Operators,
//! casts, views and triggers may call anything too; those who write them in such a way that they
//! change the session are not served.)

mod asking;
mod config;
mod functions;
mod sequences;
mod session;
mod utility;

pub(crate) use functions::is_listed;
pub use sequences::{Sequences, answered, sequences};

use windrow_core::statement::Expression;
use windrow_core::{Draft, Op};

use crate::lex::{Kind, Token};
use crate::parse::UNCLEAR;
use crate::reading::{Apart, Effect};
use crate::word::{self, Use};

/// The tokens of one statement.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    text: &'a str,
    tokens: &'a [Token],
}

impl<'a> Words<'a> {
    pub(crate) fn new(text: &'a str, tokens: &'a [Token]) -> Self {
        Self { text, tokens }
    }

    fn len(self) -> usize {
        self.tokens.len()
    }

    fn kind(self, at: usize) -> Kind {
        self.tokens.get(at).map_or(Kind::End, |t| t.kind)
    }

    fn slice(self, at: usize) -> &'a str {
        self.tokens
            .get(at)
            .and_then(|t| self.text.get(t.start..t.end))
            .unwrap_or_default()
    }

    /// Whether the token is this keyword.
    fn is(self, at: usize, word: &str) -> bool {
        self.kind(at) == Kind::Word && self.slice(at).eq_ignore_ascii_case(word)
    }

    fn any(self, at: usize, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(at, word))
    }

    /// Whether the keyword stands anywhere.
    fn has(self, word: &str) -> bool {
        (0..self.len()).any(|at| self.is(at, word))
    }

    /// INSERT, UPDATE or DELETE.
    pub(crate) fn writes(self) -> bool {
        self.any(0, &["insert", "update", "delete"])
    }

    /// `CREATE FUNCTION .. BEGIN ATOMIC .. END`: its semicolons end no statements of the text.
    pub(crate) fn creates_with_a_body(self) -> bool {
        self.is(0, "create") && self.has("atomic")
    }

    /// A statement that writes down, changes or takes away what others run, and runs nothing of
    /// what it names itself.
    pub(crate) fn only_defines(self) -> bool {
        let end = (0..self.len()).find(|at| self.kind(*at) == Kind::Semicolon);
        utility::only_defines(self.between(0, end.unwrap_or(self.len())))
    }

    fn from(self, at: usize) -> Self {
        Self {
            tokens: self.tokens.get(at..).unwrap_or_default(),
            ..self
        }
    }

    /// Whether the token names the schema of temporary tables.
    fn names_a_temporary_schema(self, at: usize) -> bool {
        let name = self.slice(at).trim_start_matches('"');
        let begin = name.get(..7).unwrap_or_default();
        matches!(self.kind(at), Kind::Word | Kind::Quoted) && begin.eq_ignore_ascii_case("pg_temp")
    }

    /// The tokens before the first semicolon at the end.
    fn without_end(self) -> Self {
        let last = (0..self.len()).rfind(|at| self.kind(*at) != Kind::Semicolon);
        self.between(0, last.map_or(0, |last| last + 1))
    }

    fn between(self, from: usize, to: usize) -> Self {
        Self {
            tokens: self.tokens.get(from..to).unwrap_or_default(),
            ..self
        }
    }

    /// The call in `SELECT function(arguments)`, where the text is nothing else. The function is
    /// built-in: by its schema, or by having none.
    fn only_call(self) -> Option<Call<'a>> {
        let qualified =
            self.identifier(1).as_deref() == Some("pg_catalog") && self.kind(2) == Kind::Dot;
        let at = if qualified { 3 } else { 1 };
        let function = self.identifier(at)?;
        let last = self.len().checked_sub(1).filter(|last| *last > at + 1)?;
        let is_call = self.is(0, "select")
            && self.kind(at + 1) == Kind::Open
            && self.kind(last) == Kind::Close;
        is_call.then(|| Call {
            function,
            arguments: self.between(at + 2, last),
        })
    }

    /// What a plain text literal says.
    fn text(self, at: usize) -> Option<String> {
        let inside = self.slice(at).strip_prefix('\'')?.strip_suffix('\'')?;
        let is_text = self.kind(at) == Kind::Text && !inside.contains('\\');
        is_text.then(|| inside.replace("''", "'"))
    }

    /// The identifier, folded, if it is one.
    fn identifier(self, at: usize) -> Option<String> {
        match self.kind(at) {
            Kind::Word => word::fold(self.slice(at)),
            Kind::Quoted => word::unquote(self.slice(at)),
            _ => None,
        }
    }
}

/// A call that is all that a text asks for.
struct Call<'a> {
    function: String,
    arguments: Words<'a>,
}

/// Why the statement is not joined, as far as its first words tell, and what it does.
pub(crate) fn apart(words: Words<'_>) -> Apart {
    if words.tokens.iter().any(|t| t.kind == Kind::Odd) {
        return unknown(UNCLEAR);
    }
    let first = words.slice(0).to_ascii_lowercase();
    let (reason, effect) = match (words.kind(0), first.as_str()) {
        (Kind::End, _) => ("empty", Effect::Empty),
        (Kind::Open, _) => ("SELECT", query(words)),
        (Kind::Word, first) => named(words, first),
        _ => (UNCLEAR, Effect::Unknown),
    };
    Apart { reason, effect }
}

fn unknown(reason: &'static str) -> Apart {
    Apart {
        reason,
        effect: Effect::Unknown,
    }
}

fn named(words: Words<'_>, first: &str) -> (&'static str, Effect) {
    match first {
        "select" => ("SELECT", query(words)),
        "values" => ("VALUES", query(words)),
        "table" => ("TABLE", query(words)),
        "with" => ("WITH", query(words)),
        "insert" => ("INSERT", query(words)),
        "update" => ("UPDATE", query(words)),
        "delete" => ("DELETE", query(words)),
        "merge" => ("MERGE", query(words)),
        "copy" => ("COPY", utility::copy(words)),
        "explain" => ("EXPLAIN", utility::explain(words)),
        "declare" if words.has("hold") => ("DECLARE", Effect::Unknown),
        "declare" => ("DECLARE", query(words.from(2))),
        "create" => ("CREATE", utility::create(words)),
        "alter" if words.any(1, &["table", "foreign", "materialized"]) => {
            ("ALTER", Effect::Generates)
        }
        "alter" => ("ALTER", utility::unless_temporary(words)),
        "drop" => ("DROP", Effect::Nothing),
        "comment" | "grant" | "revoke" | "truncate" | "reindex" | "cluster" | "refresh"
        | "security" | "import" | "reassign" => ("DDL", Effect::Nothing),
        "vacuum" | "analyze" | "analyse" | "checkpoint" => ("maintenance", Effect::Nothing),
        "lock" => ("LOCK", Effect::Nothing),
        "notify" => ("NOTIFY", Effect::Nothing),
        "fetch" | "move" => ("FETCH", Effect::Nothing),
        "listen" | "unlisten" => ("LISTEN", Effect::Unknown),
        "call" => ("CALL", Effect::Unknown),
        "do" => ("DO", Effect::Unknown),
        "close" => ("CLOSE", Effect::Unknown),
        "load" => ("LOAD", Effect::Unknown),
        "execute" => ("EXECUTE", Effect::Unknown),
        "deallocate" => ("DEALLOCATE", Effect::Unknown),
        _ => session::read(words, first).unwrap_or((UNCLEAR, Effect::Unknown)),
    }
}

/// Anything that reads or writes rows.
fn query(words: Words<'_>) -> Effect {
    if let Some(effect) = asking::generated(words) {
        return effect;
    }
    if let Some(effect) = config::setting(words) {
        return effect;
    }
    let mut effect = Effect::Nothing;
    for at in 0..words.len() {
        if words.names_a_temporary_schema(at) || (words.is(at, "into") && !writes_into(words, at)) {
            return Effect::Unknown;
        }
        if words.any(at, &["insert", "merge"]) {
            effect = Effect::Generates;
        }
        // A column's default may be a sequence.
        if words.is(at, "default") && words.is(0, "update") {
            effect = Effect::Generates;
        }
        if words.kind(at + 1) != Kind::Open {
            continue;
        }
        match call(words, at) {
            Effect::Nothing => {}
            Effect::Generates => effect = Effect::Generates,
            other => return other,
        }
    }
    effect
}

/// Whether the INTO at a token belongs to INSERT or MERGE, and is not that of SELECT INTO behind a
/// column that is called so.
fn writes_into(words: Words<'_>, at: usize) -> bool {
    if at == 0 || !words.any(at - 1, &["insert", "merge"]) {
        return false;
    }
    if at == 1 || words.kind(at - 2) == Kind::Open {
        return true;
    }
    // Behind WITH, the statement itself stands outside of all parentheses.
    let mut depth = 0_usize;
    for before in 0..at {
        match words.kind(before) {
            Kind::Open => depth += 1,
            Kind::Close => depth = depth.saturating_sub(1),
            _ if depth == 0 && words.any(before, &["select", "values", "table"]) => return false,
            _ => {}
        }
    }
    depth == 0 && words.is(0, "with")
}

/// What the call at a token does, if the token before a parenthesis calls anything.
fn call(words: Words<'_>, at: usize) -> Effect {
    let is_name = match words.kind(at) {
        Kind::Quoted => true,
        Kind::Word => {
            at > 0 && words.kind(at - 1) == Kind::Dot
                || match word::usage(words.slice(at)) {
                    Use::Reserved => false,
                    Use::Column => words.is(at, "treat"),
                    Use::Any | Use::Function => !functions::is_syntax(words, at),
                }
        }
        _ => false,
    };
    if !is_name {
        return Effect::Nothing;
    }
    let qualified = at > 1 && words.kind(at - 1) == Kind::Dot;
    let begin = if qualified { at - 2 } else { at };
    if declares(words, begin) {
        return Effect::Nothing;
    }
    if qualified {
        let twice = at > 2 && words.kind(at - 3) == Kind::Dot;
        if twice || words.identifier(at - 2).as_deref() != Some("pg_catalog") {
            return Effect::Unknown;
        }
    }
    match words.identifier(at) {
        Some(name) => functions::effect(&name),
        None => Effect::Unknown,
    }
}

/// Whether a name before a parenthesis is declared there rather than called: `INSERT INTO t (..)`,
/// `WITH t (..)`, `AS t (..)`.
fn declares(words: Words<'_>, at: usize) -> bool {
    match at {
        0 => false,
        1 => words.is(0, "with"),
        _ => {
            words.any(at - 1, &["into", "as"])
                || (at == 2 && words.is(0, "with") && words.is(1, "recursive"))
        }
    }
}

/// What a statement that could be joined does when it goes to the server by itself.
pub(crate) fn of_draft(draft: &Draft) -> Effect {
    let generates = draft.op == Op::Insert
        || draft
            .assignments
            .iter()
            .any(|(_, value)| *value == Expression::Default);
    let mut effect = if generates {
        Effect::Generates
    } else {
        Effect::Nothing
    };
    for function in &draft.functions {
        let built_in = function
            .schema
            .as_deref()
            .is_none_or(|schema| schema == "pg_catalog");
        match functions::effect(&function.table) {
            _ if !built_in => return Effect::Unknown,
            Effect::Nothing => {}
            Effect::Generates => effect = Effect::Generates,
            other => return other,
        }
    }
    effect
}

/// What several statements do together.
pub(crate) fn several(effects: Vec<Effect>) -> Effect {
    let plain =
        |effect: &Effect| matches!(effect, Effect::Nothing | Effect::Generates | Effect::Empty);
    if !effects.iter().all(plain) {
        return Effect::Several(effects.into());
    }
    if effects.contains(&Effect::Generates) {
        Effect::Generates
    } else {
        Effect::Nothing
    }
}
