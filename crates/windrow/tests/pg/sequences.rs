//! What `lastval()` and `currval()` say wherever they stand in a statement, in a session whose
//! inserts were joined: what they say on the server itself.

use windrow_testkit::pgclient::{Address, Client, Message, backend, frontend};

use crate::support::Gateway;

const SCHEMA: &str = "
    drop schema if exists z cascade; create schema z; set search_path = z;
    create sequence q1; create sequence q2 start 1000;
    create table t (id bigserial primary key, root bigint, v text);
    create table early (root bigint, id bigserial primary key, v text);
    create table child (id bigserial primary key, tid bigint, v text);
    create table filled (id bigint primary key, root bigint, s bigint);
    create function f() returns bigint language sql volatile as $$ select nextval('z.t_id_seq') $$;
    create function fill() returns trigger language plpgsql as
        $$ begin new.s := nextval('z.q1'); return new; end $$;
    create trigger fill before insert on filled for each row execute function fill();
    insert into t (id, root, v) values (-1, 0, 'u')";

/// Each is run twice in a session of its own. An INSERT fills in its defaults between the values
/// that it names, in the order of the table's columns, and for each row anew.
const CASES: &[&str] = &[
    "select currval('t_id_seq'), lastval()",
    "select currval('t_id_seq') from generate_series(1, 2)",
    "select 3 is distinct from currval('early_id_seq')",
    "select currval('t_id_seq'), nextval('t_id_seq')",
    "select nextval('t_id_seq'), currval('t_id_seq')",
    "select lastval(), nextval('q2'), lastval()",
    "select f(), currval('t_id_seq'), lastval()",
    "select currval('t_id_seq'), f()",
    "select currval('q1')",
    "select currval('t_id_seq'), setval('t_id_seq', 70), currval('t_id_seq'), lastval()",
    "select setval('early_id_seq', 70), lastval()",
    "select count(*) from t where id = lastval()",
    "insert into t (root) values (currval('t_id_seq')) returning root, id",
    "insert into t (v, root) values ('x', lastval()) returning root, id",
    "insert into t (id, root) values (default, currval('t_id_seq')) returning root, id",
    "insert into t values (default, lastval(), 'x') returning root, id",
    "insert into early (root) values (currval('t_id_seq')) returning root, id",
    "insert into early (root) values (lastval()) returning root, id",
    "insert into early (root) values (1) returning currval('early_id_seq'), lastval(), id",
    "insert into early values (1) returning lastval(), currval('early_id_seq'), id",
    "insert into early (root, v) values (nextval('q2'), currval('early_id_seq')) returning root, v",
    "insert into early (v) values (currval('early_id_seq')::text) returning v, id",
    "insert into t (root) values (currval('t_id_seq')), (currval('t_id_seq')) returning root, id",
    "insert into early (root) values (currval('t_id_seq')), (lastval()) returning root, id",
    "insert into t (root) select currval('t_id_seq') from generate_series(1, 3) returning root, id",
    "insert into child (tid) values (currval('t_id_seq')) returning tid, id, lastval()",
    "insert into child (tid) values (lastval()), (currval('t_id_seq')) returning tid, id",
    "insert into filled (id, root) select lastval(), currval('t_id_seq') returning root, lastval()",
    "insert into t (id, root) values (-1, 3) on conflict (id) do update set root = lastval() \
     returning root",
    "insert into t (root, v) values (currval('t_id_seq'), nextval('q2')) returning root, v, id",
    "with x as (insert into t (v) values ('c') returning id) \
     select currval('t_id_seq'), lastval() from x",
    "update t set root = currval('t_id_seq') where id = -1 returning root",
    "update t set id = default, root = lastval() where root = 0 returning root, id",
    "delete from t where id = currval('t_id_seq') returning id",
];

/// Simple queries of several statements.
const SCRIPTS: &[&str] = &[
    "select 1; select currval('t_id_seq')",
    "update t set v = 'z' where v = 'nope'; select lastval(), currval('early_id_seq')",
    "insert into child (v) values ('c'); insert into t (root) values (lastval()) returning root",
    "begin; insert into early (v) values ('d'); select currval('early_id_seq'); rollback; \
     select lastval()",
    "create table g (a bigint default lastval()); insert into g values (lastval()) returning a",
];

/// Columns and rows; errors by code and message.
fn told(answer: &[Message]) -> Vec<String> {
    let text = |value: &Option<Vec<u8>>| match value {
        Some(value) => String::from_utf8_lossy(value).into_owned(),
        None => "null".to_owned(),
    };
    let told = answer.iter().filter_map(|message| match message.tag {
        b'T' => {
            let columns = message.columns();
            let columns = columns.iter().map(|c| format!("{} {}", c.name, c.oid));
            Some(columns.collect::<Vec<_>>().join(", "))
        }
        b'D' => {
            let values = message.values();
            Some(values.iter().map(text).collect::<Vec<_>>().join(", "))
        }
        b'E' => Some(
            [b'C', b'M']
                .map(|code| message.field(code).unwrap())
                .join(" "),
        ),
        _ => None,
    });
    told.collect()
}

fn run(client: &mut Client, sql: &str, extended: bool) -> Vec<String> {
    if !extended {
        return told(&client.query(sql).unwrap());
    }
    let mut out = Vec::new();
    frontend::parse(&mut out, "", sql, &[]);
    frontend::bind::<String>(&mut out, ("", ""), &[], &[], &[]);
    frontend::describe(&mut out, b'P', "");
    frontend::execute(&mut out, "", 0);
    frontend::sync(&mut out);
    client.send(&out).unwrap();
    told(&client.until_ready().unwrap())
}

/// What a session is told whose inserts, and those of another, came before.
fn play(address: &Address, steps: &[&str], extended: bool) -> Vec<Vec<String>> {
    let connect = || {
        let mut client = Client::connect(address).unwrap();
        client.query("set search_path = z").unwrap();
        client
    };
    Client::connect(address).unwrap().query(SCHEMA).unwrap();
    let (mut other, mut client) = (connect(), connect());
    for table in ["t", "early", "t"] {
        let insert = format!("insert into {table} (v) values ('a')");
        assert_eq!(told(&other.query(&insert).unwrap()), [""; 0]);
        assert_eq!(told(&client.query(&insert).unwrap()), [""; 0]);
        assert_eq!(told(&other.query(&insert).unwrap()), [""; 0]);
    }
    let mut all: Vec<_> = steps
        .iter()
        .map(|step| run(&mut client, step, extended))
        .collect();
    all.push(run(&mut client, "select lastval()", false));
    all.push(run(&mut client, "select currval('t_id_seq')", false));
    all
}

/// The gateway, and a database of the same server that it does not know.
fn pair() -> (Gateway, Address) {
    let gateway = Gateway::start();
    let plain = Address::of(&gateway.server.create_database().unwrap()).unwrap();
    (gateway, plain)
}

#[test]
fn what_a_sequence_gave_is_told_wherever_it_is_asked_for() {
    let (gateway, plain) = pair();
    for case in CASES {
        for extended in [false, true] {
            let steps = [*case, *case];
            let through = play(&gateway.address, &steps, extended);
            assert_eq!(through, play(&plain, &steps, extended), "{case}");
        }
    }
    for script in SCRIPTS {
        let through = play(&gateway.address, &[script], false);
        assert_eq!(through, play(&plain, &[script], false), "{script}");
    }
}

#[test]
fn what_a_sequence_gave_is_told_in_transactions_too() {
    let (gateway, plain) = pair();
    for (case, ends) in CASES.iter().zip(["commit", "rollback"].into_iter().cycle()) {
        let steps = [
            "begin",
            case,
            "savepoint s",
            case,
            "rollback to s",
            case,
            ends,
            case,
        ];
        let through = play(&gateway.address, &steps, true);
        assert_eq!(through, play(&plain, &steps, true), "{case} {ends}");
    }
}

/// Nothing can be made there that looks at what was taken: questions of their own are answered, and
/// where a statement may take something itself, its client hears that it cannot be told.
#[test]
fn who_may_not_look_is_told_no_wrong_number() {
    let (gateway, _) = pair();
    gateway.exec("create role app login");
    let database = gateway.exec("select current_database()");
    gateway.exec(&format!(
        "revoke temporary on database \"{database}\" from public;
         create table t (id bigserial primary key, root bigint); grant all on t, t_id_seq to app"
    ));
    let address = Address {
        role: "app".to_owned(),
        ..gateway.address
    };
    let mut client = Client::connect(&address).unwrap();
    let id = run(
        &mut client,
        "insert into t (root) values (1) returning id",
        true,
    );
    let asked = run(&mut client, "select currval('t_id_seq') as id", true);
    assert_eq!(asked.get(1), id.get(1));
    let both = "select nextval('t_id_seq') - currval('t_id_seq'), currval('t_id_seq') - lastval()";
    let before = "select currval('t_id_seq') < nextval('t_id_seq')";
    let refused = run(&mut client, before, false);
    assert!(refused[1].starts_with("0A000 "), "{refused:?}");
    // From now on its numbers are taken on its own connection.
    run(&mut client, "insert into t (root) values (1)", false);
    assert_eq!(run(&mut client, both, false)[1], "0, 0");
    assert_eq!(run(&mut client, before, false)[1], "t");
}

#[test]
fn a_question_that_is_sent_behind_a_failed_transaction_is_answered() {
    let gateway = Gateway::start();
    gateway.exec("create table n (id serial primary key, v int unique)");
    let mut client = gateway.client();
    client.query("insert into n (v) values (1)").unwrap();
    let texts = [
        "begin",
        "insert into n (id, v) values (7, 1)",
        "rollback",
        "begin",
        "select lastval() + 1",
    ];
    let mut out = Vec::new();
    for text in texts {
        frontend::query(&mut out, text);
    }
    client.send(&out).unwrap();
    let answers = texts.map(|_| client.until_ready().unwrap());
    let [.., asked] = &answers;
    assert_eq!(backend::first_value(asked).as_deref(), Some("2"));
}
