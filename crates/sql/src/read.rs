//! Parses a text as far as joining and the session need it.

use std::sync::Arc;

use crate::effect;
use crate::frozen::is_frozen;
use crate::lex::{Token, TokenKind};
use crate::parse::UNCLEAR;
use crate::reading::{Apart, Effect, MAX_TEXT, Reading};
use crate::text::Text;
use crate::tokens::{MAX_SCANNED, Tokens};
use crate::words::Words;
use crate::write;

const TOO_LONG: &str = "a text longer than 65,536 bytes";
const BACKSLASH: &str = "a backslash in a plain string";
const FROZEN: &str = "a literal that means the moment at which it is read";
const SEVERAL: &str = "several statements in one text";

/// Reads a text as the extended protocol prepares it. `types` are the parameter types that the
/// client named.
///
/// A setting of the session, unknown here, decides whether a backslash in a plain string (`'..'`)
/// is an escape. A text with a backslash is never joined, and its effect is known only if it is the
/// same in both cases.
pub fn read(text: &str, types: &[u32]) -> Reading {
    if text.len() > MAX_SCANNED {
        return apart(TOO_LONG, Effect::Other);
    }
    Text::read(text, |text| read_both_ways(text, types))
}

fn read_both_ways(text: Text<'_>, types: &[u32]) -> Reading {
    let (reading, backslash) = read_as(text, types, true);
    let reading = match reading {
        found if text.len() > MAX_TEXT => apart(TOO_LONG, found.effect()),
        other => other,
    };
    if !backslash {
        return reading;
    }
    let (other, _) = read_as(text, types, false);
    let same = reading.effect() == other.effect();
    let effect = if same {
        reading.effect()
    } else {
        Effect::Other
    };
    match reading {
        Reading::Apart(found) if same => Reading::Apart(found),
        _ => apart(BACKSLASH, effect),
    }
}

/// Cuts a text of several statements into the words of each, in the order of [`Effect::Several`].
/// `None` if the place of the cuts depends on a setting of the session.
pub fn split(text: &str) -> Option<Vec<&str>> {
    Text::read(text, |cut| {
        let tokens = Tokens::of(cut, true)
            .ok()
            .filter(|tokens| !tokens.backslash)?;
        let piece = |tokens: &[Token]| text.get(tokens.first()?.start..tokens.last()?.end);
        statements(&tokens.list).map(piece).collect()
    })
}

fn apart(reason: &'static str, effect: Effect) -> Reading {
    Reading::Apart(Apart { reason, effect })
}

/// Reads a text under one `standard_conforming_strings`. Also says whether that mattered.
fn read_as(text: Text<'_>, types: &[u32], standard: bool) -> (Reading, bool) {
    match Tokens::of(text, standard) {
        Ok(tokens) => (of_tokens(&text, &tokens.list, types), tokens.backslash),
        // An open quote may be open in one way of reading only.
        Err(_) => (apart(UNCLEAR, Effect::Other), false),
    }
}

fn of_tokens(text: &str, tokens: &[Token], types: &[u32]) -> Reading {
    let mut statements = statements(tokens);
    let first = statements.next().unwrap_or_default();
    let words = Words::new(text, first);
    let mut rest = statements.peekable();
    if rest.peek().is_none() {
        return one(text, first, types);
    }
    if words.creates_with_a_body() {
        return apart(SEVERAL, Effect::Other);
    }
    let effects = std::iter::once(first)
        .chain(rest)
        .map(|tokens| among_others(effect::apart(Words::new(text, tokens)).effect))
        .collect();
    apart(SEVERAL, effect::several(effects))
}

/// Returns the effect of a statement among others. Some effects are recognized only in a text of
/// one statement.
fn among_others(effect: Effect) -> Effect {
    match effect {
        Effect::Lastval | Effect::Currval(_) => Effect::AsksForGenerated,
        other => other,
    }
}

fn one(text: &str, tokens: &[Token], types: &[u32]) -> Reading {
    let words = Words::new(text, tokens);
    let found = effect::apart(words);
    if !words.writes() || text.len() > MAX_TEXT {
        return Reading::Apart(found);
    }
    match write::parsed(text, tokens, types) {
        Ok(_) if is_frozen(text, tokens) => apart(FROZEN, found.effect),
        Ok(parsed) => Reading::Join(Arc::new(parsed)),
        Err(reason) => apart(reason, found.effect),
    }
}

/// Returns the tokens of each statement. A semicolon in parentheses (in the actions of a rule) does
/// not end a statement.
pub(crate) fn statements(tokens: &[Token]) -> impl Iterator<Item = &[Token]> {
    let mut depth = 0_u32;
    tokens
        .split(move |token| {
            match token.kind {
                TokenKind::Open => depth += 1,
                TokenKind::Close => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && token.kind == TokenKind::Semicolon
        })
        .filter(|statement| !statement.is_empty())
}
