//! Long texts that are made to be read slowly: each part of them invites a look at all the others.
//!
//! A reader whose time grows with more than the length of a text, or that calls itself for each
//! part, does not come to the end of these.

use windrow_sql::mysql::{self, Modes};
use windrow_sql::{Effect, Lifter, Reading, read};

use crate::apart;

/// The length of the texts, in bytes.
const LENGTH: usize = 64 * 1024;

/// A text of a beginning, as many times a part as fit, and an end.
fn repeated(beginning: &str, part: &str, end: &str) -> String {
    let count = (LENGTH - beginning.len() - end.len()) / part.len();
    [beginning, &part.repeat(count), end].concat()
}

/// A text of as many numbered parts as fit.
fn numbered(beginning: &str, part: impl Fn(usize) -> String, end: &str, length: usize) -> String {
    let mut text = beginning.to_owned();
    let parts = (1..).map(part);
    for part in parts {
        if text.len() + part.len() + end.len() > length {
            break;
        }
        text.push_str(&part);
    }
    text + end
}

fn texts() -> Vec<String> {
    let mut texts = vec![
        repeated("select ", "nextval(", ""),
        repeated("select ", "nextval(nextval('a'::regclass", ", 1)"),
        repeated("select ", "setval((((", "'a'"),
        repeated("select ", "currval(", ""),
        repeated("select ", "lastval((", ")"),
        repeated("select ", "set_config('a', ", ""),
        repeated("select ", "set_config('a', (", "'b', true)"),
        repeated("explain ", "explain ", "select lastval()"),
        repeated("explain ", "(verbose) explain ", "select lastval()"),
        repeated("explain analyze ", "create ", "select lastval()"),
        repeated("select ", "+", "1"),
        repeated("select ", "<+-", "1"),
        repeated("select 1 ", "a, ", &"insert into ".repeat(LENGTH / 24)),
        repeated("with ", "a as (insert into t ", ""),
        repeated("", "select into a;", ""),
        repeated("", "create atomic;", ""),
        repeated("", "(", ""),
        repeated("values ", "(1),", "(2)"),
        repeated("values ", "(1,", ""),
        repeated("insert into t values ", "(1),", "(2)"),
        repeated("insert into t values (", "'a' ", ")"),
        repeated("", "execute a; deallocate a;", ""),
        repeated("select ", "$a", ""),
        repeated("select ", "$", ""),
        repeated("", "/* ", ""),
        repeated("set ", "a.", "b = 1"),
        repeated("set ", "@a := (1, 2), ", "@b := 1"),
        repeated("update t set a = 1 where ", "((a = 1) and ", "b = 1"),
        repeated("delete from t where ", "a in (1) and ", "a = 1"),
        repeated("select ", "last_insert_id(", ""),
    ];
    let condition = |at| format!("c{at} = ? and ");
    texts.push(numbered(
        "update t set a = 1 where ",
        condition,
        "a = 1",
        LENGTH,
    ));
    let condition = |at| format!("c{at} = 1 and ");
    texts.push(numbered(
        "update t set a = 1 where ",
        condition,
        "a = 1",
        60_000,
    ));
    let call = |at| format!("f{at}(), ");
    texts.push(numbered("insert into t values (", call, "1)", 60_000));
    texts
}

#[test]
fn long_texts_are_read_in_one_pass() {
    let mut lifter = Lifter::default();
    for text in texts() {
        let types = [23; 4];
        drop((read(&text, &types), windrow_sql::names(&text)));
        drop((windrow_sql::sequences(&text), windrow_sql::steps(&text)));
        drop((windrow_sql::split(&text), windrow_sql::single_rows(&text)));
        let current = |argument: &str| argument.to_owned();
        for standard in [true, false] {
            drop(windrow_sql::write_script(&text, standard));
            let lifted = lifter.lift(&text, standard);
            assert!(lifted.is_none_or(|lifted| lifted.count() <= 1_000));
            let lifted = lifter.lift_prepared(&text, 0, standard);
            assert!(lifted.is_none_or(|lifted| lifted.count() <= 1_000));
            drop(windrow_sql::answered(&text, standard, None, None));
            let answered = windrow_sql::answered(&text, standard, Some("1"), Some(&current));
            assert!(answered.is_none_or(|answered| answered.len() <= text.len()));
        }
        for modes in [Modes::of("", true), Modes::of("ANSI_QUOTES", false)] {
            let modes = modes.unwrap_or_default();
            drop((mysql::effect(&text, modes), mysql::lift(&text, modes)));
            drop(mysql::read(&text, modes));
            drop(mysql::own_settings(&text, modes));
        }
    }
}

#[test]
fn what_is_explained_is_no_explain() {
    let asks = |text: &str| apart(text).effect == Effect::AsksForGenerated;
    assert!(asks("explain analyze select lastval()"));
    assert!(!asks("explain analyze explain analyze select lastval()"));
}

#[test]
fn an_array_within_an_array_is_read_once() {
    let within = |depth: usize| {
        let nested = "a = any(array[".repeat(depth);
        let condition = format!("{nested}b = 1{}", "])".repeat(depth));
        read(
            &format!("update t set a = 1 where id = 1 and {condition}"),
            &[],
        )
    };
    assert!(matches!(within(22), Reading::Join(_)));
    assert!(matches!(within(60), Reading::Apart(_)));
}

#[test]
fn conditions_beyond_the_keys_are_other_conditions() {
    let text = numbered(
        "update t set a = 1 where ",
        |at| format!("c{at} = 1 and "),
        "c0 = 1",
        3_000,
    );
    let count = text.matches('=').count() - 1;
    let parsed = crate::parsed(&text);
    assert!(count > parsed.keys.len() && parsed.keys.len() == 100);
    assert!(parsed.conditions.is_some());
    let parsed = mysql::read(&text, Modes::default()).unwrap();
    assert!(count > parsed.keys.len() && parsed.keys.len() == 100);
    assert!(parsed.conditions.is_some());
}
