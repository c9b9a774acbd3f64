//! `set_config()`: SET as a function.

use windrow_core::Name;

use crate::lex::TokenKind;
use crate::reading::Effect;
use crate::words::Words;

/// Returns the effect of a text that is a single call of `set_config` with literal arguments;
/// `None` for any other text.
pub(super) fn setting(words: Words<'_>) -> Option<Effect> {
    let call = words.without_end().only_call()?;
    let arguments = call.arguments;
    let commas = arguments.kind(1) == TokenKind::Comma && arguments.kind(3) == TokenKind::Comma;
    if &*call.function != "set_config" || arguments.len() != 5 || !commas {
        return None;
    }
    let name = arguments.text(0)?.to_ascii_lowercase();
    arguments.text(2)?;
    // Windrow's own settings are not the server's. The seed of the random generator cannot be
    // restored.
    if name.starts_with("windrow.") || name == "seed" || !is_plain(&name) {
        return None;
    }
    // With `true` it is like SET LOCAL, and ends with its transaction.
    arguments.is(4, "false").then(|| Effect::Set {
        name: Name::from(name),
        set: true,
    })
}

/// Returns the setting, folded, that is set from the first token on until the transaction ends: by
/// `SET LOCAL name`, if a statement begins here, or by a call of `set_config` with the name in the
/// text and `true` as its last argument. `end`: finds the place of the parenthesis that closes the
/// one at place 1.
pub(crate) fn set_locally(
    words: Words<'_>,
    begins: bool,
    end: impl FnOnce() -> Option<usize>,
) -> Option<String> {
    if begins && words.is(0, "set") && words.is(1, "local") {
        let dotted = words.kind(3) == TokenKind::Dot;
        let name = words.identifier(2)?;
        let name = match dotted {
            true => format!("{name}.{}", words.identifier(4)?),
            false => name,
        };
        return Some(name.to_ascii_lowercase());
    }
    if !words.is(0, "set_config")
        || words.kind(1) != TokenKind::Open
        || words.kind(3) != TokenKind::Comma
    {
        return None;
    }
    let close = end()?;
    let local = words.is(close - 1, "true") && words.kind(close - 2) == TokenKind::Comma;
    let name = words.text(2).filter(|_| local)?;
    Some(name.to_ascii_lowercase())
}

/// Returns true for a name that SET and RESET accept as well.
fn is_plain(name: &str) -> bool {
    let mut parts = name.split('.');
    parts.all(|part| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use crate::reading::Effect;

    fn effect(text: &str) -> Effect {
        crate::read(text, &[]).effect()
    }

    #[test]
    fn a_call_is_followed_if_its_arguments_stand_in_the_text() {
        for (text, name) in [
            ("SELECT set_config('TimeZone', 'UTC', false)", "timezone"),
            (
                "select pg_catalog.set_config('app.tenant','4''2',FALSE);",
                "app.tenant",
            ),
        ] {
            let set = Effect::Set {
                name: name.into(),
                set: true,
            };
            assert_eq!(effect(text), set, "{text}");
        }
    }

    #[test]
    fn any_other_call_is_not_followed() {
        for text in [
            "SELECT set_config('app.tenant', '42', true)",
            "SELECT set_config($1, $2, false)",
            "SELECT set_config('a', $1, false)",
            "SELECT set_config('a', 'b', $1)",
            "SELECT set_config('a', 'b', 'f')",
            "SELECT set_config('a', 'b', false), 1",
            "SELECT set_config('a', 'b', false) FROM t",
            "SELECT set_config('windrow.join', 'off', false)",
            "SELECT set_config('seed', '0.5', false)",
            "SELECT set_config('a b', '0.5', false)",
            "SELECT set_config('a\\b', '0.5', false)",
            "SELECT other.set_config('a', 'b', false)",
            "WITH a AS (SELECT set_config('a', 'b', false)) SELECT 1",
        ] {
            assert_eq!(effect(text), Effect::Other, "{text}");
        }
    }
}
