//! Questions for a value that a sequence generated.

use crate::lex::TokenKind;
use crate::reading::Effect;
use crate::words::Words;

/// Recognizes a question for the last value of a sequence.
pub(super) fn generated(words: Words<'_>) -> Option<Effect> {
    let asks = |at| matches!(words.identifier(at).as_deref(), Some("lastval" | "currval"));
    (0..words.len()).find(|at| asks(*at) && words.kind(at + 1) == TokenKind::Open)?;
    Some(plain(words.without_end()).unwrap_or(Effect::AsksForGenerated))
}

/// Recognizes a text that consists of one question.
fn plain(words: Words<'_>) -> Option<Effect> {
    let call = words.only_call()?;
    match &*call.function {
        "lastval" => (call.arguments.len() == 0).then_some(Effect::Lastval),
        "currval" => {
            let (asked, behind) = sequence(call.arguments)?;
            (behind == call.arguments.len()).then_some(asked)
        }
        _ => None,
    }
}

/// Reads the argument of `currval` at the front: a text or a parameter, perhaps in parentheses,
/// perhaps cast as drivers do it. Also returns the place after the argument.
pub(super) fn sequence(arguments: Words<'_>) -> Option<(Effect, usize)> {
    let mut depth = 0_usize;
    while arguments.kind(depth) == TokenKind::Open {
        depth += 1;
    }
    let asked = match arguments.kind(depth) {
        TokenKind::Parameter if arguments.slice(depth) == "$1" => Effect::Currval(None),
        TokenKind::Text => Effect::Currval(Some(arguments.text(depth)?.into())),
        _ => return None,
    };
    let mut at = depth + 1;
    loop {
        match arguments.kind(at) {
            TokenKind::Close if depth > 0 => {
                depth -= 1;
                at += 1;
            }
            TokenKind::Cast if arguments.is(at + 1, "regclass") => at += 2,
            _ => return (depth == 0).then_some((asked, at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::reading::Effect;

    fn effect(text: &str) -> Effect {
        crate::read(text, &[]).effect()
    }

    #[test]
    fn questions_are_recognized_in_the_forms_that_drivers_use() {
        for text in ["SELECT lastval()", "select pg_catalog.lastval();"] {
            assert_eq!(effect(text), Effect::Lastval, "{text}");
        }
        for text in [
            "SELECT currval($1)",
            "SELECT CURRVAL($1)",
            "SELECT pg_catalog.currval($1)",
            "SELECT currval($1::regclass)",
            "SELECT currval(($1)::regclass)",
        ] {
            assert_eq!(effect(text), Effect::Currval(None), "{text}");
        }
        for text in [
            "SELECT currval('it''s')",
            "SELECT currval('it''s'::regclass) ;",
            "SELECT currval(('it''s')::regclass)",
            "SELECT currval((('it''s')))",
        ] {
            let known = Effect::Currval(Some("it's".into()));
            assert_eq!(effect(text), known, "{text}");
        }
    }

    #[test]
    fn a_statement_that_is_prepared_asks_nothing_yet() {
        for text in [
            "PREPARE last AS SELECT lastval()",
            "prepare q as select currval('a') + 1",
        ] {
            assert_eq!(effect(text), Effect::Other, "{text}");
        }
    }

    #[test]
    fn any_other_question_is_one_that_cannot_be_answered_here() {
        for text in [
            "SELECT lastval(), 1",
            "SELECT lastval() AS id",
            "SELECT lastval() + 1",
            "SELECT currval($2)",
            "SELECT currval(($1)",
            "SELECT currval($1::text)",
            "SELECT currval(E'a')",
            "SELECT currval('a\\b')",
            "SELECT other.lastval()",
            "SELECT (lastval())",
            "SELECT currval('a') FROM t",
            "SELECT * FROM t WHERE id = lastval()",
        ] {
            assert_eq!(effect(text), Effect::AsksForGenerated, "{text}");
        }
    }
}
