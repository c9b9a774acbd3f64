//! Readings are held against PostgreSQL's own parser, for statements written by hand and for what
//! chance makes of them.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod agree;
#[path = "../../../sql/tests/reading/corpus.rs"]
mod corpus;
mod tree;

use corpus::{APART, JOINED};
use proptest::prelude::*;

use agree::agree;

#[test]
fn the_corpus_is_read_as_postgresql_reads_it() {
    let wrong: Vec<String> = JOINED
        .iter()
        .chain(APART)
        .filter_map(|text| agree(text).err().map(|error| format!("{text}\n  {error}")))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The tokens of all texts, roughly: what stands between spaces, and each sign by itself.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut quoted = None;
    for c in text.chars() {
        let wordly = |c: char| c.is_alphanumeric() || c == '_' || c == '$' || c == '.';
        let glue = words
            .last()
            .and_then(|w| w.chars().last())
            .is_some_and(|last| {
                quoted.is_some() || (wordly(last) && wordly(c)) || (last == ':' && c == ':')
            });
        if quoted == Some(c) {
            quoted = None;
        } else if quoted.is_none() && (c == '\'' || c == '"') {
            quoted = Some(c);
        }
        match words.last_mut() {
            Some(last) if glue => last.push(c),
            _ => words.push(c.into()),
        }
    }
    words
}

#[derive(Clone, Debug)]
enum Change {
    Drop(prop::sample::Index),
    Double(prop::sample::Index),
    Swap(prop::sample::Index, prop::sample::Index),
    /// A word of any statement in the place of one, or before it.
    Graft(prop::sample::Index, prop::sample::Index, bool),
    /// A character in a place.
    Character(prop::sample::Index, char),
}

fn change() -> impl Strategy<Value = Change> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        index().prop_map(Change::Drop),
        index().prop_map(Change::Double),
        (index(), index()).prop_map(|(a, b)| Change::Swap(a, b)),
        (index(), index(), any::<bool>()).prop_map(|(a, b, over)| Change::Graft(a, b, over)),
        (
            index(),
            prop::sample::select("'\"$\\;()[],.:-/*+ \n1aE@".chars().collect::<Vec<_>>())
        )
            .prop_map(|(at, c)| Change::Character(at, c)),
    ]
}

fn changed(text: &str, changes: &[Change], pool: &[String]) -> String {
    let mut words = words(text);
    for change in changes {
        if words.is_empty() {
            break;
        }
        match change {
            Change::Drop(at) => drop(words.remove(at.index(words.len()))),
            Change::Double(at) => {
                let at = at.index(words.len());
                words.insert(at, words.get(at).cloned().unwrap());
            }
            Change::Swap(a, b) => {
                let (a, b) = (a.index(words.len()), b.index(words.len()));
                words.swap(a, b);
            }
            Change::Graft(at, from, over) => {
                let at = at.index(words.len());
                let word = pool.get(from.index(pool.len())).cloned().unwrap();
                if *over {
                    words.remove(at);
                    words.insert(at, word);
                } else {
                    words.insert(at, format!("{word} "));
                }
            }
            Change::Character(at, c) => words.insert(at.index(words.len()), c.to_string()),
        }
    }
    words.concat()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn chance_is_read_as_postgresql_reads_it(
        joined in prop::bool::weighted(0.8),
        at in any::<prop::sample::Index>(),
        changes in prop::collection::vec(change(), 1..5),
    ) {
        let texts = if joined { JOINED } else { APART };
        let pool: Vec<String> = POOL.iter().flat_map(|text| words(text)).collect();
        let text = changed(texts.get(at.index(texts.len())).unwrap(), &changes, &pool);
        if let Err(error) = agree(&text) {
            panic!("{text}\n  {error}");
        }
    }
}

/// Words that change what a statement means.
const POOL: &[&str] = &[
    "SELECT a FROM t WHERE x AND y OR NOT z IS NULL IN (1) LIKE 'b' BETWEEN 1 AND 2 ; , . :: = < -5 * / || ^ [1] ARRAY[1]",
    "RETURNING ON CONFLICT DO UPDATE SET NOTHING DEFAULT VALUES USING AS INTO CASE WHEN THEN ELSE END COLLATE \"C\" ESCAPE",
    "set_config('a.b','c',false) my_function() lower(a) count(*) nextval('s') lastval() currval('s') date '2020-01-01'",
    "INTERVAL '1' HOUR TO MINUTE AT TIME ZONE TEMP INSERT DELETE MERGE WITH TABLE 'x' E'y\\'' $1 $2 $$z$$ 2147483648 1.5 null true",
    "-- /* */ E' B'1' U&'x' -2147483648 - 9223372036854775808 ANY ALL ( ) ROW ONLY * ctid excluded SESSION LOCAL TO COPY EXPLAIN ANALYZE BEGIN COMMIT",
];

/// More of them with `WINDROW_TEST_CASES`.
fn cases() -> u32 {
    std::env::var("WINDROW_TEST_CASES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(4_000)
}
