//! Transactions that arrive whole: queries of several writes, and segments with BEGIN and COMMIT.

use windrow_testkit::pgclient::backend::sqlstate;
use windrow_testkit::pgclient::{Client, Message, frontend};

use crate::support::{Stand, segment, tags};

/// Statements after the transaction under test: they show the state that it has left.
const AFTER: [&str; 4] = [
    "insert into t values (90, 'z')",
    "insert into t values (91, 'z'); insert into t values (92, 'z')",
    "commit",
    "select id, v from t order by id",
];

fn queries(client: &mut Client, texts: &[&str]) -> Vec<Message> {
    let answers = texts.iter().flat_map(|sql| client.query(sql).unwrap());
    answers.collect()
}

/// Sends queries without waiting for answers.
fn at_once(client: &mut Client, texts: &[&str]) -> Vec<Message> {
    let mut out = Vec::new();
    for text in texts {
        frontend::query(&mut out, text);
    }
    client.send(&out).unwrap();
    let answers = texts.iter().flat_map(|_| client.until_ready().unwrap());
    answers.collect()
}

/// Runs a query of so many writes through the frontend and directly, with others behind it.
fn check(stand: &Stand, (text, writes): (&str, usize)) {
    let texts = [&[text][..], &AFTER].concat();
    for run in [queries, at_once] {
        let before = stand.control.units().len();
        let told = stand.same(|client| run(client, &texts));
        let has_failed = told.iter().any(|m| m.tag == b'Z' && m.body == b"E");
        // Nothing is executed in a block that has failed.
        let after: &[usize] = if has_failed { &[] } else { &[1, 2] };
        let units = stand.control.units();
        assert_eq!(units[before..], [&[writes], after].concat(), "{text}");
    }
}

#[test]
fn several_writes_of_one_query_are_one_unit_and_answered_as_alone() {
    let stand = Stand::new();
    for (text, writes) in [
        ("insert into t values (1, 'a'); insert into t values (2, 'b')", 2),
        (
            "insert into t values (1, 'a') returning v, id;
             update t set v = 'b' where id = 1 returning *; delete from t where id = 7",
            3,
        ),
        (
            ";; -- ;\ninsert into t values (1, ';') /* ; */;;insert into t values (2, $a$;$a$);",
            2,
        ),
        (
            r"insert into t values (1, E'\';'); insert into t values (2, '\')",
            2,
        ),
        // The first, the last, and one between them fails.
        (
            "insert into t values (1, null); insert into t values (1, 'a')",
            2,
        ),
        (
            "insert into t values (1, 'a'); insert into t values (1, 'b')",
            2,
        ),
        (
            "insert into t values (1, 'a') returning id; insert into t values (1, 'b') returning id;
             insert into t values (3, 'c') returning id",
            3,
        ),
    ] {
        check(&stand, (text, writes));
    }
}

#[test]
fn a_block_of_one_query_is_one_unit_and_leaves_what_it_leaves_alone() {
    let stand = Stand::new();
    for (text, writes) in [
        ("begin; insert into t values (1, 'a'); commit", 1),
        (
            "start transaction; insert into t values (1, 'a') returning *;
             insert into t values (2, 'b'); end work;",
            2,
        ),
        (
            "/* a */ BEGIN WORK;; update t set v = 'a' where id = 1; COMMIT AND NO CHAIN",
            1,
        ),
        ("begin; insert into t values (1, null); commit", 1),
        (
            "begin; insert into t values (1, 'a'); insert into t values (1, 'b') returning v;
             insert into t values (2, 'c'); commit",
            3,
        ),
    ] {
        check(&stand, (text, writes));
    }
}

#[test]
fn other_texts_of_several_statements_are_relayed() {
    let stand = Stand::new();
    let long = "delete from t where id = 1;".repeat(1_001);
    for text in [
        "insert into t values (1, 'a'); select 1",
        "insert into t values (1, 'a'); insert into t select 2, 'b'",
        "insert into t values (1, 'a'); insert into nowhere values (1)",
        "insert into t values (1, 'a'); insert into t values (2, 'open)",
        "insert into t values (1, 'a'); selec 1",
        "begin; insert into t values (1, 'a')",
        "begin; insert into t values (1, 'a'); rollback",
        "begin; insert into t values (1, 'a'); commit and chain",
        "begin; insert into t values (1, 'a'); savepoint a; commit",
        "begin; commit",
        "begin isolation level serializable; insert into t values (1, 'a'); commit",
        "begin read only; insert into t values (1, 'a'); commit",
        "begin; begin; insert into t values (1, 'a'); commit",
        "begin; insert into t values (1, 'a'); commit; insert into t values (2, 'b')",
        "insert into t values (1, 'a'); begin; insert into t values (2, 'b'); commit",
        "insert into t values (1, 'a'); commit",
        "set windrow.join = off; insert into t values (1, 'a')",
        "insert into t values (1, 'a'); insert into t values (2, lastval()::text)",
        "insert into t values (1, statement_timestamp()::text = '' and null); delete from t where id = 1",
        &long,
    ] {
        let before = stand.control.units().len();
        stand.same(|client| {
            let mut all = queries(client, &[text, "rollback"]);
            all.extend(queries(client, &["select id, v from t order by id"]));
            all
        });
        assert_eq!(stand.control.units().len(), before, "{text}");
    }
}

#[test]
fn positions_of_errors_are_those_in_the_whole_query() {
    let stand = Stand::new();
    let text = "insert into t values (1, 'äöü€'); /* ß */ update t set v = 'b' where id = 1";
    for text in [text.to_owned(), format!("begin; {text}; commit")] {
        let told = stand.same(|client| {
            let mut all = queries(client, &[&text]);
            all.extend(queries(client, &["alter table t rename v to w"]));
            all.extend(queries(client, &["delete from t", &text, "rollback"]));
            all.extend(queries(client, &["alter table t rename w to v"]));
            all
        });
        let told = told.iter().rev().find(|message| message.tag == b'E');
        let place: usize = told.unwrap().field(b'P').unwrap().parse().unwrap();
        assert!(place > text.find("update").unwrap() - 10, "{place}");
    }
}

#[test]
fn a_commit_that_fails_is_answered_where_the_server_answers_it() {
    let stand = Stand::new();
    stand.executes(
        "create table d (id int primary key, r int unique deferrable initially deferred)",
    );
    for (text, writes) in [
        (
            "insert into d values (1, 1) returning id; insert into d values (2, 1) returning id",
            2,
        ),
        (
            "begin; insert into d values (1, 1); insert into d values (2, 1) returning r; commit",
            2,
        ),
        (
            "begin; insert into d values (1, 1); insert into d values (1, 1); commit",
            2,
        ),
    ] {
        stand.same(|client| {
            let mut all = queries(
                client,
                &["truncate d", text, "insert into t values (1, 'a')"],
            );
            all.extend(queries(client, &["rollback"]));
            all
        });
        let units = stand.control.units();
        assert!(units.contains(&writes), "{text}");
    }
}

/// Parse, Bind, Describe and Execute of a text without values.
fn unnamed(out: &mut Vec<u8>, sql: &str) {
    frontend::parse(out, "", sql, &[]);
    frontend::bind::<&str>(out, ("", ""), &[], &[], &[]);
    frontend::describe(out, b'P', "");
    frontend::execute(out, "", 0);
}

/// Bind and Execute of a prepared statement.
fn prepared(out: &mut Vec<u8>, name: &str, values: &[&str]) {
    let values: Vec<_> = values.iter().map(|value| Some(*value)).collect();
    frontend::bind(out, ("", name), &[], &values, &[]);
    frontend::execute(out, "", 0);
}

/// Runs a segment through the frontend and directly, with others behind it.
fn check_segment(stand: &Stand, messages: impl Fn(&mut Vec<u8>)) -> Vec<Message> {
    stand.same(|client| {
        let mut all = segment(client, |out| {
            frontend::parse(out, "b", "begin", &[]);
            frontend::parse(out, "c", "commit", &[]);
            frontend::parse(out, "i", "insert into t values ($1, $2)", &[]);
        });
        // Without waiting.
        let mut out = Vec::new();
        messages(&mut out);
        frontend::sync(&mut out);
        frontend::query(&mut out, "insert into t values (80, 'y')");
        unnamed(&mut out, "delete from t where id = 80 returning v");
        frontend::sync(&mut out);
        client.send(&out).unwrap();
        for _ in 0..3 {
            all.extend(client.until_ready().unwrap());
        }
        all.extend(queries(
            client,
            &["rollback", "select id, v from t order by id"],
        ));
        all.extend(segment(client, |out| prepared(out, "c", &[])));
        all
    })
}

#[test]
fn a_block_of_one_segment_is_one_unit_and_answered_as_alone() {
    let stand = Stand::new();
    let good: &[fn(&mut Vec<u8>)] = &[
        |out| {
            unnamed(out, "begin");
            unnamed(out, "insert into t values (1, 'a') returning id, v");
            unnamed(out, "update t set v = 'b' where id = 1");
            unnamed(out, "commit");
        },
        |out| {
            prepared(out, "b", &[]);
            prepared(out, "i", &["1", "a"]);
            prepared(out, "i", &["2", "b"]);
            prepared(out, "c", &[]);
            frontend::close(out, b'P', "");
        },
    ];
    for messages in good {
        let told = check_segment(&stand, messages);
        assert!(
            stand.control.units().ends_with(&[2, 1, 1]),
            "{:?}",
            stand.control.units()
        );
        assert_eq!(sqlstate(&told), None);
    }
    let bad: &[fn(&mut Vec<u8>)] = &[
        |out| {
            unnamed(out, "begin");
            prepared(out, "i", &["1", "a"]);
            prepared(out, "i", &["1", "b"]);
            unnamed(out, "commit");
        },
        // A value that cannot be bound.
        |out| {
            unnamed(out, "begin");
            prepared(out, "i", &["x", "a"]);
            prepared(out, "i", &["1", "b"]);
            unnamed(out, "commit");
        },
    ];
    for messages in bad {
        check_segment(&stand, messages);
        assert!(
            stand.control.units().ends_with(&[2]),
            "{:?}",
            stand.control.units()
        );
    }
}

#[test]
fn a_commit_that_fails_in_a_segment_leaves_no_block() {
    let stand = Stand::new();
    stand.executes(
        "create table d (id int primary key, r int unique deferrable initially deferred)",
    );
    let told = stand.same(|client| {
        let mut all = segment(client, |out| {
            unnamed(out, "begin");
            unnamed(out, "insert into d values (1, 1)");
            unnamed(out, "insert into d values (2, 1)");
            unnamed(out, "commit");
        });
        all.extend(queries(
            client,
            &["insert into t values (1, 'a')", "truncate d"],
        ));
        all
    });
    assert!(
        tags(&told).starts_with("12nC12nC12nC12nE"),
        "{}",
        tags(&told)
    );
    assert_eq!(stand.control.units(), [2, 1]);
}

#[test]
fn other_segments_with_blocks_are_relayed() {
    let stand = Stand::new();
    let segments: &[fn(&mut Vec<u8>)] = &[
        |out| {
            prepared(out, "b", &[]);
            prepared(out, "i", &["1", "a"]);
        },
        |out| {
            prepared(out, "b", &[]);
            prepared(out, "c", &[]);
        },
        |out| {
            prepared(out, "i", &["1", "a"]);
            prepared(out, "b", &[]);
            prepared(out, "i", &["2", "a"]);
            prepared(out, "c", &[]);
        },
        |out| {
            prepared(out, "b", &[]);
            prepared(out, "i", &["1", "a"]);
            prepared(out, "c", &[]);
            prepared(out, "i", &["2", "a"]);
        },
        |out| {
            prepared(out, "b", &[]);
            prepared(out, "i", &["1", "a"]);
            prepared(out, "c", &[]);
            prepared(out, "c", &[]);
        },
        |out| {
            prepared(out, "b", &[]);
            prepared(out, "b", &[]);
            prepared(out, "i", &["1", "a"]);
            prepared(out, "c", &[]);
        },
        |out| {
            prepared(out, "b", &[]);
            prepared(out, "i", &["1", "a"]);
            unnamed(out, "select 1");
            prepared(out, "c", &[]);
        },
        |out| {
            prepared(out, "b", &[]);
            prepared(out, "i", &["1", "a"]);
            unnamed(out, "rollback");
        },
        |out| {
            unnamed(out, "begin isolation level repeatable read");
            prepared(out, "i", &["1", "a"]);
            prepared(out, "c", &[]);
        },
        |out| {
            prepared(out, "b", &[]);
            frontend::flush(out);
            prepared(out, "i", &["1", "a"]);
            prepared(out, "c", &[]);
        },
    ];
    for (at, messages) in segments.iter().enumerate() {
        let before = stand.control.units().len();
        check_segment(&stand, messages);
        let units = stand.control.units();
        let units = units.get(before..).unwrap();
        assert!(units.iter().all(|calls| *calls == 1), "{at}: {units:?}");
    }
}

#[test]
fn a_block_without_windrow_join_is_relayed() {
    let stand = Stand::new();
    let mut client = stand.client();
    queries(&mut client, &["set windrow.join = off"]);
    for text in [
        "insert into t values (1, 'a'); insert into t values (2, 'a')",
        "begin; insert into t values (3, 'a'); commit",
    ] {
        assert_eq!(sqlstate(&client.query(text).unwrap()), None);
    }
    let told = segment(&mut client, |out| {
        unnamed(out, "begin");
        unnamed(out, "insert into t values (4, 'a')");
        unnamed(out, "commit");
    });
    assert_eq!(sqlstate(&told), None);
    assert_eq!(stand.control.units(), [0; 0]);
    assert_eq!(stand.executes("select count(*) from t"), "4");
}

/// The messages of a block come in pieces: COMMIT is not there yet when BEGIN is read.
#[test]
fn a_segment_may_come_in_pieces() {
    let stand = Stand::new();
    let mut client = stand.client();
    let mut out = Vec::new();
    unnamed(&mut out, "begin");
    unnamed(&mut out, "insert into t values (1, 'a')");
    unnamed(&mut out, "commit");
    frontend::sync(&mut out);
    for byte in out.chunks(7) {
        client.send(byte).unwrap();
    }
    assert_eq!(tags(&client.until_ready().unwrap()), "12nC12nC12nCZ");
    assert_eq!(stand.executes("select count(*) from t"), "1");
}
