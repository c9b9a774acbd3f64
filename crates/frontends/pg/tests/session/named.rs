//! Prepared statements and the texts that name them: each program runs through the frontend and
//! past it, and every answer is the same.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use windrow_testkit::pgclient::{Client, Message, backend, frontend};

use crate::support::{Stand, segment};

fn queries(client: &mut Client, texts: &[&str]) -> Vec<Message> {
    let answers = texts.iter().flat_map(|sql| client.query(sql).unwrap());
    answers.collect()
}

/// Parse and Describe.
fn prepared(client: &mut Client, name: &str, sql: &str) -> Vec<Message> {
    segment(client, |out| {
        frontend::parse(out, name, sql, &[]);
        frontend::describe(out, b'S', name);
    })
}

/// Bind and Execute.
fn used(client: &mut Client, name: &str, values: &[Option<&str>]) -> Vec<Message> {
    segment(client, |out| {
        frontend::bind(out, ("", name), &[], values, &[]);
        frontend::execute(out, "", 0);
    })
}

/// The whole of a text by the extended protocol.
fn executed(client: &mut Client, sql: &str) -> Vec<Message> {
    segment(client, |out| {
        frontend::parse(out, "", sql, &[]);
        frontend::bind(out, ("", ""), &[], &[None::<&str>; 0], &[]);
        frontend::describe(out, b'P', "");
        frontend::execute(out, "", 0);
    })
}

#[test]
fn texts_that_name_prepared_statements_mean_those_of_the_session() {
    let stand = Stand::new();
    for sql in [
        "SAVEPOINT x;DEALLOCATE \"_PLAN1\";RELEASE x",
        "/* a */ deallocate /* b */ \"_PLAN1\" -- c",
        "deallocate prepare \"_PLAN1\"",
        "deallocate \"_PLAN1\"; deallocate \"_PLAN1\"",
        "deallocate \"_PLAN1\"; execute \"_PLAN1\"(1)",
        "deallocate all; execute \"_PLAN1\"(1)",
        "deallocate \"_PLAN1\"; select 1/0",
        "deallocate \"_PLAN1\"; prepare \"_PLAN1\" as select 7",
        "select 1/0; deallocate \"_PLAN1\"",
        "-- a\nexecute \"_PLAN1\" (1)",
        "select 5; execute \"_PLAN1\"(1); select 6",
        "execute \"_PLAN1\"(nowhere)",
        "select 'ö'; execute \"_PLAN1\"(1); execute gone; execute \"_PLAN1\"(nowhere)",
        "execute \"_PLAN1\"(1) nonsense",
        "execute \"_PLAN1\"",
        "explain (costs off) execute \"_PLAN1\"(1)",
        "explain execute nowhere",
        "create temp table made as execute \"_PLAN1\"(1)",
        "prepare \"_PLAN1\" as select 1",
        "prepare \"_PLAN1\" as select nowhere",
        "prepare other as select 3; execute other; deallocate other",
        "execute _plan1(1)",
        "rollback; execute \"_PLAN1\"(1)",
        "rollback; deallocate \"_PLAN1\"",
        "rollback; explain (analyze, costs off, timing off, summary off) execute \"_PLAN1\"(1)",
        "rollback; begin; execute \"_PLAN1\"(1); select 1/0",
        "rollback to y; execute \"_PLAN1\"(1)",
        "abort; select 4; deallocate \"_PLAN1\"; execute \"_PLAN1\"(1)",
        "explain (analyze, costs off, timing off, summary off) execute \"_PLAN1\"(1)",
        "deallocate U&\"_\\0050LAN1\"",
        "deallocate U&\"_\\0050LAN1\"; select 3",
        "deallocate prepare U&\"_!0050LAN1\" uescape '!'",
        "execute U&\"_!0050LAN1\" uescape '!' (1)",
        "execute U&\"_\\+000050LAN1\"(nowhere)",
        "explain (costs off) execute U&\"_\\0050LAN1\"(1)",
        "prepare U&\"_\\0050LAN1\" as select 1",
        "execute U&\"_\\005LAN1\"(1)",
        "deallocate U&\"_\\0050LAN2\"",
    ] {
        for block in [&["begin", "savepoint y"][..], &[], &["begin", "select 1/0"]] {
            for extended in [false, true] {
                stand.same(|client| {
                    let mut all = queries(client, &["insert into t values (1, 'one')"]);
                    let select = "select v from t where id = $1";
                    all.extend(prepared(client, "_PLAN1", select));
                    all.extend(prepared(client, "gone", "select 'gone'"));
                    all.extend(queries(client, &["select 2"]));
                    all.extend(queries(client, block));
                    match extended {
                        true => all.extend(executed(client, sql)),
                        false => all.extend(client.query(sql).unwrap()),
                    }
                    all.extend(used(client, "_PLAN1", &[Some("1")]));
                    if !block.is_empty() {
                        all.extend(queries(client, &["rollback"]));
                    }
                    all.extend(used(client, "_PLAN1", &[Some("1")]));
                    all.extend(prepared(client, "_PLAN1", "select 'again'"));
                    all.extend(used(client, "gone", &[]));
                    all
                });
            }
        }
    }
}

#[test]
fn a_statement_is_removed_and_prepared_in_one_pipeline() {
    let stand = Stand::new();
    for sql in [
        "select 'second'",
        "insert into t values (2, 'second')",
        "insert into t values (2, 'second') returning v",
    ] {
        for before in ["select 1", "insert into t values (1, 'first')"] {
            stand.same(|client| {
                let mut all = prepared(client, "s2", before);
                all.extend(segment(client, |out| {
                    frontend::parse(out, "", "deallocate s2", &[]);
                    frontend::bind(out, ("", ""), &[], &[None::<&str>; 0], &[]);
                    frontend::execute(out, "", 0);
                    frontend::parse(out, "s2", sql, &[]);
                    frontend::describe(out, b'S', "s2");
                    frontend::bind(out, ("", "s2"), &[], &[None::<&str>; 0], &[]);
                    frontend::execute(out, "", 0);
                }));
                // The same by a simple query that nobody waits for.
                let mut both = Vec::new();
                frontend::query(&mut both, "deallocate s2");
                frontend::parse(&mut both, "s2", "select 'third'", &[]);
                frontend::bind(&mut both, ("", "s2"), &[], &[None::<&str>; 0], &[]);
                frontend::execute(&mut both, "", 0);
                frontend::sync(&mut both);
                client.send(&both).unwrap();
                all.extend(client.until_ready().unwrap());
                all.extend(client.until_ready().unwrap());
                all
            });
        }
    }
}

#[test]
fn a_text_that_leaves_a_failed_block_executes_what_is_not_prepared_there() {
    let stand = Stand::new();
    for (select, types) in [
        ("select v, $1::int from t where id = $1 -- by key", &[][..]),
        ("select v, $1 from t where id = $1;", &[23]),
        ("insert into t values ($1, 'more') returning *", &[]),
    ] {
        for sql in [
            "rollback; execute s(1)",
            "rollback; execute s(1 + nowhere)",
            "rollback; execute s('x')",
            "rollback; execute s",
            "rollback to y; execute s(2); select 5; execute s(1); deallocate s; execute s(1)",
            "abort; select 4; explain (analyze, costs off, timing off, summary off) execute s(1)",
            "rollback; begin; create temp table made as execute s(1); select count(*) from made",
            "rollback; execute s(1) nonsense",
            "select 1; rollback; execute s(1)",
            "execute s(1)",
        ] {
            stand.same_beside(|client, other| {
                let mut all = queries(
                    client,
                    &["delete from t", "insert into t values (1, 'one')"],
                );
                all.extend(segment(client, |out| {
                    frontend::parse(out, "s", select, types);
                }));
                // The server connection on which it is prepared is given to another session.
                other.query("begin").unwrap();
                other.query("select 1").unwrap();
                all.extend(queries(
                    client,
                    &["begin", "savepoint y", "select 1/0", sql],
                ));
                all.extend(queries(client, &["rollback", "select count(*) from t"]));
                other.query("rollback").unwrap();
                all.extend(used(client, "s", &[Some("1")]));
                all.extend(queries(client, &["deallocate s", "execute s(1)"]));
                all
            });
        }
    }
}

/// The name at the server of a statement of another session.
fn name_there(stand: &Stand) -> String {
    let sql = "select name from pg_prepared_statements where not from_sql";
    backend::first_value(&stand.client().query(sql).unwrap()).unwrap()
}

#[test]
fn statements_of_another_session_are_unknown_by_any_name() {
    let stand = Stand::with(|config| config.max_server_connections = 2, 64 << 20);
    let mut other = stand.client();
    prepared(&mut other, "s", "select 'secret'");
    let before = used(&mut other, "s", &[]);
    let name = name_there(&stand);
    for name in [&*name, "windrow value", "windrow nowhere"] {
        for sql in [
            "execute {}",
            "explain execute {}",
            "deallocate {}",
            "select 1; execute {}",
            "prepare {} as select 7",
        ] {
            let sql = sql.replace("{}", &format!("\"{name}\""));
            for extended in [false, true] {
                stand.same(|client| {
                    let mut all = match extended {
                        true => executed(client, &sql),
                        false => client.query(&sql).unwrap(),
                    };
                    all.extend(used(client, name, &[]));
                    all.extend(segment(client, |out| frontend::describe(out, b'S', name)));
                    let execute = format!("execute \"{name}\"");
                    all.extend(queries(client, &[&execute]));
                    all.extend(segment(client, |out| frontend::close(out, b'S', name)));
                    all.extend(queries(client, &[&execute]));
                    all.extend(prepared(client, name, "select 'own'"));
                    all.extend(queries(client, &[&execute]));
                    all.extend(used(client, name, &[]));
                    all
                });
                assert_eq!(used(&mut other, "s", &[]), before, "{sql}");
            }
        }
    }
}

#[test]
fn a_statement_that_is_gone_at_the_server_is_prepared_again() {
    let stand = Stand::with(|config| config.max_server_connections = 1, 64 << 20);
    let mut client = stand.client();
    prepared(&mut client, "s", "select 'there'");
    let before = used(&mut client, "s", &[]);
    let name = name_there(&stand);
    let sql = format!("do $$ begin execute 'deallocate \"{name}\"'; end $$");
    client.query(&sql).unwrap();
    let error = backend::sqlstate(&used(&mut client, "s", &[]));
    assert_eq!(error.as_deref(), Some("26000"));
    assert_eq!(used(&mut client, "s", &[]), before);
}

#[test]
fn a_portal_is_executed_once() {
    let stand = Stand::new();
    for (sql, before) in [
        ("deallocate s", None),
        ("deallocate U&\"\\0073\"", None),
        ("deallocate s", Some("insert into t values (1, 'first')")),
        ("execute s", None),
        (
            "explain (analyze, costs off, timing off, summary off) execute s",
            None,
        ),
        ("insert into t values (2, 'second') returning v", None),
        ("", None),
        (
            "select lastval()",
            Some("insert into t (v) values ('third')"),
        ),
    ] {
        for portal in ["", "p"] {
            stand.same(|client| {
                let mut all = queries(client, &["create temp sequence q", "select nextval('q')"]);
                all.extend(prepared(client, "s", "select 'there'"));
                all.extend(segment(client, |out| {
                    if let Some(before) = before {
                        frontend::parse(out, "", before, &[]);
                        frontend::bind(out, ("", ""), &[], &[None::<&str>; 0], &[]);
                        frontend::execute(out, "", 0);
                    }
                    frontend::parse(out, "", sql, &[]);
                    frontend::bind(out, (portal, ""), &[], &[None::<&str>; 0], &[]);
                    frontend::execute(out, portal, 0);
                    frontend::execute(out, portal, 0);
                }));
                all.extend(used(client, "s", &[]));
                all
            });
        }
    }
}

#[test]
fn a_statement_that_cannot_be_removed_any_more_stays() {
    let stand = Stand::new();
    for fails in ["select 1/0", "selec"] {
        stand.same(|client| {
            let mut all = prepared(client, "s", "select 'there'");
            all.extend(segment(client, |out| {
                frontend::parse(out, "", fails, &[]);
                frontend::bind(out, ("", ""), &[], &[None::<&str>; 0], &[]);
                frontend::execute(out, "", 0);
                frontend::parse(out, "", "deallocate s", &[]);
                frontend::bind(out, ("", ""), &[], &[None::<&str>; 0], &[]);
                frontend::execute(out, "", 0);
            }));
            all.extend(used(client, "s", &[]));
            // Bound, and not executed.
            all.extend(segment(client, |out| {
                frontend::parse(out, "", "deallocate s", &[]);
                frontend::bind(out, ("", ""), &[], &[None::<&str>; 0], &[]);
            }));
            all.extend(used(client, "s", &[]));
            all
        });
    }
}

#[test]
fn names_are_cut_as_the_server_cuts_them() {
    let stand = Stand::new();
    let (long, longer) = ("n".repeat(64), "n".repeat(70));
    for sql in ["select $1::int", "insert into t values ($1)"] {
        stand.same(|client| {
            let mut all = prepared(client, &long, sql);
            all.extend(used(client, &longer, &[Some("1")]));
            all.extend(prepared(client, &longer, "select 2"));
            all.extend(queries(client, &[&format!("execute {longer}(2)")]));
            all.extend(queries(client, &[&format!("deallocate \"{long}\"")]));
            all.extend(used(client, &longer, &[Some("3")]));
            all
        });
    }
}

#[test]
fn a_name_that_sql_has_prepared_is_taken() {
    let stand = Stand::new();
    stand.same(|client| {
        let mut all = queries(client, &["prepare s as select 1", "prepare u as select 2"]);
        all.extend(prepared(client, "s", "select 'other'"));
        all.extend(prepared(client, "s", "selec"));
        all.extend(prepared(client, "free", "select 'free'"));
        all.extend(used(client, "s", &[]));
        all.extend(used(client, "free", &[]));
        all.extend(queries(client, &["deallocate s"]));
        all.extend(prepared(client, "s", "select 'other'"));
        all.extend(used(client, "s", &[]));
        all.extend(queries(client, &["deallocate u", "select 1"]));
        all.extend(used(client, "s", &[]));
        all
    });
}

#[test]
fn a_parse_that_fails_removes_the_unnamed_statement() {
    let stand = Stand::new();
    for before in [
        "insert into t values ($1)",
        "update t set v = 'new' where id = $1",
        "select v from t where id = $1",
    ] {
        for fails in [
            "selec",
            "select nowhere",
            "insert into nowhere values ($1)",
            "insert into t values ($1, $2, $3, $4)",
        ] {
            for block in [&[][..], &["begin"], &["begin", "select 1/0"]] {
                let parsed = |client: &mut Client, sql: &str| {
                    let mut all = segment(client, |out| frontend::parse(out, "", before, &[]));
                    all.extend(segment(client, |out| frontend::parse(out, "", sql, &[])));
                    all.extend(used(client, "", &[Some("1")]));
                    all
                };
                let program = |client: &mut Client| {
                    let mut all = queries(client, block);
                    all.extend(parsed(client, fails));
                    all.extend(queries(client, &["rollback"]));
                    all
                };
                stand.same(program);
            }
        }
        // One that the session itself refuses.
        let answer = |mut client: Client| {
            let mut all = client.query("begin").unwrap();
            all.extend(segment(&mut client, |out| {
                frontend::parse(out, "", before, &[]);
            }));
            all.extend(segment(&mut client, |out| {
                frontend::parse(out, "", "set windrow.nothing = 1", &[]);
            }));
            all.extend(client.query("rollback").unwrap());
            all.extend(used(&mut client, "", &[Some("1")]));
            backend::sqlstate(&all[all.len() - 2..])
        };
        assert_eq!(answer(stand.client()).as_deref(), Some("26000"));
        // One that is passed over changes nothing.
        stand.same(|client| {
            let mut all = segment(client, |out| frontend::parse(out, "", before, &[]));
            all.extend(segment(client, |out| {
                frontend::describe(out, b'S', "nowhere");
                frontend::parse(out, "", "select 1", &[]);
            }));
            all.extend(used(client, "", &[Some("1")]));
            all
        });
    }
}

#[test]
fn an_error_leaves_alone_what_was_parsed_behind_it() {
    let stand = Stand::new();
    for (before, fails) in [
        (None, "select nowhere"),
        (Some("select 'before'"), "select nowhere"),
        (Some("select 'before'"), "selec"),
    ] {
        for behind in ["select 'behind'", "insert into t values (1)", "selec"] {
            let fails = Cycle::Extended(vec![Act::Parse("", fails), Act::Bind(""), Act::Execute]);
            let passed_over = vec![Act::Describe("nowhere"), Act::Parse("", "select 'never'")];
            let used = || Cycle::Extended(vec![Act::Describe(""), Act::Bind(""), Act::Execute]);
            let parse = vec![
                Act::Parse("", behind),
                Act::Describe(""),
                Act::Bind(""),
                Act::Execute,
            ];
            for first in [fails, Cycle::Extended(passed_over)] {
                for second in [
                    Cycle::Extended(parse.clone()),
                    Cycle::Extended(vec![Act::Close("")]),
                    Cycle::Query("select 'query'"),
                    Cycle::Query(""),
                ] {
                    let parsed = before.map(|sql| Cycle::Extended(vec![Act::Parse("", sql)]));
                    let mut cycles = Vec::from_iter(parsed);
                    cycles.extend([first.clone(), second, used()]);
                    stand.same(|client| run(client, &cycles, Sends::InHalves));
                    stand.same(|client| run(client, &cycles, Sends::AtOnce));
                }
            }
        }
    }
}

#[test]
fn a_query_within_a_segment_ends_what_was_parsed_in_it() {
    let stand = Stand::new();
    for sql in ["select 2", "insert into t values (8)", "select $1::int"] {
        stand.same(|client| {
            let mut all = prepared(client, "s", "delete from t where id = $1");
            let mut out = Vec::new();
            frontend::parse(&mut out, "", sql, &[]);
            frontend::query(&mut out, "select 1");
            frontend::bind(&mut out, ("", "s"), &[], &[Some("1")], &[]);
            frontend::execute(&mut out, "", 0);
            frontend::sync(&mut out);
            client.send(&out).unwrap();
            all.extend(client.until_ready().unwrap());
            all.extend(client.until_ready().unwrap());
            all
        });
    }
}

#[test]
fn deallocate_all_leaves_the_unnamed_statement() {
    let stand = Stand::new();
    for sql in ["deallocate all", "discard all", "discard plans"] {
        stand.same(|client| {
            let mut all = prepared(client, "s", "select 1");
            all.extend(executed(client, sql));
            all.extend(used(client, "", &[]));
            all.extend(used(client, "s", &[]));
            all
        });
    }
}

#[test]
fn values_that_are_too_many_name_the_statement() {
    let stand = Stand::new();
    for name in ["", "s"] {
        for sql in ["deallocate other", "execute other", "select currval('q')"] {
            for fails in [false, true] {
                stand.same(|client| {
                    let mut all = queries(
                        client,
                        &["create temp sequence q", "prepare other as select 1"],
                    );
                    all.extend(segment(client, |out| frontend::parse(out, name, sql, &[])));
                    if fails {
                        all.extend(queries(client, &["begin", "selec"]));
                        all.extend(segment(client, |out| frontend::parse(out, name, sql, &[])));
                    }
                    all.extend(used(client, name, &[Some("1"), Some("2"), Some("3")]));
                    all
                });
            }
        }
    }
}

#[test]
fn an_unnamed_statement_keeps_the_types_that_its_client_named() {
    let stand = Stand::new();
    for (sql, types) in [
        ("select cast($1 as unknown)", &[][..]),
        ("select $1::unknown, $2 || 'x'", &[0, 25]),
        ("insert into t values (1, cast($1 as unknown))", &[]),
        (
            "insert into t values (1, cast($1 as unknown)) returning v",
            &[],
        ),
        ("update t set v = cast($1 as unknown)", &[]),
        ("select $1", &[]),
        ("select $1", &[705]),
        ("select v from t where id = $1", &[]),
        ("insert into t select $1", &[]),
    ] {
        for name in ["", "s"] {
            stand.same(|client| {
                let mut all = segment(client, |out| frontend::parse(out, name, sql, types));
                all.extend(segment(client, |out| frontend::describe(out, b'S', name)));
                let values = match sql.contains("$2") {
                    true => &[Some("1"), Some("2")][..],
                    false => &[Some("1")],
                };
                all.extend(used(client, name, values));
                all.extend(segment(client, |out| frontend::describe(out, b'S', name)));
                all.extend(used(client, name, values));
                all
            });
        }
    }
}

/// One message of a client.
#[derive(Clone, Debug)]
enum Act {
    Parse(&'static str, &'static str),
    Bind(&'static str),
    Describe(&'static str),
    Execute,
    Close(&'static str),
}

/// A cycle: messages up to a Sync, or a simple query.
#[derive(Clone, Debug)]
enum Cycle {
    Extended(Vec<Act>),
    Query(&'static str),
}

const NAMES: [&str; 3] = ["", "s", "s2"];

const TEXTS: [&str; 11] = [
    "select 1",
    "select v from t order by id",
    "insert into t values (1) on conflict do nothing",
    "update t set v = 'u' where id = 1",
    "selec",
    "select 1/0",
    "deallocate s",
    "execute s",
    "explain (costs off) execute s2",
    "begin",
    "rollback",
];

const QUERIES: [&str; 12] = [
    "deallocate s",
    "select 5; deallocate s2; select 6",
    "execute s",
    "execute s; execute s2",
    "prepare s as select 'sql'",
    "deallocate all",
    "begin",
    "rollback",
    "commit",
    "insert into t values (2) on conflict do nothing",
    "selec",
    "select 7",
];

fn cycles() -> impl Strategy<Value = Vec<Cycle>> {
    let name = || select(&NAMES[..]);
    // The server executes no EXECUTE of a statement that names another one.
    let named = |sql: &str| sql.contains("deallocate") || sql.contains("execute");
    let parse = (name(), select(&TEXTS[..])).prop_map(move |(name, sql)| match named(sql) {
        true => Act::Parse("", sql),
        false => Act::Parse(name, sql),
    });
    let act = prop_oneof![
        4 => parse,
        4 => name().prop_map(Act::Bind),
        2 => name().prop_map(Act::Describe),
        4 => Just(Act::Execute),
        1 => name().prop_map(Act::Close),
    ];
    let cycle = prop_oneof![
        3 => proptest::collection::vec(act, 1..6).prop_map(Cycle::Extended),
        2 => select(&QUERIES[..]).prop_map(Cycle::Query),
    ];
    proptest::collection::vec(cycle, 2..10)
}

/// The messages of a cycle: its first half, and the rest of it.
fn messages(cycle: &Cycle) -> [Vec<u8>; 2] {
    let mut halves = [Vec::new(), Vec::new()];
    let [first, rest] = &mut halves;
    match cycle {
        Cycle::Query(sql) => frontend::query(first, sql),
        Cycle::Extended(acts) => {
            let (before, behind) = acts.split_at(acts.len().div_ceil(2));
            before.iter().for_each(|act| act.write(first));
            behind.iter().for_each(|act| act.write(rest));
            frontend::sync(rest);
        }
    }
    halves
}

impl Act {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Parse(name, sql) => frontend::parse(out, name, sql, &[]),
            Self::Bind(name) => frontend::bind(out, ("", name), &[], &[None::<&str>; 0], &[]),
            Self::Describe(name) => frontend::describe(out, b'S', name),
            Self::Execute => frontend::execute(out, "", 0),
            Self::Close(name) => frontend::close(out, b'S', name),
        }
    }
}

/// When a client sends its next messages.
#[derive(Clone, Copy, Debug)]
enum Sends {
    /// Behind the answers to those before.
    Waiting,
    AtOnce,
    /// The first half of a cycle with the rest of the one before, whose answers it then awaits.
    InHalves,
}

fn run(client: &mut Client, cycles: &[Cycle], sends: Sends) -> Vec<Message> {
    let mut all = Vec::new();
    for cycle in cycles {
        let [first, rest] = messages(cycle);
        client.send(&first).unwrap();
        match sends {
            Sends::InHalves if all.is_empty() => all.push(Vec::new()),
            Sends::InHalves => all.push(client.until_ready().unwrap()),
            Sends::Waiting | Sends::AtOnce => {}
        }
        client.send(&rest).unwrap();
        if matches!(sends, Sends::Waiting) {
            all.push(client.until_ready().unwrap());
        }
    }
    let left = cycles.len() + usize::from(matches!(sends, Sends::InHalves)) - all.len();
    all.extend((0..left).map(|_| client.until_ready().unwrap()));
    all.concat()
}

#[test]
fn any_program_is_answered_as_alone() {
    let stand = Stand::new();
    let config = Config {
        cases: 120,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let sends = select(&[Sends::Waiting, Sends::AtOnce, Sends::InHalves][..]);
    let tried = runner.run(&(cycles(), sends), |(cycles, sends)| {
        stand.same(|client| run(client, &cycles, sends));
        Ok(())
    });
    tried.unwrap();
}
