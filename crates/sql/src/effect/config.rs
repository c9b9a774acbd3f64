//! `set_config()`: SET as a function.

use windrow_core::Name;

use super::Words;
use crate::lex::Kind;
use crate::reading::Effect;

/// What a text does that is one call of `set_config` and nothing else, with all of its arguments in the text. `None`:
/// it is another text.
pub(super) fn setting(words: Words<'_>) -> Option<Effect> {
    let call = words.without_end().only_call()?;
    let arguments = call.arguments;
    let commas = arguments.kind(1) == Kind::Comma && arguments.kind(3) == Kind::Comma;
    if &*call.function != "set_config" || arguments.len() != 5 || !commas {
        return None;
    }
    let name = arguments.text(0)?.to_ascii_lowercase();
    arguments.text(2)?;
    // Windrow's own settings are not the server's; seeding the generator of random numbers cannot be taken back.
    if name.starts_with("windrow.") || name == "seed" || !is_plain(&name) {
        return None;
    }
    match arguments.slice(4).to_ascii_lowercase().as_str() {
        "false" => Some(Effect::Set {
            name: Name::from(name),
            set: true,
        }),
        // As SET LOCAL: it ends with its transaction.
        "true" => Some(Effect::Nothing),
        _ => None,
    }
}

/// Whether the name is one that SET and RESET take as well.
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
    fn it_is_followed_where_its_arguments_stand_in_the_text() {
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
        let local = "SELECT set_config('app.tenant', '42', true)";
        assert_eq!(effect(local), Effect::Nothing);
    }

    #[test]
    fn anything_else_may_do_anything() {
        for text in [
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
            assert_eq!(effect(text), Effect::Unknown, "{text}");
        }
    }
}
