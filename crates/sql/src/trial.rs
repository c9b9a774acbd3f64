//! Checks for arbitrary texts: the fuzzer invents them (`./test fuzz`), and every test run repeats
//! the inputs that it kept. `crates/grammar` compares the results with PostgreSQL's own parser.

use windrow_core::Arguments;

use crate::{Lifter, Reading, names, read, sequences};

/// Any text is read without a panic and without going beyond it; what is read does not depend on
/// what stands around it.
pub fn text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let reading = read(text, &[]);
    let found = names(text);
    drop(sequences(text));
    if let Reading::Join(parsed) = &reading {
        joined(text, parsed.op);
        // There are none where the server would cut one off.
        let Some(found) = found else {
            return;
        };
        assert!(!found.verbs.is_empty());
        assert!(found.all.windows(2).all(|two| two.first() < two.last()));
    }
    lifted(text);
}

/// Blanks, and a comment behind the statement, mean nothing.
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
        // The same text is lifted alike, whatever was lifted before it.
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
