//! A text that may be joined does nothing but write its row, whatever it looks like.

use proptest::prelude::*;
use windrow_sql::mysql::{Modes, effect, lift, question, read};

use crate::support::{SQL_MODES, Session, put_back, try_all};

const SCHEMA: [&str; 4] = [
    "create table t (a varbinary(99), b varbinary(99), id int default 7)",
    "create function f() returns int no sql begin set @called = 1; return 1; end",
    "create function x(n int) returns int no sql begin set @called = 1; return 1; end",
    "set @called = 0, @v = 0",
];

/// Pieces of which strings, comments and names begin and end.
#[rustfmt::skip]
const PIECES: [&str; 78] = [
    "'", "'", "''", "\"", "\"\"", "`", "\\", "\\\\", "\\'", "\\\"", "--", "-- ", "--\n", "--\t", "--\u{1}", "#",
    "\n", "\r", " ", "/*", "*/", "/**/", "/*!", "/*!99999 ", "/*M!", "/*+", ";", ",", "(", ")", "),(", "1", "-1",
    "0", "1a", ".5", "1.", "1e", "1e5", "e5", "0x1", "0x", "x'41'", "x'4", "b'1'", "0b1", "n'a'", "N", "_utf8",
    "_utf8mb4'a'", "_binary", "a", "b", "a.b", "t.a", "f()", "f ()", "x(1)", "`f`()", "@v:=1", "@v", "@@sql_mode", ":=",
    "null", "NULL", "\\N", "+", "-", "*", "/", "=", "|", "||", "&", "?", "{", "}", "ü",
];

/// Beginnings, and what may follow the random part.
const FORMS: [(&str, &str); 8] = [
    ("insert into t (a, b) values (", ")"),
    ("insert into t (a, b) values ('", "', f())"),
    ("insert into t (a, b) values (\"", "\", 'x')"),
    ("insert into t set a = '", "', b = '@v:=1'"),
    ("replace t (`a`) values (1, '", "')"),
    ("update t set a = '", "' where id = 7"),
    ("update t set a = 1 where id = '", "' and b = 'f()'"),
    ("delete from t where id = 7 and a = '", "'"),
];

fn text() -> impl Strategy<Value = (usize, String)> {
    let pieces = prop::collection::vec(prop::sample::select(&PIECES[..]), 0..9);
    let form = prop::sample::select(&FORMS[..]);
    (0..SQL_MODES.len(), form, pieces).prop_map(|(mode, (before, after), pieces)| {
        let text = format!("{before}{}{after}", pieces.concat());
        (mode, text)
    })
}

/// Nothing but rows of the table has changed.
fn nothing_else(session: &Session, text: &str) {
    let state = session.table("select @called, @v, @@sql_mode");
    let state = format!("{state:?}");
    assert!(
        state.contains(r#"[Bytes("0"), Bytes("0")"#) || state.contains("[Int(0), Int(0)"),
        "{state}: {text}"
    );
}

#[test]
fn a_text_that_may_be_joined_does_nothing_else() {
    let session = Session::new(&SCHEMA);
    let joined = std::cell::Cell::new(0);
    try_all(&text(), |(mode, text)| {
        let modes = session.mode(SQL_MODES[mode]);
        if read(&text, modes).is_err() {
            return;
        }
        session.rows("delete from t").unwrap();
        session
            .rows("insert into t values ('p', 'q', 7), ('f()', 'r', 8)")
            .unwrap();
        if let Ok(changed) = session.changed(&text) {
            joined.set(joined.get() + 1);
            assert!(changed <= 2, "{changed}: {text}");
        }
        nothing_else(&session, &text);
    });
    assert!(
        joined.get() > 50,
        "only {} texts were executed",
        joined.get()
    );
}

#[test]
fn a_lifted_text_says_the_same_with_its_literals() {
    let session = Session::new(&SCHEMA);
    let compared = std::cell::Cell::new(0);
    try_all(&text(), |(mode, text)| {
        let modes = session.mode(SQL_MODES[mode]);
        let Some(lifted) = lift(&text, modes) else {
            return;
        };
        let same = put_back(&text, &lifted);
        let again = lift(&same, modes).unwrap_or_else(|| panic!("{text} -> {same}"));
        assert_eq!(again.text, lifted.text, "{text} -> {same}");
        let run = |text: &str| {
            session.rows("delete from t").unwrap();
            session
                .rows("insert into t values ('p', 'q', 7), ('f()', 'r', 8)")
                .unwrap();
            let changed = session.changed(text);
            (
                changed,
                session.table("select hex(a), hex(b), id from t order by 1, 2, 3"),
            )
        };
        let (alone, lifted_one) = (run(&text), run(&same));
        assert_eq!(alone, lifted_one, "{text} -> {same}");
        compared.set(compared.get() + u32::from(alone.0.is_ok()));
        if read(&lifted.text, modes).is_ok() {
            nothing_else(&session, &text);
        }
        session.rows("set @called = 0, @v = 0").unwrap();
    });
    assert!(
        compared.get() > 50,
        "only {} texts were executed",
        compared.get()
    );
}

#[test]
fn any_text_is_read_without_a_panic() {
    let texts = (any::<String>(), text());
    try_all(&texts, |(any, (mode, text))| {
        let modes = Modes::of(SQL_MODES[mode], true).unwrap();
        for text in [any, text] {
            drop((lift(&text, modes), read(&text, modes)));
            drop((effect(&text, modes), question(&text)));
        }
    });
}
