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
        "currval" => sequence(call.arguments),
        _ => None,
    }
}

/// Parses the argument of `currval`: a text or a parameter, possibly in parentheses, possibly with
/// the casts of drivers.
pub(super) fn sequence(mut argument: Words<'_>) -> Option<Effect> {
    loop {
        let last = argument.len().checked_sub(1)?;
        if last == 0 {
            break;
        }
        argument = if argument.kind(0) == TokenKind::Open && argument.kind(last) == TokenKind::Close
        {
            argument.between(1, last)
        } else if last >= 2
            && argument.kind(last - 1) == TokenKind::Cast
            && argument.is(last, "regclass")
        {
            argument.between(0, last - 1)
        } else {
            return None;
        };
    }
    match argument.kind(0) {
        TokenKind::Parameter if argument.slice(0) == "$1" => Some(Effect::Currval(None)),
        TokenKind::Text => Some(Effect::Currval(Some(argument.text(0)?.into()))),
        _ => None,
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
