//! Statements that are relayed.

use std::io::{Read, Write};

use windrow_testkit::command::until;
use windrow_testkit::pgclient::backend::{first_value, sqlstate};
use windrow_testkit::pgclient::{Client, Message, frontend};

use crate::support::{Stand, commands, segment, tags};

fn queries(client: &mut Client, texts: &[&str]) -> Vec<Message> {
    let answers = texts.iter().flat_map(|sql| client.query(sql).unwrap());
    answers.collect()
}

#[test]
fn reads_transactions_and_errors_are_answered_as_alone() {
    let stand = Stand::new();
    stand.same(|client| {
        queries(
            client,
            &[
                "insert into t values (1, 'a')",
                "select * from t order by id",
                "select 1/0",
                "begin",
                "insert into t values (2, 'b')",
                "select * from nowhere",
                "select 1",
                "rollback",
                "insert into t values (3, 'c')",
                "begin; insert into t values (4, 'd'); commit; select 7",
                "select id from t order by id",
                "selec",
                "do $$ begin raise notice 'hello'; end $$",
            ],
        )
    });
}

#[test]
fn statements_are_gone_behind_what_removes_all_of_them() {
    let stand = Stand::new();
    for clears in ["discard all", "deallocate all", "DEALLOCATE PREPARE ALL;"] {
        stand.same(|client| {
            let select = "select $1::int8";
            let mut all = segment(client, |out| frontend::parse(out, "s", select, &[]));
            all.extend(segment(client, |out| {
                frontend::parse(out, "", clears, &[]);
                frontend::bind(out, ("", ""), &[], &[None::<&str>; 0], &[]);
                frontend::execute(out, "", 0);
                frontend::parse(out, "s", select, &[]);
                frontend::bind(out, ("", "s"), &[], &[Some("1")], &[]);
                frontend::execute(out, "", 0);
            }));
            let mut both = Vec::new();
            frontend::query(&mut both, clears);
            frontend::describe(&mut both, b'S', "s");
            frontend::sync(&mut both);
            client.send(&both).unwrap();
            all.extend(client.until_ready().unwrap());
            all.extend(client.until_ready().unwrap());
            all
        });
    }
}

#[test]
fn prepared_reads_go_on_over_any_server_connection() {
    let stand = Stand::new();
    stand.same(|client| {
        let mut all = segment(client, |out| {
            frontend::parse(out, "s", "select v from t where id = $1", &[]);
            frontend::describe(out, b'S', "s");
            frontend::parse(out, "", "select 1", &[]);
        });
        for id in ["1", "2", "x", "1"] {
            all.extend(
                client
                    .query(&format!("insert into t values ('{id}', 'v{id}')"))
                    .unwrap(),
            );
            all.extend(segment(client, |out| {
                frontend::bind(out, ("", "s"), &[], &[Some(id)], &[]);
                frontend::describe(out, b'P', "");
                frontend::execute(out, "", 0);
            }));
        }
        // A simple query takes the unnamed statement away.
        all.extend(segment(client, |out| {
            frontend::bind::<&str>(out, ("", ""), &[], &[], &[]);
        }));
        all.extend(segment(client, |out| {
            frontend::parse(out, "s", "select 2", &[]);
            frontend::bind(out, ("", "s"), &[], &[Some("1")], &[]);
        }));
        all.extend(segment(client, |out| {
            frontend::close(out, b'S', "s");
            frontend::close(out, b'S', "nobody");
            frontend::bind(out, ("", "s"), &[], &[Some("1")], &[]);
        }));
        all.extend(segment(client, |out| {
            frontend::parse(out, "s", "select 2", &[]);
            frontend::bind::<&str>(out, ("p", "s"), &[], &[], &[]);
            frontend::execute(out, "p", 0);
            frontend::execute(out, "p", 0);
            frontend::close(out, b'P', "p");
        }));
        all
    });
}

#[test]
fn what_is_passed_over_after_an_error_leaves_no_trace() {
    let stand = Stand::new();
    stand.same(|client| {
        let mut all = segment(client, |out| {
            frontend::parse(out, "a", "select 1", &[]);
            frontend::parse(out, "bad", "selec", &[]);
            frontend::parse(out, "b", "select 2", &[]);
            frontend::close(out, b'S', "a");
        });
        for name in ["a", "b", "bad"] {
            all.extend(segment(client, |out| {
                frontend::bind::<&str>(out, ("", name), &[], &[], &[]);
                frontend::execute(out, "", 0);
            }));
        }
        all.extend(client.query("begin").unwrap());
        all.extend(client.query("select 1/0").unwrap());
        all.extend(segment(client, |out| {
            frontend::parse(out, "c", "select 3", &[]);
            frontend::bind::<&str>(out, ("", "c"), &[], &[], &[]);
        }));
        all.extend(segment(client, |out| {
            frontend::parse(out, "a", "select 3", &[]);
        }));
        all.extend(client.query("rollback").unwrap());
        all.extend(segment(client, |out| {
            frontend::bind::<&str>(out, ("", "c"), &[], &[], &[]);
        }));
        all
    });
}

#[test]
fn a_flush_in_the_middle_is_answered_once() {
    let stand = Stand::new();
    stand.same(|client| {
        let mut out = Vec::new();
        frontend::parse(&mut out, "i", "insert into t values ($1, 'a')", &[]);
        frontend::describe(&mut out, b'S', "i");
        frontend::flush(&mut out);
        client.send(&out).unwrap();
        let mut all: Vec<_> = (0..3).map(|_| client.receive().unwrap().unwrap()).collect();
        out.clear();
        frontend::bind(&mut out, ("", "i"), &[], &[Some("1")], &[]);
        frontend::execute(&mut out, "", 0);
        frontend::flush(&mut out);
        client.send(&out).unwrap();
        all.extend((0..2).map(|_| client.receive().unwrap().unwrap()));
        all.extend(segment(client, |out| {
            frontend::bind(out, ("", "i"), &[], &[Some("1")], &[]);
            frontend::execute(out, "", 0);
        }));
        all.extend(client.query("select * from t").unwrap());
        all
    });
}

#[test]
fn copy_goes_both_ways() {
    let stand = Stand::new();
    stand.same(|client| {
        let mut all = Vec::new();
        let mut out = Vec::new();
        frontend::query(&mut out, "copy t from stdin");
        for id in 0..20_000 {
            frontend::copy_data(&mut out, format!("{id}\tvalue {id}\n").as_bytes());
        }
        frontend::copy_done(&mut out);
        client.send(&out).unwrap();
        all.extend(client.until_ready().unwrap());
        all.extend(
            client
                .query("copy (select * from t order by id) to stdout")
                .unwrap(),
        );
        // As libpq does it: the Sync behind Execute is passed over by the server.
        all.extend(client.query("insert into t values (-1, 'a')").unwrap());
        let mut out = Vec::new();
        frontend::parse(&mut out, "", "copy t from stdin", &[]);
        frontend::bind::<&str>(&mut out, ("", ""), &[], &[], &[]);
        frontend::execute(&mut out, "", 0);
        frontend::sync(&mut out);
        client.send(&out).unwrap();
        all.extend((0..3).map(|_| client.receive().unwrap().unwrap()));
        let mut out = Vec::new();
        frontend::copy_data(&mut out, b"-2\tx\n");
        frontend::copy_done(&mut out);
        frontend::sync(&mut out);
        client.send(&out).unwrap();
        all.extend(client.until_ready().unwrap());
        let mut out = Vec::new();
        frontend::query(&mut out, "copy t from stdin");
        frontend::copy_fail(&mut out, "no more");
        frontend::copy_data(&mut out, b"-2\tx\n");
        client.send(&out).unwrap();
        all.extend(client.until_ready().unwrap());
        all.extend(client.query("select count(*), min(id) from t").unwrap());
        all
    });
}

#[test]
fn a_setting_moves_the_session_to_its_lane() {
    let stand = Stand::new();
    stand.executes("create schema other; create table other.t (id int, v text)");
    // Settings of one session alone get no lane.
    let mut others = [stand.client(), stand.client()];
    for (other, set) in others
        .iter_mut()
        .zip(["set search_path = other", "set search_path to public"])
    {
        queries(other, &[set, "insert into other.t values (0, 'alone')"]);
    }
    let mut client = stand.client();
    queries(
        &mut client,
        &[
            "insert into t values (1, 'a')",
            "set search_path = other",
            "insert into t values (2, 'b')",
            "begin",
            "set search_path = public",
            "rollback",
            "insert into t values (3, 'c')",
            "begin",
            "set search_path to public",
            "commit",
            "insert into t values (4, 'd')",
            "reset search_path",
            "insert into t values (5, 'e')",
        ],
    );
    let opened = stand.control.opened.lock().unwrap().clone();
    assert_eq!(opened[1], ["set search_path = other"]);
    assert_eq!(opened[2], ["set search_path to public"]);
    assert_eq!(stand.control.units().len(), 5);
    assert_eq!(
        stand.executes("select string_agg(id::text, ',' order by id) from t"),
        "1,4,5"
    );
    assert_eq!(
        stand.executes("select string_agg(id::text, ',' order by id) from other.t"),
        "0,0,2,3"
    );
}

#[test]
fn state_of_the_session_keeps_its_connection() {
    let stand = Stand::new();
    let mut client = stand.client();
    let answers = queries(
        &mut client,
        &[
            "create temp table t (id int)",
            "insert into t values (1)",
            "insert into t values (2)",
            "select count(*) from t",
        ],
    );
    assert_eq!(first_value(&answers).as_deref(), Some("2"));
    assert_eq!(stand.control.units().len(), 0);
    queries(
        &mut client,
        &[
            "drop table t",
            "discard all",
            "insert into t values (3, 'a')",
        ],
    );
    assert_eq!(stand.control.units(), [1]);
    assert_eq!(stand.executes("select count(*) from t"), "1");
}

#[test]
fn notifications_come_to_who_listens() {
    let stand = Stand::new();
    let mut client = stand.client();
    client.query("listen news").unwrap();
    stand.executes("notify news, 'hello'");
    let message = client.receive().unwrap().unwrap();
    assert_eq!(
        (message.tag, message.body.ends_with(b"news\0hello\0")),
        (b'A', true)
    );
}

#[test]
fn windrows_own_settings_never_reach_the_server() {
    let stand = Stand::new();
    let mut client = stand.client();
    let show = |client: &mut Client| first_value(&client.query("show windrow.join").unwrap());
    assert_eq!(show(&mut client).as_deref(), Some("on"));
    let answers = client.query("set windrow.join = off").unwrap();
    assert_eq!(commands(&answers), ["SET"]);
    assert_eq!(show(&mut client).as_deref(), Some("off"));
    client.query("insert into t values (1, 'a')").unwrap();
    assert_eq!(stand.control.units().len(), 0);
    queries(
        &mut client,
        &["set windrow.join to on", "insert into t values (2, 'a')"],
    );
    let unknown = client.query("set windrow.joni = 1").unwrap();
    assert_eq!(sqlstate(&unknown).as_deref(), Some("42704"));
    let later = client.query("set windrow.ack = 'spool'").unwrap();
    assert_eq!(sqlstate(&later).as_deref(), Some("0A000"));
    // Also in a transaction, which fails by a bad one.
    queries(&mut client, &["begin", "set windrow.join = off"]);
    assert_eq!(show(&mut client).as_deref(), Some("off"));
    let answers = queries(
        &mut client,
        &["set windrow.nothing = 1", "select 1", "rollback"],
    );
    assert_eq!(tags(&answers), "EZEZCZ");
    // And in the extended protocol.
    let answers = segment(&mut client, |out| {
        frontend::parse(out, "", "show windrow.join", &[]);
        frontend::bind::<&str>(out, ("", ""), &[], &[], &[]);
        frontend::describe(out, b'P', "");
        frontend::execute(out, "", 0);
    });
    assert_eq!(tags(&answers), "12TDCZ");
}

#[test]
fn a_running_statement_is_cancelled() {
    let stand = Stand::new();
    let mut client = stand.client();
    let mut out = Vec::new();
    frontend::query(
        &mut out,
        "do $$ begin raise notice 'go'; perform pg_sleep(60); end $$",
    );
    client.send(&out).unwrap();
    assert_eq!(client.receive().unwrap().unwrap().tag, b'N');
    client.cancel().unwrap();
    let answer = client.until_ready().unwrap();
    assert_eq!(sqlstate(&answer).as_deref(), Some("57014"));
    assert_eq!(tags(&client.query("select 1").unwrap()), "TDCZ");
}

#[test]
fn a_server_that_ends_the_session_is_heard() {
    let stand = Stand::new();
    let mut client = stand.client();
    client.query("begin").unwrap();
    let pid = first_value(&client.query("select pg_backend_pid()").unwrap()).unwrap();
    stand.executes(&format!("select pg_terminate_backend({pid})"));
    let message = client.receive().unwrap().unwrap();
    assert_eq!(message.sqlstate().as_deref(), Some("57P01"));
    assert_eq!(client.receive().unwrap(), None);
}

#[test]
fn a_client_that_does_not_read_is_waited_for_without_memory() {
    let stand = Stand::new();
    let mut slow = stand.client();
    let mut out = Vec::new();
    // 200 MB of rows, and as much that is sent meanwhile.
    frontend::query(
        &mut out,
        "select repeat('x', 1000) from generate_series(1, 200000)",
    );
    slow.send(&out).unwrap();
    let mut other = stand.client();
    for id in 0..100 {
        let sql = format!("insert into t values ({id}, 'a')");
        assert_eq!(commands(&other.query(&sql).unwrap()), ["INSERT 0 1"]);
    }
    let answer = slow.until_ready().unwrap();
    assert_eq!(answer.len(), 200_003);
}

#[test]
fn large_messages_in_both_directions_do_not_stand_in_each_others_way() {
    let stand = Stand::new();
    let mut client = stand.client();
    let value = "y".repeat(3_000_000);
    let mut out = Vec::new();
    frontend::parse(&mut out, "e", "select $1::text", &[]);
    for _ in 0..20 {
        frontend::bind(&mut out, ("", "e"), &[], &[Some(&*value)], &[]);
        frontend::execute(&mut out, "", 0);
    }
    frontend::sync(&mut out);
    let mut stream = client.stream().try_clone().unwrap();
    let sending = std::thread::spawn(move || stream.write_all(&out).unwrap());
    let answers = client.until_ready().unwrap();
    sending.join().unwrap();
    println!("{}", tags(&answers));
    let rows = answers.iter().filter(|m| m.tag == b'D');
    assert_eq!(rows.filter(|m| m.body.len() == 3_000_006).count(), 20);
    assert_eq!(stand.budget.held(), 0);
}

/// A statement that waits for a lock, with a text or a value that takes most of the memory for long
/// messages while it comes.
#[test]
fn a_long_message_that_was_sent_leaves_its_memory_to_others() {
    let stand = Stand::with(|_| {}, 32 << 20);
    let long = "x".repeat(3_000_000);
    let is_waiting = || {
        let locks = "select count(*) from pg_locks where relation = 't'::regclass and not granted";
        stand.executes(locks) == "1"
    };
    let text = format!("select count(*) from t /* {long} */");
    let by_query = |out: &mut Vec<u8>| frontend::query(out, &text);
    let by_value = |out: &mut Vec<u8>| {
        frontend::parse(out, "", "select count(*) from t where v <> $1", &[]);
        frontend::bind(out, ("", ""), &[], &[Some(&*long)], &[]);
        frontend::execute(out, "", 0);
        frontend::sync(out);
    };
    for messages in [&by_query as &dyn Fn(&mut Vec<u8>), &by_value] {
        let mut holder = stand.direct();
        queries(&mut holder, &["begin", "lock table t"]);
        let mut client = stand.client();
        let mut out = Vec::new();
        messages(&mut out);
        client.send(&out).unwrap();
        until("the statement waits", is_waiting);
        let answer = stand.client().query(&format!("select 7 /* {long} */"));
        assert_eq!(first_value(&answer.unwrap()).as_deref(), Some("7"));
        assert!(is_waiting());
        holder.query("commit").unwrap();
        let answer = client.until_ready().unwrap();
        assert_eq!(first_value(&answer).as_deref(), Some("0"));
    }
    assert_eq!(stand.budget.held(), 0);
}

#[test]
fn a_stop_ends_idle_sessions_and_lets_others_finish() {
    let stand = Stand::new();
    let mut idle = stand.client();
    let mut busy = stand.client();
    let mut out = Vec::new();
    frontend::query(
        &mut out,
        "do $$ begin raise notice 'go'; perform pg_sleep(0.5); end $$",
    );
    busy.send(&out).unwrap();
    assert_eq!(busy.receive().unwrap().unwrap().tag, b'N');
    stand.stop.cancel();
    let answer = idle.receive().unwrap().unwrap();
    assert_eq!(answer.sqlstate().as_deref(), Some("57P01"));
    assert_eq!(idle.receive().unwrap(), None);
    assert_eq!(tags(&busy.until_ready().unwrap()), "CZ");
    assert_eq!(
        busy.receive().unwrap().unwrap().sqlstate().as_deref(),
        Some("57P01")
    );
}

#[test]
fn a_client_that_leaves_with_a_statement_under_way_leaves_nothing_open() {
    let stand = Stand::new();
    let mut client = stand.client();
    client.query("begin").unwrap();
    client.query("insert into t values (1, 'a')").unwrap();
    let mut out = Vec::new();
    frontend::terminate(&mut out);
    client.send(&out).unwrap();
    let mut rest = Vec::new();
    client.stream().read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty());
    // The row's lock is gone once the transaction was rolled back.
    let mut other = stand.client();
    assert_eq!(
        commands(&other.query("insert into t values (1, 'b')").unwrap()),
        ["INSERT 0 1"]
    );
}

#[test]
fn garbage_ends_the_connection_with_a_word() {
    let stand = Stand::new();
    for (bytes, code) in [
        (&b"\xff\0\0\0\x04"[..], "08P01"),
        (b"Q\0\0\0\x03", "08P01"),
        (b"Q\xff\xff\xff\xff", "08P01"),
        (b"S\0\0\xff\xff", "08P01"),
    ] {
        for before in ["select 1", "begin"] {
            let mut client = stand.client();
            client.query(before).unwrap();
            client.send(bytes).unwrap();
            let answer = client.receive().unwrap().unwrap();
            assert_eq!(answer.sqlstate().as_deref(), Some(code), "{bytes:?}");
            assert_eq!(client.receive().unwrap(), None);
        }
    }
}

#[test]
fn deallocate_finds_the_statements_of_the_session() {
    let stand = Stand::new();
    stand.same(|client| {
        let mut all = Vec::new();
        for wrap in [false, true] {
            all.extend(segment(client, |out| {
                frontend::parse(out, "a", "select 1", &[]);
                frontend::parse(out, "B", "insert into t values ($1)", &[]);
                frontend::parse(out, "c", "select 3", &[]);
            }));
            if wrap {
                all.extend(client.query("begin").unwrap());
            }
            all.extend(queries(
                client,
                &["deallocate a", "DEALLOCATE PREPARE \"B\" ; "],
            ));
            all.extend(segment(client, |out| {
                frontend::parse(out, "", "deallocate c", &[]);
                frontend::bind::<&str>(out, ("", ""), &[], &[], &[]);
                frontend::describe(out, b'P', "");
                frontend::execute(out, "", 0);
            }));
            all.extend(client.query("commit").unwrap());
            for name in ["a", "B", "c"] {
                all.extend(segment(client, |out| {
                    frontend::bind::<&str>(out, ("", name), &[], &[], &[]);
                }));
            }
            all.extend(queries(client, &["deallocate a", "deallocate all"]));
        }
        all
    });
}

#[test]
fn many_messages_without_waiting_are_all_answered() {
    let stand = Stand::new();
    stand.same(|client| {
        let mut out = Vec::new();
        frontend::query(&mut out, "begin");
        // More than may be outstanding at once, with questions to the session itself between them.
        for id in 0..10_000 {
            frontend::parse(&mut out, "", "select $1::int", &[]);
            let id = id.to_string();
            frontend::bind(&mut out, ("", ""), &[], &[Some(&*id)], &[]);
            frontend::execute(&mut out, "", 0);
            if id.ends_with("00") {
                frontend::sync(&mut out);
            }
        }
        frontend::sync(&mut out);
        frontend::query(&mut out, "commit");
        frontend::query(&mut out, "select 'end'");
        let mut stream = client.stream().try_clone().unwrap();
        let sending = std::thread::spawn(move || stream.write_all(&out).unwrap());
        let mut all = Vec::new();
        for _ in 0..103 {
            all.extend(client.until_ready().unwrap());
        }
        sending.join().unwrap();
        all
    });
}
