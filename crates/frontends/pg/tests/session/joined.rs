//! Statements that are joined.

use windrow_testkit::pgclient::backend::{first_value, sqlstate};
use windrow_testkit::pgclient::{Address, Client, Message, frontend};

use crate::support::{Stand, commands, segment, tags};

const INSERT: &str = "insert into t values ($1, $2)";

fn insert(client: &mut Client, id: &str) -> Vec<Message> {
    segment(client, |out| {
        frontend::bind(out, ("", "i"), &[], &[Some(id), Some("v")], &[]);
        frontend::execute(out, "", 0);
    })
}

#[test]
fn a_prepared_insert_is_joined_and_answered_as_alone() {
    let stand = Stand::new();
    stand.same(|client| {
        let mut all = segment(client, |out| {
            frontend::parse(out, "i", INSERT, &[]);
            frontend::describe(out, b'S', "i");
        });
        all.extend(insert(client, "1"));
        all.extend(insert(client, "1"));
        all.extend(insert(client, "2"));
        all
    });
    assert_eq!(stand.control.units(), [1, 1, 1]);
}

#[test]
fn a_simple_insert_is_joined_and_answered_as_alone() {
    let stand = Stand::new();
    stand.same(|client| {
        let mut all = client.query("insert into t values (1, 'a')").unwrap();
        all.extend(
            client
                .query("insert into t values (2, 'b') returning id, v")
                .unwrap(),
        );
        all.extend(
            client
                .query("insert into t values (2, 'b') returning id, v")
                .unwrap(),
        );
        all.extend(client.query("update t set v = 'c' where id = 2").unwrap());
        all.extend(client.query("delete from t where id = 3").unwrap());
        all.extend(client.query(" ; ").unwrap());
        all.extend(client.query("").unwrap());
        all
    });
    assert_eq!(stand.control.units().len(), 5);
}

#[test]
fn several_executes_before_a_sync_are_one_unit() {
    let stand = Stand::new();
    let program = |ids: &'static [&'static str]| {
        move |client: &mut Client| {
            let mut all = segment(client, |out| frontend::parse(out, "i", INSERT, &[]));
            all.extend(segment(client, |out| {
                for id in ids.iter().copied() {
                    frontend::bind(out, ("", "i"), &[], &[Some(id), Some("v")], &[]);
                    frontend::describe(out, b'P', "");
                    frontend::execute(out, "", 0);
                }
            }));
            all
        }
    };
    stand.same(program(&["1", "2", "3"]));
    let failed = stand.same(program(&["1", "2", "1", "4"]));
    assert_eq!(tags(&failed), "1Z2nC2nC2nEZ");
    assert_eq!(stand.control.units(), [3, 4]);
}

#[test]
fn syncs_that_nobody_waits_for_are_answered_in_order() {
    let stand = Stand::new();
    let mut client = stand.client();
    segment(&mut client, |out| frontend::parse(out, "i", INSERT, &[]));
    let mut out = Vec::new();
    for id in 0..1000 {
        let id = (id / 2).to_string();
        frontend::bind(&mut out, ("", "i"), &[], &[Some(&*id), Some("v")], &[]);
        frontend::execute(&mut out, "", 0);
        frontend::sync(&mut out);
    }
    client.send(&out).unwrap();
    for id in 0..1000 {
        let answer = client.until_ready().unwrap();
        let expected = if id % 2 == 0 { "2CZ" } else { "2EZ" };
        assert_eq!(tags(&answer), expected, "{id}");
    }
}

#[test]
fn a_statement_is_described_without_a_server_connection() {
    let stand = Stand::new();
    let sql = "insert into t values ($1, $2) returning id, v";
    stand.same(|client| {
        let mut out = Vec::new();
        frontend::parse(&mut out, "", sql, &[0, 25]);
        frontend::describe(&mut out, b'S', "");
        frontend::flush(&mut out);
        client.send(&out).unwrap();
        let mut all: Vec<_> = (0..3).map(|_| client.receive().unwrap().unwrap()).collect();
        all.extend(segment(client, |out| {
            frontend::bind(
                out,
                ("", ""),
                &[1, 0],
                &[Some(&b"\0\0\0\x07"[..]), None],
                &[1, 0],
            );
            frontend::describe(out, b'P', "");
            frontend::execute(out, "", 0);
        }));
        all.extend(segment(client, |out| {
            frontend::bind(
                out,
                ("", ""),
                &[1, 0],
                &[Some(&b"\0\0\0\x07"[..]), Some(b"x")],
                &[1],
            );
            frontend::describe(out, b'P', "");
            frontend::execute(out, "", 0);
            frontend::close(out, b'S', "");
        }));
        all
    });
    assert_eq!(stand.control.units(), [1, 1]);
}

#[test]
fn errors_of_names_and_numbers_are_the_servers() {
    let stand = Stand::new();
    let wrongs: [fn(&mut Vec<u8>); 12] = [
        |out| frontend::bind(out, ("", "nobody"), &[], &[Some("1")], &[]),
        |out| frontend::bind(out, ("", ""), &[], &[Some("1")], &[]),
        |out| frontend::bind(out, ("", "i"), &[], &[Some("1")], &[]),
        |out| frontend::bind(out, ("", "i"), &[7], &[Some("1"), Some("1")], &[]),
        |out| frontend::bind(out, ("", "i"), &[], &[Some("1"), Some("1")], &[0, 0]),
        |out| frontend::parse(out, "i", "select 1", &[]),
        |out| frontend::describe(out, b'S', "nobody"),
        |out| frontend::describe(out, b'P', "nobody"),
        |out| frontend::execute(out, "nobody", 0),
        |out| frontend::parse(out, "j", "insert into nowhere values ($1)", &[]),
        |out| frontend::parse(out, "j", "selec 1", &[]),
        |out| frontend::message(out, b'B', |body| body.extend(b"\0i")),
    ];
    for wrong in wrongs {
        let answers = stand.same(|client| {
            let mut all = segment(client, |out| frontend::parse(out, "i", INSERT, &[]));
            all.extend(segment(client, |out| {
                wrong(out);
                frontend::execute(out, "", 0);
            }));
            all.extend(insert(client, "1"));
            all
        });
        assert!(sqlstate(&answers).is_some());
    }
}

#[test]
fn a_text_that_is_too_long_to_be_kept_is_described_once_for_each_parse() {
    // A hint is no comment.
    let text = format!(
        "/*+ {} */ insert into t values ($1, $2)",
        "x".repeat(20_000)
    );
    assert_eq!(described_for(&text, &["7"]), 2);
}

#[test]
fn texts_that_differ_in_a_literal_are_described_once() {
    let text = format!("insert into t values ($1, '{}')", "x".repeat(20_000));
    assert_eq!(described_for(&text, &[]), 1);
}

/// Executes a text twice. Returns how many texts were described.
fn described_for(text: &str, more: &[&str]) -> usize {
    let stand = Stand::new();
    let mut client = stand.client();
    for id in ["1", "2"] {
        let values: Vec<_> = std::iter::once(id)
            .chain(more.iter().copied())
            .map(Some)
            .collect();
        let answers = segment(&mut client, |out| {
            frontend::parse(out, "", text, &[]);
            frontend::bind(out, ("", ""), &[], &values, &[]);
            frontend::execute(out, "", 0);
        });
        assert_eq!(tags(&answers), "12CZ");
    }
    assert_eq!(stand.control.units(), [1, 1]);
    let described = &stand.control.described;
    described.load(std::sync::atomic::Ordering::SeqCst)
}

#[test]
fn a_retired_statement_is_described_again() {
    let stand = Stand::new();
    let mut client = stand.client();
    segment(&mut client, |out| frontend::parse(out, "i", INSERT, &[]));
    assert_eq!(commands(&insert(&mut client, "1")), ["INSERT 0 1"]);
    for statement in stand.control.statements.lock().unwrap().iter() {
        statement.retire();
    }
    assert_eq!(commands(&insert(&mut client, "2")), ["INSERT 0 1"]);
    assert_eq!(commands(&insert(&mut client, "3")), ["INSERT 0 1"]);
    let described = &stand.control.described;
    assert_eq!(described.load(std::sync::atomic::Ordering::SeqCst), 2);
}

#[test]
fn a_queued_write_is_cancelled() {
    let stand = Stand::new();
    let mut client = stand.client();
    stand.control.hold();
    let mut out = Vec::new();
    frontend::query(&mut out, "insert into t values (1, 'a')");
    client.send(&out).unwrap();
    stand.runtime.block_on(stand.control.wait_for(1));
    client.cancel().unwrap();
    let answer = client.until_ready().unwrap();
    assert_eq!(sqlstate(&answer).as_deref(), Some("57014"));
    let text = answer[0].field(b'M').unwrap();
    assert_eq!(text, "canceling statement due to user request");
    stand.control.release();
    assert_eq!(
        first_value(&client.query("select count(*) from t").unwrap()).unwrap(),
        "0"
    );
}

#[test]
fn only_writes_that_met_those_of_others_count_as_joined() {
    let stand = Stand::new();
    let mut clients = [stand.client(), stand.client()];
    let begin = |client: &mut Client, ids: [i32; 2]| {
        let mut out = Vec::new();
        for id in ids {
            frontend::query(&mut out, &format!("insert into t values ({id}, 'a')"));
        }
        client.send(&out).unwrap();
    };
    let ways = || {
        let mut console = Client::connect(&Address {
            database: "windrow".to_owned(),
            ..stand.address()
        })
        .unwrap();
        let stats = console.query("show stats").unwrap();
        let rows = stats.iter().filter(|message| message.tag == b'D');
        let rows: Vec<_> = rows.map(Message::values).collect();
        ["statements_joined", "statements_joinable"].map(|name| {
            let is_named = |row: &&Vec<Option<Vec<u8>>>| row[0].as_deref() == Some(name.as_bytes());
            let row = rows.iter().find(is_named).unwrap();
            String::from_utf8(row[1].clone().unwrap()).unwrap()
        })
    };
    // Several of one client met nobody's.
    stand.control.hold();
    begin(&mut clients[0], [1, 2]);
    stand.runtime.block_on(stand.control.wait_for(2));
    stand.control.release();
    for _ in 0..2 {
        assert_eq!(commands(&clients[0].until_ready().unwrap()), ["INSERT 0 1"]);
    }
    assert_eq!(ways(), ["0", "2"]);
    stand.control.hold();
    begin(&mut clients[0], [3, 4]);
    begin(&mut clients[1], [5, 4]);
    stand.runtime.block_on(stand.control.wait_for(4));
    stand.control.release();
    let answers = clients.iter_mut().flat_map(|client| {
        let mut answer = || client.until_ready().unwrap();
        [answer(), answer()]
    });
    let failed = answers.filter(|answer| sqlstate(answer).is_some());
    assert_eq!(failed.count(), 1);
    assert_eq!(ways(), ["4", "2"]);
}

#[test]
fn a_full_budget_holds_writes_back_and_loses_none() {
    let stand = Stand::with(|_| {}, 4096);
    let mut client = stand.client();
    segment(&mut client, |out| frontend::parse(out, "i", INSERT, &[]));
    stand.control.hold();
    let mut out = Vec::new();
    for id in 0..100 {
        let id = id.to_string();
        frontend::bind(&mut out, ("", "i"), &[], &[Some(&*id), Some("v")], &[]);
        frontend::execute(&mut out, "", 0);
        frontend::sync(&mut out);
    }
    client.send(&out).unwrap();
    stand.runtime.block_on(stand.control.wait_for(2));
    stand.control.release();
    for _ in 0..100 {
        assert_eq!(commands(&client.until_ready().unwrap()), ["INSERT 0 1"]);
    }
    assert_eq!(stand.budget.held(), 0);
}

/// What is held for messages that come never waits for what those have become.
#[test]
fn many_long_messages_at_once_all_get_through() {
    let stand = Stand::with(|_| {}, 4 << 20);
    let clients: Vec<_> = (0..40)
        .map(|id: usize| {
            let mut client = stand.client();
            std::thread::spawn(move || {
                let text = format!("insert into t values ({id}, '{}')", "x".repeat(900_000));
                commands(&client.query(&text).unwrap())
            })
        })
        .collect();
    for client in clients {
        assert_eq!(client.join().unwrap(), ["INSERT 0 1"]);
    }
    assert_eq!(stand.budget.held(), 0);
}

/// Lengths that are only announced keep nobody waiting.
#[test]
fn announced_messages_hold_nobody_up() {
    let stand = Stand::with(|_| {}, 8 << 20);
    let announce = |bytes: usize| {
        let mut client = stand.client();
        let length = i32::to_be_bytes(1_900_000);
        client
            .send(&[&b"Q"[..], &length, &vec![b' '; bytes]].concat())
            .unwrap();
        client
    };
    // None of the long ones comes to its end, and the last two have even begun.
    let silent: Vec<_> = [0, 0, 0, 0, 40_000, 40_000].map(announce).into();
    let mut client = stand.client();
    for id in 0..50 {
        let answer = client
            .query(&format!("insert into t values ({id}, 'v')"))
            .unwrap();
        assert_eq!(commands(&answer), ["INSERT 0 1"]);
    }
    drop(silent);
}

#[test]
fn values_that_are_refused_are_told_before_they_are_bound() {
    let stand = Stand::new();
    let wrongs: [fn(&mut Vec<u8>); 5] = [
        |out| {
            frontend::bind(out, ("", "i"), &[], &[Some("x"), Some("v")], &[]);
            frontend::execute(out, "", 0);
        },
        |out| {
            frontend::bind(out, ("", "i"), &[], &[Some("1"), Some("v")], &[]);
            frontend::execute(out, "", 0);
            frontend::bind(out, ("", "i"), &[], &[Some("x"), Some("v")], &[]);
            frontend::execute(out, "", 0);
        },
        // Both are bound before the first is executed.
        |out| {
            frontend::bind(out, ("a", "i"), &[], &[Some("1"), Some("v")], &[]);
            frontend::bind(out, ("b", "i"), &[], &[Some("x"), Some("v")], &[]);
            frontend::execute(out, "a", 0);
            frontend::execute(out, "b", 0);
        },
        |out| frontend::bind(out, ("", "i"), &[], &[Some("x"), Some("v")], &[]),
        |out| {
            frontend::bind(out, ("", "i"), &[], &[Some("x"), Some("v")], &[]);
            frontend::bind(out, ("", "i"), &[], &[Some("1"), Some("v")], &[]);
            frontend::execute(out, "", 0);
        },
    ];
    for wrong in wrongs {
        let answers = stand.same(|client| {
            let mut all = segment(client, |out| frontend::parse(out, "i", INSERT, &[]));
            all.extend(segment(client, wrong));
            all
        });
        assert_eq!(sqlstate(&answers).as_deref(), Some("22P02"));
    }
}
