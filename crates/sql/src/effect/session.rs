//! Transactions, settings and other statements about the session itself.

use windrow_core::Name;

use crate::lex::TokenKind;
use crate::reading::Effect;
use crate::words::Words;

/// Returns the effect of a statement about the session or its transaction; `None` for any other.
pub(super) fn read(words: Words<'_>, first: &str) -> Option<Effect> {
    let words = words.first_statement();
    Some(match first {
        "begin" | "start" => Effect::Begin,
        "commit" | "end" | "rollback" | "abort" => end(words),
        "show" => show(words),
        "set" => set(words),
        "reset" => reset(words),
        "discard" if words.is(1, "all") => Effect::DiscardAll,
        _ => return None,
    })
}

fn end(words: Words<'_>) -> Effect {
    let at = words.after_work();
    if words.any(at, &["to", "prepared"]) {
        return Effect::Other;
    }
    // AND CHAIN ends a block and opens the next one, so a block is open afterwards.
    if words.is(at, "and") && words.is(at + 1, "chain") {
        return Effect::Begin;
    }
    Effect::End
}

/// Returns the name of a setting that begins at a token, and the place after it.
fn setting(words: Words<'_>, mut at: usize) -> Option<(String, usize)> {
    let mut name = words.identifier(at)?;
    at += 1;
    while words.kind(at) == TokenKind::Dot {
        name.push('.');
        name.push_str(&words.identifier(at + 1)?);
        at += 2;
    }
    // The server ignores the case of settings' names.
    Some((name.to_ascii_lowercase(), at))
}

fn own(name: &str) -> Option<Name> {
    name.strip_prefix("windrow.").map(Name::from)
}

fn show(words: Words<'_>) -> Effect {
    match setting(words, 1) {
        Some((name, end)) if end == words.len() => {
            own(&name).map_or(Effect::Other, |name| Effect::ShowWindrow { name })
        }
        _ => Effect::Other,
    }
}

fn is_set(name: &str, set: bool) -> Effect {
    Effect::Set {
        name: name.into(),
        set,
    }
}

fn set(words: Words<'_>) -> Effect {
    // A word that would be a keyword before another word is the name here, or its first part.
    let plain = words.slice(2) == "=" || words.is(2, "to") || words.kind(2) == TokenKind::Dot;
    if words.any(1, &["constraints", "transaction", "local"]) && !plain {
        return Effect::Other;
    }
    let at = 1 + usize::from(words.is(1, "session") && !plain);
    if words.is(at, "characteristics") {
        return Effect::Other;
    }
    let named = |at: usize, name: &str| is_set(name, !words.is(at, "default"));
    if words.is(at, "time") && words.is(at + 1, "zone") {
        let set = !words.any(at + 2, &["default", "local"]);
        return is_set("timezone", set);
    }
    if words.is(at, "session") && words.is(at + 1, "authorization") {
        return named(at + 2, "session_authorization");
    }
    // SET SESSION AUTHORIZATION is one phrase. Its SESSION is not a scope.
    if at == 2 && words.is(2, "authorization") {
        return named(3, "session_authorization");
    }
    let Some((name, end)) = setting(words, at) else {
        return Effect::Other;
    };
    if words.slice(end) == "=" || words.is(end, "to") {
        return assigned(words, &name, end + 1);
    }
    let special = [
        ("role", "role"),
        ("names", "client_encoding"),
        ("schema", "search_path"),
    ];
    match special.iter().find(|(word, _)| *word == name) {
        // SET ROLE NONE restores the role with which the session started.
        Some((_, "role")) => is_set("role", !words.is(end, "none")),
        // SET NAMES without a value is SET NAMES DEFAULT.
        Some((_, setting)) => is_set(setting, end < words.len() && !words.is(end, "default")),
        None if name == "xml" && words.is(end, "option") => is_set("xmloption", true),
        None => Effect::Other,
    }
}

fn assigned(words: Words<'_>, name: &str, at: usize) -> Effect {
    // The seed of the random generator cannot be restored.
    if name == "seed" {
        return Effect::Seed;
    }
    let set = !words.is(at, "default");
    let Some(own) = own(name) else {
        return is_set(name, set);
    };
    if !set {
        return Effect::SetWindrow {
            name: own,
            value: None,
        };
    }
    let value = match words.kind(at) {
        TokenKind::Text => text(words.slice(at)),
        TokenKind::Word | TokenKind::Quoted => words.identifier(at),
        TokenKind::Integer | TokenKind::Decimal => Some(words.slice(at).to_owned()),
        _ => None,
    };
    match value {
        Some(value) if at + 1 == words.len() => Effect::SetWindrow {
            name: own,
            value: Some(value.into()),
        },
        _ => Effect::Other,
    }
}

fn text(quoted: &str) -> Option<String> {
    let inside = quoted.strip_prefix('\'')?.strip_suffix('\'')?;
    (!inside.contains('\\')).then(|| inside.replace("''", "'"))
}

fn reset(words: Words<'_>) -> Effect {
    if words.is(1, "all") {
        return Effect::ResetAll;
    }
    if words.is(1, "time") && words.is(2, "zone") {
        return is_set("timezone", false);
    }
    if words.is(1, "session") && words.is(2, "authorization") {
        return is_set("session_authorization", false);
    }
    match setting(words, 1) {
        Some((name, end)) if end == words.len() => match own(&name) {
            Some(name) => Effect::SetWindrow { name, value: None },
            None => is_set(&name, false),
        },
        _ => Effect::Other,
    }
}
