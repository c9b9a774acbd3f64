//! lastval() and currval() after joined INSERTs.

use windrow_testkit::pgclient::backend::{first_value, sqlstate};
use windrow_testkit::pgclient::{Client, Message, frontend};

use crate::support::{Stand, segment, tags};

fn stand() -> Stand {
    let stand = Stand::new();
    stand.executes("create table g (id serial, v text)");
    stand.executes("create table h (id serial, v text)");
    let oid = stand.executes("select 'g_id_seq'::regclass::oid");
    *stand.control.sequence.lock().unwrap() = Some(oid.parse().unwrap());
    stand
}

fn ask(client: &mut Client, sql: &str) -> Result<String, String> {
    let answer = client.query(sql).unwrap();
    first_value(&answer).ok_or_else(|| sqlstate(&answer).unwrap())
}

/// With one parameter, over the extended protocol.
fn ask_with(client: &mut Client, sql: &str, argument: Option<&str>, binary: u16) -> Vec<Message> {
    segment(client, |out| {
        frontend::parse(out, "", sql, &[]);
        frontend::describe(out, b'S', "");
        let arguments = argument.as_slice();
        let arguments: Vec<_> = arguments.iter().map(|a| Some(*a)).collect();
        frontend::bind(out, ("", ""), &[], &arguments, &[binary]);
        frontend::describe(out, b'P', "");
        frontend::execute(out, "", 0);
    })
}

#[test]
fn each_client_hears_of_its_own_value() {
    let stand = stand();
    let (mut a, mut b) = (stand.client(), stand.client());
    assert_eq!(ask(&mut a, "select lastval()"), Err("55000".to_owned()));
    a.query("insert into g (v) values ('a')").unwrap();
    b.query("insert into g (v) values ('b')").unwrap();
    assert_eq!(stand.control.units(), [1, 1]);
    assert_eq!(ask(&mut a, "SELECT LASTVAL()"), Ok("1".to_owned()));
    assert_eq!(ask(&mut b, "select lastval()"), Ok("2".to_owned()));
    assert_eq!(
        ask(&mut a, "select currval('g_id_seq')"),
        Ok("1".to_owned())
    );
    assert_eq!(
        ask(&mut b, "select currval('public.g_id_seq')"),
        Ok("2".to_owned())
    );
    assert_eq!(
        ask(&mut a, "select currval('h_id_seq')"),
        Err("55000".to_owned())
    );
    assert_eq!(
        ask(&mut a, "select currval('nobody')"),
        Err("42P01".to_owned())
    );
    assert_eq!(
        ask(&mut a, "select currval('g_id_seq') + 1"),
        Ok("2".to_owned())
    );
    let dependent = "insert into h (id) values (currval('g_id_seq') + 40) returning id";
    assert_eq!(ask(&mut b, dependent), Ok("42".to_owned()));
}

#[test]
fn the_answer_has_the_servers_form() {
    let stand = stand();
    let program = |client: &mut Client| {
        let mut all = client.query("insert into g (v) values ('a')").unwrap();
        all.extend(client.query("select lastval()").unwrap());
        all.extend(ask_with(client, "select lastval()", None, 1));
        all.extend(ask_with(client, "select currval($1)", Some("g_id_seq"), 0));
        all.extend(ask_with(client, "select currval('g_id_seq')", None, 1));
        all
    };
    let through = program(&mut stand.client());
    stand.executes("truncate g restart identity");
    assert_eq!(through, program(&mut stand.direct()));
    assert_eq!(tags(&through), "CZTDCZ1tT2TDCZ1tT2TDCZ1tT2TDCZ");
}

#[test]
fn a_question_between_two_calls_hears_of_the_one_before_it() {
    let stand = stand();
    let insert = "insert into g (v) values ($1)";
    let program = |client: &mut Client, failing: &str| {
        let mut all = client.query("insert into g (v) values ('a')").unwrap();
        all.extend(segment(client, |out| {
            for (sql, argument) in [
                (insert, Some("b")),
                ("select lastval()", None),
                ("select lastval()", None),
                (insert, Some("c")),
                ("select lastval()", None),
                (failing, Some("d")),
                ("select lastval()", None),
            ] {
                frontend::parse(out, "", sql, &[]);
                let arguments: Vec<_> = argument.iter().map(|a| Some(*a)).collect();
                frontend::bind(out, ("", ""), &[], &arguments, &[]);
                frontend::execute(out, "", 0);
            }
        }));
        all.extend(client.query("select lastval()").unwrap());
        all
    };
    for (failing, expected) in [
        (insert, "12C12DC12DC12C12DC12C12DCZ"),
        ("insert into g (id) values ($1)", "12C12DC12DC12C12DC1EZ"),
    ] {
        stand.executes("truncate g restart identity");
        let through = program(&mut stand.client(), failing);
        stand.executes("truncate g restart identity");
        let alone = program(&mut stand.direct(), failing);
        assert_eq!(tags(&through), format!("CZ{expected}TDCZ"));
        assert_eq!(tags(&through), tags(&alone));
        // What a unit took that failed does not count.
        if failing == insert {
            assert_eq!(through, alone);
        }
    }
    assert_eq!(stand.control.units(), [1, 3, 1, 3]);
}

#[test]
fn what_a_relayed_statement_took_is_known_too() {
    let stand = stand();
    let mut client = stand.client();
    client.query("insert into g (v) values ('a')").unwrap();
    client
        .query("insert into h (v) select 'b' from generate_series(1, 3)")
        .unwrap();
    assert_eq!(ask(&mut client, "select lastval()"), Ok("3".to_owned()));
    assert_eq!(
        ask(&mut client, "select currval('g_id_seq')"),
        Ok("1".to_owned())
    );
    // Right behind it, it is asked where it ran.
    client
        .query("begin; insert into h (v) select 'c'; commit")
        .unwrap();
    let asked = "select currval('h_id_seq') * 10";
    assert_eq!(ask(&mut client, asked), Ok("40".to_owned()));
    client.query("insert into h (v) select 'b'").unwrap();
    let asked = "select currval('h_id_seq')";
    assert_eq!(ask(&mut client, asked), Ok("5".to_owned()));
    let asked = "select lastval() + 1 as next";
    assert_eq!(ask(&mut client, asked), Ok("6".to_owned()));
    // On the server connection itself, and behind it.
    client.query("begin").unwrap();
    assert_eq!(ask(&mut client, "select lastval()"), Ok("5".to_owned()));
    let prepared = ask_with(&mut client, "select lastval()", None, 0);
    assert_eq!(first_value(&prepared).as_deref(), Some("5"));
    let prepared = ask_with(&mut client, "select lastval() - $1::int8", Some("2"), 0);
    assert_eq!(first_value(&prepared).as_deref(), Some("3"));
    client.query("insert into g (v) values ('a')").unwrap();
    assert_eq!(ask(&mut client, "select lastval()"), Ok("2".to_owned()));
    client.query("commit").unwrap();
    assert_eq!(ask(&mut client, "select lastval()"), Ok("2".to_owned()));
    // Nobody else hears of it.
    let mut other = stand.client();
    assert_eq!(ask(&mut other, "select lastval()"), Err("55000".to_owned()));
}

#[test]
fn statements_that_are_executed_by_name_take_values_and_ask_for_them() {
    let stand = stand();
    stand.executes("create sequence free");
    let prepare = |client: &mut Client, name: &str, sql: &str| {
        segment(client, |out| frontend::parse(out, name, sql, &[]));
    };
    let mut client = stand.client();
    prepare(&mut client, "next", "select nextval('free')");
    assert_eq!(ask(&mut client, "execute next"), Ok("1".to_owned()));
    // Another session has the connection in between.
    assert_eq!(
        ask(&mut stand.client(), "select lastval()"),
        Err("55000".to_owned())
    );
    assert_eq!(ask(&mut client, "select lastval()"), Ok("1".to_owned()));
    let asked = "select currval('free')";
    assert_eq!(ask(&mut client, asked), Ok("1".to_owned()));
    // A value that was taken by a joined write is not known on the server connection. The session
    // keeps its connection from then on.
    for prepared in ["protocol", "sql"] {
        let mut client = stand.client();
        client.query("insert into g (v) values ('a')").unwrap();
        match prepared {
            "sql" => drop(client.query("prepare last as select lastval()").unwrap()),
            _ => prepare(&mut client, "last", "select lastval() + 0"),
        }
        let asked = ask(&mut client, "execute last");
        assert_eq!(asked, Err("0A000".to_owned()), "{prepared}");
        client.query("insert into g (v) values ('b')").unwrap();
        let value = stand.executes("select last_value from g_id_seq");
        assert_eq!(ask(&mut client, "execute last"), Ok(value), "{prepared}");
    }
}

/// Executes a text by the extended protocol.
fn executed(client: &mut Client, sql: &str) -> Vec<Message> {
    segment(client, |out| {
        frontend::parse(out, "", sql, &[]);
        frontend::bind(out, ("", ""), &[], &[None::<&str>; 0], &[]);
        frontend::execute(out, "", 0);
    })
}

#[test]
fn a_statement_that_sql_prepared_is_executed_by_the_protocol_and_asks() {
    let stand = stand();
    let mut client = stand.client();
    client.query("insert into g (v) values ('a')").unwrap();
    client.query("prepare last as select lastval()").unwrap();
    // Nothing was asked yet.
    let looks = "select to_regprocedure('pg_temp.windrow_drawn(oid)') is null";
    assert_eq!(ask(&mut client, looks), Ok("t".to_owned()));
    let answer = executed(&mut client, "execute last");
    assert_eq!(sqlstate(&answer).as_deref(), Some("0A000"));
    client.query("insert into g (v) values ('b')").unwrap();
    let answer = executed(&mut client, "execute last");
    assert_eq!(first_value(&answer).as_deref(), Some("2"));
}

#[test]
fn a_text_may_ask_and_name_a_statement() {
    let stand = stand();
    let program = |client: &mut Client| {
        let mut all = client.query("insert into g (v) values ('a')").unwrap();
        for (name, sql) in [("p", "select 5"), ("add", "select $1::int8 + 1")] {
            all.extend(segment(client, |out| frontend::parse(out, name, sql, &[])));
        }
        for sql in [
            "execute p; select lastval()",
            "select lastval(); execute p",
            "deallocate p; select lastval() + 1",
            "execute p; select lastval()",
        ] {
            all.extend(client.query(sql).unwrap());
        }
        all
    };
    let through = program(&mut stand.client());
    stand.executes("truncate g restart identity");
    let alone = program(&mut stand.direct());
    let plain = |all: &[Message]| {
        let error = |m: &Message| m.sqlstate().unwrap_or_default();
        let all = all.iter().map(|m| match m.tag {
            b'E' => (m.tag, error(m).as_bytes().to_vec()),
            tag => (tag, m.body.clone()),
        });
        all.collect::<Vec<_>>()
    };
    assert_eq!(plain(&through), plain(&alone));
}

#[test]
fn a_sequence_is_found_by_the_name_that_it_has_now() {
    let stand = stand();
    let mut client = stand.client();
    client.query("insert into g (v) values ('a')").unwrap();
    let asked = "select currval('g_id_seq')";
    assert_eq!(ask(&mut client, asked), Ok("1".to_owned()));
    stand.executes("alter sequence g_id_seq rename to other");
    assert_eq!(ask(&mut client, asked), Err("42P01".to_owned()));
    assert_eq!(
        ask(&mut client, "select currval('other')"),
        Ok("1".to_owned())
    );
    stand.executes("drop table g; create table g (id serial, v text)");
    assert_eq!(ask(&mut client, asked), Err("55000".to_owned()));
}

/// Questions in forms of all kinds, with and without a transaction around them, behind writes that
/// are joined and others.
const FORMS: [&str; 38] = [
    "insert into g (v) values ('a')",
    "select lastval() as id, currval('g_id_seq') as \"Id\"",
    "select coalesce(currval('g_id_seq'), 0) + lastval() where 'lastval()' <> ''",
    "values (lastval()), (7)",
    "insert into plain values (lastval(), 'x''y', currval('public.g_id_seq'))",
    "update plain set v = 'currval' || currval('g_id_seq') where a = lastval() returning *",
    "begin",
    "select lastval() as id",
    "select currval('g_id_seq'::regclass)",
    "insert into h (v) values ('b'), ('c')",
    "select currval('g_id_seq'), currval('h_id_seq'), lastval()",
    "insert into plain select lastval(), 'z', currval('g_id_seq')",
    "savepoint a",
    "select lastval()",
    "insert into g (id) values (50)",
    "select lastval(), currval('g_id_seq')",
    "commit",
    "select currval(pg_get_serial_sequence('h', 'id')), currval('g_id_seq'), lastval()",
    "select nextval('free'), lastval(), currval('free')",
    "select setval('g_id_seq', 77), currval('g_id_seq'), lastval()",
    "select lastval()",
    "select setval('free', 99)",
    "select lastval()",
    "select lastval() + 0",
    "begin",
    "select currval('free'), currval('g_id_seq'), currval('h_id_seq')",
    "insert into g (v) values ('d') returning id",
    "select currval('g_id_seq'), lastval()",
    "rollback",
    "select lastval() as last, currval('free')",
    "select * from plain order by 1, 2",
    "insert into g (v) values ('e')",
    "select currval('g_id_seq'), currval('nobody')",
    "insert into h (v) values (lastval() || 'b' || currval('h_id_seq')) returning *",
    "insert into plain (b, a) values (lastval(), currval('h_id_seq')) returning *",
    "insert into late (v) values (lastval()) returning *",
    "insert into late (v) values (currval('g_id_seq')) returning *",
    "select currval('unused'), lastval()",
];

fn names(description: &Message) -> Vec<(String, u32)> {
    let columns = description.columns().into_iter();
    columns.map(|column| (column.name, column.oid)).collect()
}

#[test]
fn questions_in_any_form_are_answered_as_by_the_server() {
    const TABLES: &str = "create table g (id serial, v text); create table h (id int generated always as identity, v text); \
         create sequence free; create sequence unused; create table plain (a int8, v text, b int8); create table late (v int8, id serial)";
    let answers_to = |sql: &str, client: &mut Client| {
        let answer = client.query(sql).unwrap();
        let what = answer
            .into_iter()
            .filter(|message| b"TDCE".contains(&message.tag));
        let what = what.map(|message| match message.tag {
            b'E' => sqlstate(&[message]).unwrap(),
            // Tables have other numbers each time.
            b'T' => format!("T{:?}", names(&message)),
            tag => {
                let text = String::from_utf8_lossy(&message.body);
                format!("{}{text:?}", char::from(tag))
            }
        });
        format!("{sql}: {}", what.collect::<Vec<_>>().join(" "))
    };
    let run = |client: &mut Client, between: &mut dyn FnMut()| -> Vec<String> {
        let mut all = Vec::new();
        let mut inside = false;
        for sql in FORMS {
            all.push(answers_to(sql, client));
            inside = (inside || sql == "begin") && sql != "commit" && sql != "rollback";
            if !inside {
                between();
            }
        }
        all
    };
    // With and without somebody else who wants the connection.
    for crowded in [false, true] {
        let stand = Stand::with(|config| config.max_server_connections = 1, 64 << 20);
        stand.executes(TABLES);
        let alone = run(&mut stand.direct(), &mut || {});
        let stand = Stand::with(|config| config.max_server_connections = 1, 64 << 20);
        stand.executes(TABLES);
        let oid = stand.executes("select 'g_id_seq'::regclass::oid");
        *stand.control.sequence.lock().unwrap() = Some(oid.parse().unwrap());
        let (mut client, mut other) = (stand.client(), stand.client());
        let through = run(&mut client, &mut || {
            if crowded {
                assert_eq!(sqlstate(&other.query("select 1").unwrap()), None);
            }
        });
        for (through, alone) in through.iter().zip(&alone) {
            assert_eq!(through, alone, "crowded: {crowded}");
        }
    }
}

#[test]
fn questions_in_transactions_have_the_servers_form() {
    let stand = stand();
    let program = |client: &mut Client| {
        let mut all = client.query("insert into g (v) values ('a')").unwrap();
        for end in ["commit", "rollback"] {
            all.extend(client.query("begin").unwrap());
            all.extend(ask_with(client, "select lastval()", None, 1));
            all.extend(ask_with(client, "select currval($1)", Some("g_id_seq"), 0));
            all.extend(ask_with(
                client,
                "select currval($1) as id",
                Some("g_id_seq"),
                1,
            ));
            all.extend(client.query("insert into h (v) values ('a')").unwrap());
            all.extend(ask_with(client, "select currval($1)", Some("g_id_seq"), 1));
            all.extend(ask_with(
                client,
                "select lastval() - currval($1)",
                Some("h_id_seq"),
                0,
            ));
            all.extend(client.query(end).unwrap());
        }
        all
    };
    let through = program(&mut stand.client());
    stand.executes("truncate g, h restart identity");
    assert_eq!(through, program(&mut stand.direct()));
}

#[test]
fn a_sequence_that_is_gone_has_no_last_value() {
    let stand = stand();
    let mut client = stand.client();
    client.query("insert into g (v) values ('a')").unwrap();
    assert_eq!(ask(&mut client, "select lastval()"), Ok("1".to_owned()));
    client.query("drop table g").unwrap();
    for form in ["select lastval()", "select lastval() as id"] {
        assert_eq!(ask(&mut client, form), Err("55000".to_owned()), "{form}");
    }
    // What comes later counts.
    client.query("insert into h (v) select 'a'").unwrap();
    assert_eq!(ask(&mut client, "select lastval()"), Ok("1".to_owned()));
}

#[test]
fn who_asks_for_what_nobody_can_know_keeps_the_connection_that_does() {
    let stand = Stand::with(|config| config.max_server_connections = 1, 64 << 20);
    stand.executes("create sequence free");
    let (mut client, mut other) = (stand.client(), stand.client());
    let asked = "select currval('free') + 1";
    for (value, expected) in [(1, Err("0A000".to_owned())), (2, Ok("3".to_owned()))] {
        let taken = ask_with(&mut client, "select nextval($1)", Some("free"), 0);
        assert_eq!(first_value(&taken), Some(value.to_string()));
        if value == 1 {
            other.query("select 1").unwrap();
        }
        assert_eq!(ask(&mut client, asked), expected);
    }
    assert_eq!(ask(&mut client, "select lastval()"), Ok("2".to_owned()));
}

#[test]
fn without_joining_the_server_answers() {
    let stand = stand();
    let mut client = stand.client();
    client.query("set windrow.join = off").unwrap();
    client.query("insert into g (v) values ('a')").unwrap();
    assert_eq!(
        ask(&mut client, "select currval('g_id_seq') + 1"),
        Ok("2".to_owned())
    );
    assert_eq!(ask(&mut client, "select lastval()"), Ok("1".to_owned()));
}

#[test]
fn who_stays_for_its_values_makes_room_for_others() {
    let stand = Stand::with(|config| config.max_server_connections = 1, 64 << 20);
    stand.executes("create table g (id serial, v text)");
    let (mut a, mut b) = (stand.client(), stand.client());
    for value in ["1", "2", "3"] {
        for client in [&mut a, &mut b] {
            client.query("insert into g (v) select 'x'").unwrap();
        }
        assert_eq!(
            ask(&mut b, "select currval('g_id_seq')").unwrap(),
            (2 * value.parse::<i32>().unwrap()).to_string()
        );
    }
    assert_eq!(ask(&mut a, "select lastval()"), Ok("5".to_owned()));
}

#[test]
fn values_that_are_discarded_are_gone() {
    let stand = stand();
    let mut client = stand.client();
    for discard in ["discard sequences", "discard all"] {
        client.query("insert into g (v) values ('a')").unwrap();
        assert!(ask(&mut client, "select lastval()").is_ok());
        client.query(discard).unwrap();
        assert_eq!(
            ask(&mut client, "select lastval()"),
            Err("55000".to_owned()),
            "{discard}"
        );
    }
}
