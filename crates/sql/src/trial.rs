//! Checks for arbitrary texts: the fuzzer invents them (`./test fuzz`), and every test run repeats
//! the inputs that it kept. `crates/grammar` compares the results with PostgreSQL's own parser.

use windrow_core::Arguments;

use crate::mysql::{self, Modes};
use crate::{Lifter, Reading, names, read, sequences};

/// Checks that any text is read without a panic and without reading beyond it, and that the result
/// does not depend on the bytes around it.
pub fn text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let reading = read(text, &[]);
    let found = names(text);
    drop(sequences(text));
    if let Reading::Join(parsed) = &reading {
        joined(text, parsed.op);
        // There is no name where the server would cut one.
        let Some(found) = found else {
            return;
        };
        assert!(!found.verbs.is_empty());
        assert!(found.all.windows(2).all(|two| two.first() < two.last()));
    }
    lifted(text);
    for modes in [Modes::of("", true), Modes::of(OTHER_MODES, false)] {
        mysql_text(text, modes.unwrap_or_default());
    }
}

/// Modes that change how a text is cut into tokens.
const OTHER_MODES: &str = "ANSI_QUOTES,NO_BACKSLASH_ESCAPES";

/// Checks that a text of a MySQL client is read without a panic. A comment before it must not
/// change what is lifted, and literals must be read like the parameters in their places.
fn mysql_text(text: &str, modes: Modes) {
    drop((mysql::effect(text, modes), mysql::question(text)));
    drop(mysql::read(text, modes));
    let Some(lifted) = mysql::lift(text, modes) else {
        return;
    };
    let literals = lifted.literals.iter();
    let literals: Vec<_> = literals.map(|place| text.get(place.clone())).collect();
    assert!(literals.iter().all(Option::is_some), "{text}");
    if let Ok(parsed) = mysql::read(&lifted.text, modes) {
        // An introducer with its string is a key only if it is one literal.
        if let Ok(own) = mysql::read(text, modes) {
            assert_eq!((own.op, own.table), (parsed.op, parsed.table), "{text}");
        }
        let again = format!(" /* x */ {text}");
        let again = mysql::lift(&again, modes).map(|again| again.text);
        assert_eq!(again.as_ref(), Some(&lifted.text), "{text}");
    }
}

/// Checks that blanks, and a comment after the statement, change nothing.
fn joined(text: &str, op: windrow_core::Op) {
    for same in [
        format!(" \n{text}"),
        format!("{text}\n-- x"),
        format!("{text}\n/* x */"),
    ] {
        match read(&same, &[]) {
            Reading::Join(parsed) => assert_eq!(parsed.op, op, "{same}"),
            Reading::Apart(apart) => {
                assert_eq!(apart.reason, "a text longer than 65,536 bytes", "{same}");
            }
        }
    }
}

/// Checks that each lifted value is a whole literal, and that the template has its number.
fn lifted(text: &str) {
    let mut lifter = Lifter::default();
    for standard in [true, false] {
        let Some(lifted) = lifter.lift(text, standard) else {
            continue;
        };
        let values = Arguments::of(lifted.values, lifted.count());
        let count = values.map(|values| values.iter().count());
        assert_eq!(count, Some(lifted.count()), "{text}");
        for at in 1..=lifted.count() {
            assert!(lifted.template.contains(&format!("${at}")), "{text}");
        }
        // What was lifted before must not change the result.
        let template = lifted.template.to_owned();
        let values = lifted.values.to_vec();
        let again = lifter.lift(text, standard);
        let again = again.map(|again| (again.template.to_owned(), again.values.to_vec()));
        assert_eq!(again, Some((template, values)), "{text}");
    }
}

#[cfg(test)]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chance_has_found() {
        corpus::each("sql", text);
    }
}
