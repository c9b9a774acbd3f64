//! The effect of a relayed statement on its session, as far as joined writes depend on it.
//!
//! A text is read once, from its beginning to its end, without keeping its tokens: it may be a
//! large INSERT.

use super::functions::{CallKind, call};
use super::modes::Modes;
use super::reader::{EXECUTABLE, Reader, SEVERAL};
use super::reserved::is_reserved;
use super::scanner::Scanner;
use super::settings::{self, SessionEffect};
use crate::lex::{Token, TokenKind};
use crate::parse::{Refusal, UNCLEAR};
use crate::text::Text;
use crate::word::listed;

const STORED: Refusal = "a function that may be stored";
const GIVEN_ID: Refusal = "LAST_INSERT_ID with a value";

/// Words, besides the reserved ones, that do not call a function although a parenthesis follows.
const NO_CALLS: [&str; 13] = [
    "against",
    "any",
    "columns",
    "datetime",
    "escape",
    "indexes",
    "nchar",
    "offset",
    "returning",
    "rollup",
    "row",
    "some",
    "value",
];

/// Returns the effect of a text that is executed or prepared.
pub fn effect(text: &str, modes: Modes) -> SessionEffect {
    Text::read(text, |text| in_mode(text, modes))
}

fn in_mode(text: Text<'_>, modes: Modes) -> SessionEffect {
    found(text, modes).unwrap_or_else(SessionEffect::Unknown)
}

/// Returns the worst effect that a text may have under any `sql_mode`, for a session whose
/// `sql_mode` is unknown.
pub fn effect_in_any_mode(text: &str, is_mariadb: bool) -> SessionEffect {
    Text::read(text, |text| in_any_mode(text, is_mariadb))
}

fn in_any_mode(text: Text<'_>, is_mariadb: bool) -> SessionEffect {
    let mut worst = SessionEffect::Nothing;
    for (ansi_quotes, no_backslash_escapes) in
        [(false, false), (true, false), (false, true), (true, true)]
    {
        let may_differ =
            (!ansi_quotes || text.contains('"')) && (!no_backslash_escapes || text.contains('\\'));
        if !may_differ {
            continue;
        }
        let modes = Modes {
            ansi_quotes,
            no_backslash_escapes,
            is_mariadb,
        };
        worst = worst.and(in_mode(text, modes));
    }
    worst
}

fn found(text: Text<'_>, modes: Modes) -> Result<SessionEffect, Refusal> {
    let head = Head::read(text, modes)?;
    let is = |at, word: &str| head.is(at, word);
    let first = head.word(0).to_ascii_lowercase();
    let (calls, effect) = match &*first {
        "" | ";" if text.len() == head.end => return Ok(SessionEffect::Nothing),
        "(" | "select" | "with" | "table" | "values" | "do" => (Calls::Query, Ok(())),
        "insert" | "replace" => (Calls::Insert, Ok(())),
        "update" | "delete" => (Calls::Write, Ok(())),
        "create" if head.has("temporary") => (Calls::Ignored, Err("a temporary table")),
        "analyze" => (Calls::Query, Ok(())),
        "create" | "explain" | "describe" | "desc" => (Calls::Behind("select"), Ok(())),
        "load" => (Calls::Behind("set"), Ok(())),
        "begin" if is(1, "not") => (Calls::Ignored, Err("a compound statement")),
        "begin" if !head.word(1).is_empty() && !is(1, "work") && !is(1, ";") => {
            (Calls::Ignored, Err("a compound statement"))
        }
        "drop" if is(1, "database") || is(1, "schema") => {
            return single(text, modes, Calls::Ignored).map(|()| SessionEffect::Settings);
        }
        "use" => return single(text, modes, Calls::Ignored).map(|()| SessionEffect::Settings),
        "set" => {
            single(text, modes, Calls::Query)?;
            return settings::set(&mut Reader::new(text, modes)?);
        }
        "lock" | "backup" => (Calls::Ignored, Err("locks of tables")),
        "flush" => (Calls::Ignored, flush(text, modes)),
        "handler" => (Calls::Ignored, Err("HANDLER")),
        "prepare" | "execute" | "deallocate" => (Calls::Ignored, Err("PREPARE in a text")),
        "call" => (Calls::Ignored, Err("CALL")),
        "xa" => (Calls::Ignored, Err("XA")),
        "binlog" => (Calls::Ignored, Err("BINLOG")),
        "if" | "case" | "loop" | "while" | "repeat" | "for" | "declare" => {
            (Calls::Ignored, Err("a compound statement"))
        }
        word if listed(&HARMLESS, word) => (Calls::Ignored, Ok(())),
        _ => (Calls::Ignored, Err("a statement that is not known")),
    };
    effect?;
    single(text, modes, calls).map(|()| SessionEffect::Nothing)
}

/// First words of statements that leave nothing in their session.
#[rustfmt::skip]
const HARMLESS: [&str; 34] = [
    "alter", "begin", "cache", "change", "check", "checksum", "clone", "commit", "drop",
    "get", "grant", "help", "import", "install", "kill", "optimize", "purge", "release", "rename",
    "repair", "reset", "resignal", "restart", "revoke", "rollback", "savepoint", "show",
    "shutdown", "signal", "start", "stop", "truncate", "uninstall", "unlock",
];

/// Refuses FLUSH that locks tables.
fn flush(text: Text<'_>, modes: Modes) -> Result<(), Refusal> {
    let reader = Reader::new(text, modes)?;
    let mut at = 0;
    while reader.kind_at(at) != TokenKind::End {
        if reader.is_any_at(at, &["lock", "export"]) {
            return Err("locks of tables");
        }
        at += 1;
    }
    Ok(())
}

/// The first words of a text.
struct Head<'a> {
    text: &'a str,
    words: [Token; 4],
    /// The end of the first token.
    end: usize,
}

impl<'a> Head<'a> {
    fn read(text: Text<'a>, modes: Modes) -> Result<Self, Refusal> {
        let mut scanner = Scanner::new(text, modes).map_err(|_| UNCLEAR)?;
        let mut token = || scanner.token().map_err(|_| UNCLEAR);
        let words = [token()?, token()?, token()?, token()?];
        if scanner.has_executable {
            return Err(EXECUTABLE);
        }
        let [first, ..] = words;
        Ok(Self {
            text: text.as_str(),
            words,
            end: first.end,
        })
    }

    fn word(&self, at: usize) -> &'a str {
        let token = self.words.get(at);
        token
            .and_then(|token| self.text.get(token.start..token.end))
            .unwrap_or_default()
    }

    fn is(&self, at: usize, word: &str) -> bool {
        self.word(at).eq_ignore_ascii_case(word)
    }

    fn has(&self, word: &str) -> bool {
        (0..self.words.len()).any(|at| self.is(at, word))
    }
}

/// The part of a text whose calls of functions are checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    /// All of a query.
    Query,
    /// All of a write, whose answer tells which id it set.
    Write,
    /// Like a write, from the end of the columns on.
    Insert,
    /// The part after a word.
    Behind(&'static str),
    /// No part.
    Ignored,
}

/// Checks that a text is one statement without parts that the server alone understands, and that
/// it calls no function that may be stored.
fn single(text: Text<'_>, modes: Modes, calls: Calls) -> Result<(), Refusal> {
    let mut scanner = Scanner::new(text, modes).map_err(|_| UNCLEAR)?;
    let mut check = Check {
        text: text.as_str(),
        modes,
        is_query: calls == Calls::Query,
        is_on: matches!(calls, Calls::Query | Calls::Write | Calls::Insert),
        is_before_columns: calls == Calls::Insert,
        is_in_with: false,
        last: [None; 2],
        depth: 0,
    };
    let mut has_ended = false;
    loop {
        let token = scanner.token().map_err(|_| UNCLEAR)?;
        if scanner.has_executable {
            return Err(EXECUTABLE);
        }
        match token.kind {
            TokenKind::End => return Ok(()),
            TokenKind::Odd => return Err(UNCLEAR),
            _ if has_ended => return Err(SEVERAL),
            TokenKind::Semicolon => has_ended = true,
            _ => check.step(token)?,
        }
        if let Calls::Behind(word) = calls {
            check.is_on |= check.is(token, word);
        }
    }
}

/// The state of a check for calls.
struct Check<'a> {
    text: &'a str,
    modes: Modes,
    is_query: bool,
    is_on: bool,
    /// True before the columns of an INSERT.
    is_before_columns: bool,
    /// True between WITH and the statement itself.
    is_in_with: bool,
    /// The last two tokens, the last one first.
    last: [Option<Token>; 2],
    depth: u32,
}

impl<'a> Check<'a> {
    fn slice(&self, token: Token) -> &'a str {
        self.text.get(token.start..token.end).unwrap_or_default()
    }

    fn is(&self, token: Token, word: &str) -> bool {
        token.kind == TokenKind::Word && self.slice(token).eq_ignore_ascii_case(word)
    }

    fn step(&mut self, token: Token) -> Result<(), Refusal> {
        let [last, before] = self.last;
        match token.kind {
            TokenKind::Open => {
                if self.is_on && !self.is_list_of_names(last, before) {
                    self.open(last, before)?;
                }
                self.is_before_columns = false;
                self.depth += 1;
            }
            TokenKind::Close => self.depth = self.depth.saturating_sub(1),
            TokenKind::Word if self.depth == 0 => self.word(token),
            _ => {}
        }
        let sets_id = self.is_query
            && self.is_on
            && token.kind != TokenKind::Close
            && last.is_some_and(|last| last.kind == TokenKind::Open)
            && before.is_some_and(|before| self.is(before, "last_insert_id"));
        if sets_id {
            return Err(GIVEN_ID);
        }
        self.last = [Some(token), last];
        Ok(())
    }

    fn word(&mut self, token: Token) {
        let is_any = |words: &[&str]| words.iter().any(|word| self.is(token, word));
        let begins = is_any(&["select", "values", "value", "table"]);
        let writes = is_any(&["insert", "update", "delete", "replace"]);
        let sets = is_any(&["set"]);
        let is_with = is_any(&["with"]) && self.last == [None; 2];
        self.is_in_with = is_with || (self.is_in_with && !begins && !writes);
        self.is_before_columns &= !begins && !sets;
    }

    /// Returns true if a parenthesis holds the columns of a table, of a WITH or of an alias.
    fn is_list_of_names(&self, last: Option<Token>, before: Option<Token>) -> bool {
        let is_named =
            last.is_some_and(|last| matches!(last.kind, TokenKind::Word | TokenKind::Quoted));
        let is_alias = before.is_some_and(|before| self.is(before, "as"));
        let is_of_table = self.depth == 0 && (self.is_before_columns || self.is_in_with);
        is_named && (is_alias || is_of_table)
    }

    /// Checks a parenthesis by the tokens before it.
    fn open(&self, last: Option<Token>, before: Option<Token>) -> Result<(), Refusal> {
        let Some(last) = last else {
            return Ok(());
        };
        let name = self.slice(last);
        let is_behind_point = before.is_some_and(|before| before.kind == TokenKind::Dot);
        match last.kind {
            TokenKind::Quoted => Err(STORED),
            TokenKind::Word if is_behind_point => Err(STORED),
            TokenKind::Word if listed(&NO_CALLS, name) || is_reserved(name, self.modes) => Ok(()),
            TokenKind::Word if call(name, self.modes) == CallKind::Stored => Err(STORED),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
