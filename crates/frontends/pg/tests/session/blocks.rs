//! Transaction blocks: BEGIN reaches the server with the first statement behind it.

use windrow_testkit::pgclient::backend::{first_value, sqlstate};
use windrow_testkit::pgclient::{Client, Message, frontend};
use windrow_testkit::proxy::Proxy;

use crate::lost::over_a_proxy;
use crate::support::{Stand, commands, segment, tags};

fn queries(client: &mut Client, texts: &[&str]) -> Vec<Message> {
    let answers = texts.iter().flat_map(|sql| client.query(sql).unwrap());
    answers.collect()
}

/// Bind, Describe, Execute and Sync of a prepared statement, as libpq sends them.
fn prepared(client: &mut Client, name: &str, values: &[&str]) -> Vec<Message> {
    segment(client, |out| {
        let values: Vec<_> = values.iter().map(|value| Some(*value)).collect();
        frontend::bind(out, ("", name), &[], &values, &[1]);
        frontend::describe(out, b'P', "");
        frontend::execute(out, "", 0);
    })
}

/// Parse, Bind, Describe and Execute of a text without values.
fn unnamed(out: &mut Vec<u8>, sql: &str) {
    frontend::parse(out, "", sql, &[]);
    frontend::bind::<&str>(out, ("", ""), &[], &[], &[]);
    frontend::describe(out, b'P', "");
    frontend::execute(out, "", 0);
}

/// The ReadyForQuery's of answers.
fn statuses(answers: &[Message]) -> String {
    let ready = answers.iter().filter(|message| message.tag == b'Z');
    ready.map(|message| char::from(message.body[0])).collect()
}

#[test]
fn blocks_are_answered_as_alone() {
    let stand = Stand::new();
    stand.executes("create sequence s");
    for begin in [
        "begin",
        "BEGIN;",
        "/* traced */ start transaction",
        "begin work isolation level repeatable read, read only",
        "start transaction isolation level serializable read write not deferrable",
        "begin transaction read only deferrable",
        // Not answered before the server has seen them.
        "begin isolation level read",
        "begin nonsense",
        "begin; begin",
    ] {
        for (first, rest) in [
            ("commit", &[][..]),
            ("rollback work", &["commit"]),
            ("end and no chain", &["select 1"]),
            ("commit and chain", &["rollback and chain", "abort"]),
            ("", &["insert into t values (1, 'a')", "commit"]),
            ("begin", &["insert into t values (1, 'a')", "commit"]),
            ("select 1/0", &["select 1", "commit", "select 2"]),
            ("selec", &["rollback to a", "rollback"]),
            (
                "insert into t values (2, 'b')",
                &[
                    "savepoint a",
                    "insert into t values (2, 'c')",
                    "rollback to a",
                    "commit",
                ],
            ),
            ("savepoint a", &["select 1/0", "rollback to a", "commit"]),
            (
                "set transaction isolation level serializable",
                &["show transaction_isolation", "commit"],
            ),
            (
                "set transaction read only, isolation level repeatable read",
                &["commit", "show transaction_isolation"],
            ),
            (
                "set transaction snapshot 'nowhere'",
                &["show transaction_isolation", "rollback"],
            ),
            (
                "set local work_mem = '1MB'",
                &["show work_mem", "commit", "show work_mem"],
            ),
            (
                "show transaction_isolation",
                &["show transaction_read_only", "commit"],
            ),
            ("set windrow_x.y = 1", &["rollback"]),
            (
                "declare c cursor for values (1), (2)",
                &["fetch 1 from c", "commit", "fetch 1 from c"],
            ),
            (
                "insert into t values (3, 'c'); commit",
                &["select 1", "select count(*) from t"],
            ),
            (
                "rollback; insert into t values (4, 'd')",
                &["commit", "select count(*) from t"],
            ),
            ("prepare transaction 'x'", &["rollback"]),
            ("copy t to stdout", &["commit"]),
            (
                "select nextval('s') > 0",
                &["commit", "select lastval() > 0"],
            ),
            ("release nothing", &["end"]),
            ("vacuum", &["rollback"]),
            ("execute nothing", &["rollback"]),
            ("lock table t", &["end"]),
        ] {
            stand.same(|client| {
                let mut all = queries(client, &["select 1", begin, first]);
                all.extend(queries(client, rest));
                all.extend(queries(client, &["rollback", "select id, v from t"]));
                all
            });
        }
    }
}

#[test]
fn prepared_blocks_are_answered_as_alone() {
    let stand = Stand::new();
    stand.same(|client| {
        let mut all = Vec::new();
        for (name, sql) in [
            ("b", "begin"),
            ("r", "begin isolation level repeatable read"),
            ("c", "commit"),
            ("a", "abort"),
            ("i", "insert into t values ($1)"),
            ("s", "select v from t where id = $1"),
        ] {
            all.extend(segment(client, |out| frontend::parse(out, name, sql, &[])));
        }
        for (nth, (begin, end)) in [("b", "c"), ("r", "a"), ("b", "a"), ("r", "c")]
            .iter()
            .enumerate()
        {
            let id = nth.to_string();
            all.extend(prepared(client, begin, &[]));
            all.extend(prepared(client, end, &[]));
            all.extend(prepared(client, begin, &[]));
            all.extend(prepared(client, "i", &[&id]));
            all.extend(prepared(client, "s", &[&id]));
            all.extend(prepared(client, end, &[]));
            all.extend(prepared(client, begin, &[]));
            all.extend(prepared(client, "i", &["x"]));
            all.extend(prepared(client, "s", &[&id]));
            all.extend(prepared(client, end, &[]));
        }
        all
    });
}

#[test]
fn segments_that_begin_a_block_are_answered_as_alone() {
    let stand = Stand::new();
    type Part = fn(&mut Vec<u8>);
    let begins: [Part; 8] = [
        |out| unnamed(out, "begin"),
        |out| {
            frontend::parse(out, "named", "start transaction read only", &[]);
            frontend::describe(out, b'S', "named");
            frontend::bind::<&str>(out, ("", "named"), &[], &[], &[]);
            frontend::execute(out, "", 1);
            frontend::close(out, b'P', "");
        },
        |out| {
            unnamed(out, "begin");
            unnamed(out, "insert into t values (7, 'x')");
        },
        |out| {
            unnamed(out, "begin");
            unnamed(out, "commit");
        },
        |out| {
            unnamed(out, "begin");
            frontend::execute(out, "", 0);
        },
        |out| {
            frontend::parse(out, "", "begin", &[]);
            frontend::bind::<&str>(out, ("p", ""), &[], &[], &[]);
            frontend::execute(out, "p", 0);
        },
        |out| frontend::parse(out, "", "begin", &[]),
        |out| {
            unnamed(out, "begin");
            frontend::flush(out);
        },
    ];
    let firsts: [Part; 9] = [
        |_| {},
        |out| unnamed(out, "commit"),
        |out| frontend::execute(out, "", 0),
        |out| frontend::describe(out, b'P', ""),
        |out| frontend::close(out, b'P', ""),
        |out| {
            frontend::parse(out, "later", "insert into t values ($1)", &[]);
            frontend::describe(out, b'S', "later");
        },
        |out| unnamed(out, "select 1/0"),
        |out| {
            unnamed(out, "insert into t values (8, 'y')");
            unnamed(out, "insert into t values (8, 'y')");
            unnamed(out, "commit");
        },
        |out| {
            unnamed(out, "insert into t values (9, 'z')");
            unnamed(out, "commit");
            unnamed(out, "begin");
        },
    ];
    for begin in begins {
        for first in firsts {
            stand.same(|client| {
                let mut all = segment(client, begin);
                all.extend(segment(client, first));
                all.extend(segment(client, |out| {
                    unnamed(out, "select count(*) from t");
                }));
                all.extend(queries(client, &["commit", "select id, v from t"]));
                all
            });
        }
    }
}

#[test]
fn pipelines_of_blocks_are_answered_as_alone() {
    let stand = Stand::new();
    for texts in [
        &["begin", "insert into t values (1, 'a')", "commit"][..],
        &["begin", "commit", "begin", "rollback"],
        &[
            "begin",
            "select 1/0",
            "insert into t values (1, 'a')",
            "commit",
        ],
        &[
            "insert into t values (1, 'a')",
            "begin",
            "insert into t values (2, 'b')",
        ],
    ] {
        for alone in [0, 1, 2] {
            for is_simple in [false, true] {
                stand.same(|client| {
                    let (alone, together) = texts.split_at(alone.min(texts.len()));
                    let mut all = queries(client, alone);
                    let mut out = Vec::new();
                    for sql in together {
                        match is_simple {
                            true => frontend::query(&mut out, sql),
                            false => {
                                unnamed(&mut out, sql);
                                frontend::sync(&mut out);
                            }
                        }
                    }
                    client.send(&out).unwrap();
                    for _ in together {
                        all.extend(client.until_ready().unwrap());
                    }
                    all.extend(queries(client, &["commit", "select id, v from t"]));
                    all
                });
            }
        }
    }
}

#[test]
fn windrows_own_settings_begin_the_block() {
    let stand = Stand::new();
    let mut client = stand.client();
    let answers = queries(
        &mut client,
        &[
            "begin",
            "show windrow.join",
            "insert into t values (1, 'a')",
            "set windrow.nothing = 1",
            "commit",
        ],
    );
    assert_eq!(tags(&answers), "CZTDCZCZEZCZ");
    assert_eq!(statuses(&answers), "TTTEI");
    assert_eq!(stand.executes("select count(*) from t"), "0");
    let answers = queries(
        &mut client,
        &["begin", "set windrow.nothing = 1", "select 1", "rollback"],
    );
    assert_eq!(statuses(&answers), "TEEI");
    // Statements of the session are prepared before a text that names them.
    segment(&mut client, |out| {
        frontend::parse(out, "one", "insert into t values ($1)", &[]);
    });
    let answers = queries(&mut client, &["begin", "execute one (5)", "commit"]);
    assert_eq!(commands(&answers), ["BEGIN", "INSERT 0 1", "COMMIT"]);
    assert_eq!(stand.executes("select id from t"), "5");
}

#[test]
fn a_block_without_a_statement_holds_no_connection() {
    let stand = Stand::with(|config| config.max_server_connections = 1, 64 << 20);
    let mut clients: Vec<Client> = (0..3).map(|_| stand.client()).collect();
    for client in &mut clients {
        assert_eq!(statuses(&client.query("begin").unwrap()), "T");
    }
    for (id, client) in clients.iter_mut().enumerate() {
        let insert = format!("insert into t values ({id}, 'a')");
        let answers = queries(client, &[&insert, "commit"]);
        assert_eq!(commands(&answers), ["INSERT 0 1", "COMMIT"]);
    }
    assert_eq!(stand.executes("select count(*) from t"), "3");
    assert_eq!(stand.control.units(), [0; 0]);
}

/// The fewest round trips to the server of texts that are sent one after the other: a session asks
/// from time to time if the catalog is as it was.
fn round_trips(proxy: &Proxy, client: &mut Client, texts: &[&str]) -> u64 {
    let mut trips = || {
        let before = proxy.round_trips();
        queries(client, texts);
        proxy.round_trips() - before
    };
    (0..5).map(|_| trips()).min().unwrap()
}

#[test]
fn begin_takes_no_round_trip() {
    let (stand, proxy, _runtime) = over_a_proxy();
    let mut client = stand.client();
    let block = ["begin", "insert into t values (1, 'a')", "rollback"];
    // The lane's database is not asked any more what the insert means.
    queries(
        &mut client,
        &[
            "insert into t values (7, 'g')",
            "insert into t values (8, 'h')",
        ],
    );
    queries(&mut client, &block);
    assert_eq!(round_trips(&proxy, &mut client, &block), 2);
    assert_eq!(round_trips(&proxy, &mut client, &["begin", "commit"]), 0);
    let modes = [
        "begin",
        "set transaction isolation level serializable",
        "select 1",
        "select 2",
        "commit",
    ];
    queries(&mut client, &modes);
    assert_eq!(round_trips(&proxy, &mut client, &modes), 3);
}

#[test]
fn a_block_that_gets_no_connection_has_failed() {
    let stand = Stand::with(
        |config| {
            config.max_server_connections = 1;
            // Longer than it takes to hand a connection over.
            config.server_wait = std::time::Duration::from_millis(500);
        },
        64 << 20,
    );
    let (mut holder, mut client) = (stand.client(), stand.client());
    queries(&mut holder, &["begin", "lock table t"]);
    for is_simple in [true, false] {
        assert_eq!(statuses(&client.query("begin").unwrap()), "T");
        let insert = "insert into t values (1, 'a')";
        let answers = match is_simple {
            true => client.query(insert).unwrap(),
            false => segment(&mut client, |out| unnamed(out, insert)),
        };
        assert_eq!(sqlstate(&answers).as_deref(), Some("53300"));
        assert_eq!(statuses(&answers), "E");
        // The transaction has failed: what follows needs no connection.
        let mut answers = queries(&mut client, &["select 1", insert, "savepoint a", "begin"]);
        answers.extend(segment(&mut client, |out| unnamed(out, insert)));
        let codes: Vec<_> = answers.iter().filter_map(Message::sqlstate).collect();
        assert_eq!(codes, ["25P02"; 5]);
        assert_eq!(statuses(&answers), "EEEEE");
        let answers = client.query("commit").unwrap();
        assert_eq!(commands(&answers), ["ROLLBACK"]);
        assert_eq!(statuses(&answers), "I");
    }
    // Once there is a connection, the transaction has failed on it.
    queries(&mut client, &["begin", "select 1"]);
    queries(&mut holder, &["commit"]);
    let answers = queries(&mut client, &["select 1", "savepoint a", "rollback to a"]);
    let codes: Vec<_> = answers.iter().filter_map(Message::sqlstate).collect();
    assert_eq!(codes, ["25P02", "25P02", "3B001"]);
    let answers = queries(
        &mut client,
        &["rollback; insert into t values (2, 'b')", "commit"],
    );
    assert_eq!(statuses(&answers), "II");
    assert_eq!(stand.executes("select id from t"), "2");
}

/// A client whose next BEGIN the server refuses: it has lost the statement that Windrow prepared.
fn with_a_refused_begin(stand: &Stand) -> Client {
    let mut client = stand.client();
    refuse_begin(&mut client);
    client
}

fn refuse_begin(client: &mut Client) {
    queries(
        client,
        &["do $$ begin end $$", "begin", "select 1", "commit"],
    );
    let loses = "do $$ begin execute 'deallocate all'; end $$";
    let answers = queries(client, &[loses, "begin"]);
    assert_eq!(commands(&answers), ["DO", "BEGIN"]);
}

/// A client that has prepared `s` on another server connection than it gets now: a session that is
/// returned with it holds that one.
fn prepared_elsewhere(stand: &Stand) -> (Client, Client) {
    let (mut client, mut holder) = (stand.client(), stand.client());
    segment(&mut client, |out| {
        frontend::parse(out, "s", "select v from t where id = 1", &[]);
        frontend::describe(out, b'S', "s");
    });
    queries(&mut holder, &["begin", "select 1"]);
    (client, holder)
}

#[test]
fn what_follows_a_begin_that_the_server_refuses_is_not_executed() {
    let stand = Stand::new();
    let inserts = |id: u32| format!("insert into t values ({id}, 'a')");
    let query = |out: &mut Vec<u8>, sql: &str| frontend::query(out, sql);
    let extended = |out: &mut Vec<u8>, sql: &str| {
        unnamed(out, sql);
        frontend::sync(out);
    };
    for send in [query, extended] {
        let mut client = with_a_refused_begin(&stand);
        let mut out = Vec::new();
        for id in 1..4 {
            send(&mut out, &inserts(id));
        }
        client.send(&out).unwrap();
        let mut answers = Vec::new();
        for _ in 1..4 {
            answers.extend(client.until_ready().unwrap());
        }
        let codes: Vec<_> = answers.iter().filter_map(Message::sqlstate).collect();
        assert_eq!(codes, ["26000", "25P02", "25P02"]);
        assert_eq!(statuses(&answers), "EEE");
        let answers = queries(&mut client, &["commit", "begin", &inserts(9), "rollback"]);
        assert_eq!(
            commands(&answers),
            ["ROLLBACK", "BEGIN", "INSERT 0 1", "ROLLBACK"]
        );
    }
    // With a segment that has not ended, and with a text that waits for the beginning.
    let mut client = with_a_refused_begin(&stand);
    let mut out = Vec::new();
    unnamed(&mut out, &inserts(1));
    frontend::flush(&mut out);
    client.send(&out).unwrap();
    let error = client.receive().unwrap().unwrap();
    assert_eq!(error.sqlstate().as_deref(), Some("26000"));
    let answers = segment(&mut client, |out| unnamed(out, &inserts(2)));
    assert_eq!(tags(&answers), "Z");
    assert_eq!(statuses(&answers), "E");
    let mut client = with_a_refused_begin(&stand);
    let answers = queries(&mut client, &["show windrow.join", &inserts(1), "rollback"]);
    let codes: Vec<_> = answers.iter().filter_map(Message::sqlstate).collect();
    assert_eq!(codes, ["26000", "25P02"]);
    assert_eq!(statuses(&answers), "EEI");
    // With a statement that is prepared behind the beginning.
    let (mut client, _holder) = prepared_elsewhere(&stand);
    refuse_begin(&mut client);
    let mut answers = prepared(&mut client, "s", &[]);
    answers.extend(prepared(&mut client, "s", &[]));
    assert_eq!(tags(&answers), "EZEZ");
    let codes: Vec<_> = answers.iter().filter_map(Message::sqlstate).collect();
    assert_eq!(codes, ["26000", "25P02"]);
    let answers = queries(&mut client, &["rollback"]);
    assert_eq!(commands(&answers), ["ROLLBACK"]);
    assert_eq!(tags(&prepared(&mut client, "s", &[])), "2TCZ");
    assert_eq!(stand.executes("select count(*) from t"), "0");
}

#[test]
fn a_stop_ends_a_block_without_a_statement() {
    let stand = Stand::new();
    let mut client = stand.client();
    client.query("begin").unwrap();
    stand.stop.cancel();
    let answer = client.receive().unwrap().unwrap();
    assert_eq!(answer.sqlstate().as_deref(), Some("57P01"));
    assert_eq!(client.receive().unwrap(), None);
}

#[test]
fn a_first_statement_is_cancelled_and_its_block_has_failed() {
    let stand = Stand::with(|config| config.max_server_connections = 1, 64 << 20);
    let (mut holder, mut client) = (stand.client(), stand.client());
    queries(&mut holder, &["begin", "lock table t"]);
    client.query("begin").unwrap();
    let mut out = Vec::new();
    frontend::query(&mut out, "update t set v = 'a' where id = 1");
    client.send(&out).unwrap();
    client.cancel().unwrap();
    let answers = client.until_ready().unwrap();
    assert_eq!(sqlstate(&answers).as_deref(), Some("57014"));
    assert_eq!(statuses(&answers), "E");
    queries(&mut holder, &["commit"]);
    assert_eq!(commands(&client.query("end").unwrap()), ["ROLLBACK"]);
    // The cancelled statement of a block that a connection executes.
    client.query("begin").unwrap();
    let mut out = Vec::new();
    let sleeps = "do $$ begin raise notice 'go'; perform pg_sleep(60); end $$";
    frontend::query(&mut out, sleeps);
    client.send(&out).unwrap();
    assert_eq!(client.receive().unwrap().unwrap().tag, b'N');
    client.cancel().unwrap();
    let answers = client.until_ready().unwrap();
    assert_eq!(sqlstate(&answers).as_deref(), Some("57014"));
    assert_eq!(statuses(&answers), "E");
    assert_eq!(commands(&client.query("commit").unwrap()), ["ROLLBACK"]);
    assert_eq!(
        first_value(&client.query("select 1").unwrap()).as_deref(),
        Some("1")
    );
}

#[test]
fn sessions_that_keep_their_connection_are_answered_as_alone() {
    let stand = Stand::new();
    stand.executes("create table g (id serial, v text)");
    for keeps in [
        "create temp table mine (a int)",
        "listen nothing",
        "select pg_advisory_lock(1)",
        "insert into g (v) select 'x' returning v",
    ] {
        stand.same(|client| {
            let mut all = queries(client, &[keeps]);
            all.extend(queries(client, &["begin", "commit"]));
            all.extend(queries(
                client,
                &["begin", "select 1", "select lastval() > 0", "commit"],
            ));
            all.extend(segment(client, |out| unnamed(out, "begin")));
            all.extend(segment(client, |out| {
                unnamed(out, "insert into t values (1, 'a')");
            }));
            all.extend(segment(client, |out| unnamed(out, "rollback")));
            all.extend(queries(client, &["begin", "begin", "end", "end"]));
            all.extend(queries(client, &["discard all"]));
            all
        });
    }
}

#[test]
fn a_block_may_begin_with_a_long_message() {
    let stand = Stand::new();
    // Far more than what is read at once.
    let long = "x".repeat(2 << 20);
    stand.same(|client| {
        let mut all = queries(client, &["begin"]);
        all.extend(queries(
            client,
            &[
                &format!("insert into t values (1, '{long}')"),
                "commit",
                "begin",
            ],
        ));
        all.extend(segment(client, |out| {
            unnamed(out, &format!("insert into t values (2, '{long}')"));
        }));
        all.extend(queries(client, &["rollback"]));
        all.extend(segment(client, |out| {
            frontend::parse(out, "i", "insert into t values ($1, $2)", &[]);
        }));
        all.extend(queries(client, &["begin"]));
        all.extend(prepared(client, "i", &["3", &long]));
        all.extend(queries(
            client,
            &["commit", "select id, length(v) from t order by id"],
        ));
        all
    });
}

#[test]
fn a_flush_or_sync_begins_no_block() {
    let stand = Stand::with(|config| config.max_server_connections = 1, 64 << 20);
    for keeps in ["select 1", "create temp table mine (a int)"] {
        stand.same(|client| {
            let mut all = queries(client, &[keeps, "begin"]);
            let mut out = Vec::new();
            frontend::flush(&mut out);
            frontend::sync(&mut out);
            client.send(&out).unwrap();
            all.extend(client.until_ready().unwrap());
            all.extend(queries(client, &["set transaction read only", "commit"]));
            all
        });
    }
}

#[test]
fn a_name_that_sql_has_prepared_is_taken() {
    let stand = Stand::new();
    stand.same(|client| {
        let mut all = queries(client, &["prepare x as select 1"]);
        for name in ["x", "y", ""] {
            all.extend(segment(client, |out| {
                frontend::parse(out, name, "begin", &[]);
                frontend::bind::<&str>(out, ("", name), &[], &[], &[]);
                frontend::execute(out, "", 0);
            }));
            all.extend(queries(client, &["rollback", "execute x"]));
        }
        all
    });
}

#[test]
fn a_connection_lost_after_a_refused_begin_leaves_nothing_unknown() {
    let passed_over: fn(&mut Client) = |client| {
        let mut out = Vec::new();
        unnamed(&mut out, "select 1/0");
        frontend::query(&mut out, "insert into t values (2, 'b')");
        frontend::sync(&mut out);
        client.send(&out).unwrap();
        assert_eq!(tags(&client.until_ready().unwrap()), "1EZ");
    };
    let refused: fn(&mut Client) = |client| {
        refuse_begin(client);
        let answers = queries(client, &["select 1", "rollback"]);
        assert_eq!(sqlstate(&answers).as_deref(), Some("26000"));
    };
    for fails in [passed_over, refused] {
        let (stand, proxy, _runtime) = over_a_proxy();
        let mut client = stand.client();
        queries(&mut client, &["do $$ begin end $$"]);
        fails(&mut client);
        let answers = queries(&mut client, &["insert into t values (1, 'a')"]);
        assert_eq!(commands(&answers), ["INSERT 0 1"]);
        proxy.cut();
        let last = client.receive().unwrap().unwrap();
        assert_eq!(last.sqlstate().as_deref(), Some("57P01"));
    }
}

#[test]
fn an_error_that_ends_the_connection_reaches_a_client_that_prepares() {
    let stand = Stand::new();
    let bound = |out: &mut Vec<u8>| {
        frontend::bind::<&str>(out, ("", "s"), &[], &[], &[]);
        frontend::execute(out, "", 0);
        frontend::sync(out);
    };
    let executed = |out: &mut Vec<u8>| frontend::query(out, "execute s");
    for sends in [bound as fn(&mut Vec<u8>), executed] {
        let (mut client, mut holder) = prepared_elsewhere(&stand);
        queries(&mut holder, &["lock table t"]);
        client.query("begin").unwrap();
        let mut out = Vec::new();
        sends(&mut out);
        client.send(&out).unwrap();
        let ends = "select count(pg_terminate_backend(pid)) from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'";
        while stand.executes(ends) == "0" {
            std::thread::yield_now();
        }
        let last = client.receive().unwrap().unwrap();
        assert_eq!(last.sqlstate().as_deref(), Some("57P01"));
        assert_eq!(client.receive().unwrap(), None);
    }
    // An error whose text is the name of a severity ends nothing.
    stand.same(|client| {
        let raises = "do $$ begin raise exception 'VFATAL'; end $$";
        let mut all = segment(client, |out| {
            unnamed(out, raises);
            unnamed(out, "select 1");
        });
        all.extend(queries(client, &["begin", raises, "rollback", "select 1"]));
        all
    });
}
