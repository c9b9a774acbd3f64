//! A prepared statement keeps the types that it was given when it was parsed, wherever it is
//! prepared again; what is parsed anew has the types of that moment. Each program runs through
//! Windrow and past it, with the same answers.

use windrow_testkit::pgclient::{Client, Message, frontend};

use crate::support::Gateway;

/// What a program does to the tables while its client stays connected.
type Change<'a> = &'a dyn Fn(&str);

/// Runs a program through Windrow and past it, each time over the same tables.
fn same(
    gateway: &Gateway,
    tables: &str,
    program: impl Fn(&mut Client, Change<'_>) -> Vec<Message>,
) {
    let run = |mut client: Client| {
        gateway.exec("drop schema if exists own cascade; create schema own");
        gateway.exec(&format!("set search_path = own; {tables}"));
        let change = |sql: &str| {
            gateway.exec(&format!("set search_path = own; {sql}"));
        };
        client.query("set search_path = own").unwrap();
        plain(&program(&mut client, &change))
    };
    let (through, alone) = (run(gateway.client()), run(gateway.direct()));
    assert_eq!(through, alone, "{tables}");
}

/// As text, without the places in the server's source that errors name, the numbers of tables, and
/// BindComplete before an error: whether a value is computed when it is bound depends on how often
/// others have used the statement.
pub fn plain(messages: &[Message]) -> Vec<String> {
    let line = |message: &Message| match message.tag {
        b'E' => {
            let fields = message.fields().into_iter();
            let kept = fields.filter(|(code, _)| b"SCMD".contains(code));
            format!("E {:?}", kept.map(|(_, text)| text).collect::<Vec<_>>())
        }
        b'T' => {
            let columns = message.columns().into_iter();
            let kept = columns.map(|c| format!("{} {}", c.name, c.oid));
            format!("T {:?}", kept.collect::<Vec<_>>())
        }
        tag => format!("{} {}", char::from(tag), message.body.escape_ascii()),
    };
    let mut lines: Vec<String> = messages.iter().map(line).collect();
    let ends = |place: usize, tag: char| lines.get(place).is_some_and(|line| line.starts_with(tag));
    let kept: Vec<bool> = (0..lines.len())
        .map(|place| !(ends(place, '2') && ends(place + 1, 'E')))
        .collect();
    let mut kept = kept.into_iter();
    lines.retain(|_| kept.next().unwrap_or(true));
    lines
}

/// A segment, and what is said to it.
pub fn segment(client: &mut Client, messages: impl FnOnce(&mut Vec<u8>)) -> Vec<Message> {
    let mut out = Vec::new();
    messages(&mut out);
    frontend::sync(&mut out);
    client.send(&out).unwrap();
    client.until_ready().unwrap()
}

fn prepare(client: &mut Client, name: &str, sql: &str) -> Vec<Message> {
    segment(client, |out| {
        frontend::parse(out, name, sql, &[]);
        frontend::describe(out, b'S', name);
    })
}

fn execute(client: &mut Client, name: &str, values: &[&[u8]]) -> Vec<Message> {
    segment(client, |out| bound(out, name, values))
}

/// Binds binary values, and executes; rows come back binary.
fn bound(out: &mut Vec<u8>, name: &str, values: &[&[u8]]) {
    let values: Vec<_> = values.iter().map(|value| Some(*value)).collect();
    frontend::bind(out, ("", name), &[1], &values, &[1]);
    frontend::execute(out, "", 0);
}

fn int(n: i32) -> [u8; 4] {
    n.to_be_bytes()
}

/// A column's type before and after, and a binary value of the type before.
fn alterations() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let eight = |n: i64| n.to_be_bytes().to_vec();
    vec![
        ("bigint", "double precision", eight(1004)),
        ("bigint", "numeric", eight(1004)),
        ("bigint", "timestamptz using to_timestamp(v)", eight(1004)),
        ("bigint", "text", eight(1004)),
        ("bigint", "int", eight(1004)),
        ("bigint", "int using 0", eight(1 << 40)),
        ("int", "bigint", int(7).to_vec()),
        ("int", "numeric", int(7).to_vec()),
        ("int", "text", int(7).to_vec()),
        ("double precision", "bigint", 1.5_f64.to_be_bytes().to_vec()),
        (
            "double precision",
            "numeric",
            1.5_f64.to_be_bytes().to_vec(),
        ),
        ("text", "bytea using v::bytea", b"abc".to_vec()),
        ("text", "int using v::int", b"12".to_vec()),
        ("timestamptz", "text", eight(1_000_000)),
        ("uuid", "text", vec![7; 16]),
    ]
}

#[test]
fn binary_values_are_read_as_what_was_told() {
    let gateway = Gateway::start();
    for (before, after, value) in alterations() {
        for returning in ["", " returning v", " returning id"] {
            for begin in [false, true] {
                let tables = format!("create table t (id int primary key, v {before})");
                same(&gateway, &tables, |client, change| {
                    let sql = format!("insert into t (id, v) values ($1, $2){returning}");
                    let mut all = prepare(client, "one", &sql);
                    all.extend(execute(client, "one", &[&int(1), &value]));
                    change(&format!("alter table t alter v type {after}"));
                    if begin {
                        all.extend(client.query("begin").unwrap());
                    }
                    for id in 2..4 {
                        all.extend(execute(client, "one", &[&int(id), &value]));
                    }
                    all.extend(client.query("commit").unwrap());
                    // What is parsed now is told what there is now.
                    all.extend(prepare(client, "two", &sql));
                    all.extend(execute(client, "one", &[&int(5), &value]));
                    all.extend(
                        client
                            .query("select id, v::text from t order by id")
                            .unwrap(),
                    );
                    all
                });
            }
        }
    }
}

#[test]
fn relayed_statements_keep_their_types_on_another_connection() {
    let gateway = Gateway::start();
    let tables = "create table t (id int primary key, v bigint); insert into t values (1, 1004)";
    for sql in [
        "select v, pg_typeof($1)::text from t where v = $1",
        "select id from t where v = $1",
        "insert into t select 2, $1 where true",
        "update t set v = $1 where id + 0 = 1 returning id, pg_typeof($1)::text",
    ] {
        for (described, name, types) in [
            (true, "one", ["double precision", "text"]),
            (false, "one", ["numeric", "int"]),
            (true, "", ["numeric", "int"]),
            (false, "", ["double precision", "text"]),
        ] {
            for after in types {
                same(&gateway, tables, |client, change| {
                    let value = 1004_i64.to_be_bytes();
                    let mut all = segment(client, |out| {
                        frontend::parse(out, name, sql, &[]);
                        if described {
                            frontend::describe(out, b'S', name);
                        }
                    });
                    // Somebody else takes the connection that it was prepared on.
                    let mut others: Vec<_> = (0..2).map(|_| gateway.client()).collect();
                    for other in &mut others {
                        other.query("begin; select 1").unwrap();
                    }
                    change(&format!("alter table t alter v type {after}"));
                    for _ in 0..2 {
                        all.extend(execute(client, name, &[&value]));
                    }
                    drop(others);
                    all.extend(execute(client, name, &[&value]));
                    all.extend(
                        client
                            .query("select id, v::text from t order by id")
                            .unwrap(),
                    );
                    all
                });
            }
        }
    }
}

#[test]
fn another_schema_does_not_change_the_types() {
    let gateway = Gateway::start();
    let tables = "create table t (id int primary key, v bigint);
        create schema if not exists other; drop table if exists other.t;
        create table other.t (id int primary key, v double precision)";
    for sql in [
        "insert into t (id, v) values ($1, $2)",
        "insert into t (id, v) values ($1, $2) returning v",
        "insert into t (id, v) select $1, $2 returning v",
    ] {
        same(&gateway, tables, |client, _| {
            let value = 1004_i64.to_be_bytes();
            let mut all = prepare(client, "one", sql);
            all.extend(execute(client, "one", &[&int(1), &value]));
            all.extend(client.query("set search_path = other").unwrap());
            for id in 2..4 {
                all.extend(execute(client, "one", &[&int(id), &value]));
            }
            all.extend(client.query("select id, v from t order by id").unwrap());
            all
        });
    }
}

#[test]
fn what_is_parsed_anew_has_the_types_of_the_moment() {
    let gateway = Gateway::start();
    let tables = "create table t (id int primary key, v int default 5)";
    same(&gateway, tables, |client, change| {
        let simple =
            "insert into t (id) values (1) on conflict (id) do update set v = 6 returning *";
        let sql = "insert into t (id) values ($1) on conflict (id) do update set v = 6 returning *";
        let mut all = client.query(simple).unwrap();
        let unnamed = |client: &mut Client| {
            segment(client, |out| {
                frontend::parse(out, "", sql, &[]);
                frontend::describe(out, b'S', "");
                frontend::bind(out, ("", ""), &[1], &[Some(int(1))], &[1]);
                frontend::describe(out, b'P', "");
                frontend::execute(out, "", 0);
            })
        };
        all.extend(unnamed(client));
        for ddl in [
            "alter table t add x int default 7",
            "alter table t alter v type bigint",
            "alter table t drop x",
            "drop table t; create table t (v text, id int primary key)",
            "drop table t; create table t (v float8 default 1, id int)",
            "alter table t add primary key (id)",
            "alter table t rename to u; create view t as select * from u",
            "drop view t; alter table u rename to t",
            "create rule r as on insert to t do also select 1",
        ] {
            change(ddl);
            all.extend(client.query(simple).unwrap());
            all.extend(unnamed(client));
            all.extend(client.query(simple).unwrap());
        }
        all
    });
}

/// One session holds a statement; another parses the same text after the table was changed.
#[test]
fn new_sessions_are_told_the_new_types() {
    let gateway = Gateway::start();
    gateway.exec("create table t (id int primary key, v int)");
    let sql = "insert into t (id, v) values ($1, $2)";
    let (mut old, mut new) = (gateway.client(), gateway.client());
    prepare(&mut old, "one", sql);
    execute(&mut old, "one", &[&int(1), &int(1)]);
    gateway.exec("alter table t alter v type bigint");
    let told = plain(&prepare(&mut new, "one", sql));
    assert_eq!(told, plain(&prepare(&mut gateway.direct(), "one", sql)));
    let large = (1_i64 << 40).to_be_bytes();
    execute(&mut new, "one", &[&int(2), &large]);
    execute(&mut old, "one", &[&int(3), &int(3)]);
    execute(&mut new, "one", &[&int(4), &large]);
    assert_eq!(
        gateway.exec("select id, v from t order by id").trim(),
        "1|1\n2|1099511627776\n3|3\n4|1099511627776"
    );
}
