//! Prepared texts with literals and comments: their clients get the server's own answers, and texts
//! that differ in them alone are one statement.

use windrow_testkit::pgclient::backend::sqlstate;
use windrow_testkit::pgclient::{Client, Message, frontend};
use windrow_testkit::postgres::Postgres;

use crate::support::Gateway;
use crate::types::segment;

const TABLE: &str = "
    create type mood as enum ('sad', 'ok');
    create domain positive as int check (value > 0);
    create table t (id int primary key, v varchar(5), n numeric(5, 1), d date, at timestamptz,
        ts timestamp, doc jsonb, flag bool, mood mood, raw bytea, small int2, dom positive,
        u uuid, list int[], span interval, x text)";

/// A column, and an expression for its value.
const VALUES: &[(&str, &str)] = &[
    ("v", "'abc'"),
    ("v", "'too long'"),
    ("v", "'it''s'"),
    ("v", r"E'a\nb'"),
    ("v", r"E'\x41'"),
    ("v", r"U&'\0041'"),
    ("v", "$$x$$"),
    ("v", "$q$ $2 $q$"),
    ("v", "'$3'"),
    ("v", r"'a\b'"),
    ("v", "null"),
    ("v", "5"),
    ("v", "-5"),
    ("v", "4711::text"),
    ("v", "'a' || 'b'"),
    ("v", "'a' || $2"),
    ("v", "lower('ABC')"),
    ("v", "coalesce($2, 'none')"),
    ("v", "case when $2 > 5 then 'big' else 'small' end"),
    ("v", "'x' /* a comment */"),
    ("v", "'x' -- another\n"),
    ("n", "1.25"),
    ("n", "-7"),
    ("n", "99999.9"),
    ("n", "1e2"),
    ("n", "'1e2'"),
    ("n", "'x'"),
    ("n", "'NaN'"),
    ("n", "10 / 0"),
    ("n", "10 / $2"),
    ("n", "-$2"),
    ("n", "7 - 5"),
    ("n", "2147483648"),
    ("d", "'2024-02-29'"),
    ("d", "'2024-02-30'"),
    ("d", "'01/02/2024'"),
    ("d", "date '2024-01-01'"),
    ("d", "'2024-01-01'::date"),
    ("d", "'today'"),
    ("at", "'2024-01-01 10:00'"),
    ("at", "'2024-01-01T10:00:00Z'"),
    ("at", "timestamptz '2024-01-01 10:00+02'"),
    ("ts", "'2024-01-01 10:00:00.5'"),
    ("ts", "'epoch'"),
    ("doc", r#"'{"a": 1}'"#),
    ("doc", r#"'{"a": "x\"y"}'"#),
    ("doc", "'{'"),
    ("doc", r#"'"\u0000"'"#),
    ("doc", "'1e9'"),
    ("flag", "true"),
    ("flag", "'yes'"),
    ("flag", "'maybe'"),
    ("flag", "1"),
    ("flag", "$2 = 5"),
    ("mood", "'ok'"),
    ("mood", "'angry'"),
    ("raw", r"'\x00ff'"),
    ("raw", r"'\xf'"),
    ("raw", "'plain'"),
    ("small", "7"),
    ("small", "70000"),
    ("small", "'7'"),
    ("small", "' 7'"),
    ("dom", "5"),
    ("dom", "-1"),
    ("dom", "'5'"),
    ("dom", "null"),
    ("u", "'00000000-0000-0000-0000-00000000000a'"),
    ("u", "'x'"),
    ("list", "'{1,2}'"),
    ("list", "array[1, 2]"),
    ("span", "'1 day'"),
    ("span", "interval '1' hour"),
    ("span", "'1'::interval hour"),
    ("x", "pg_typeof('x')::text"),
    ("x", "pg_typeof(5)::text"),
    ("nothing", "5"),
];

/// Returns an answer line by line, with the positions of errors, without the numbers of tables.
fn lines(messages: &[Message]) -> Vec<String> {
    let line = |message: &Message| match message.tag {
        b'T' => {
            let columns = message.columns().into_iter();
            let kept = columns.map(|c| format!("{} {} {:?}", c.name, c.oid, c.rest));
            format!("T {:?}", kept.collect::<Vec<_>>())
        }
        tag => format!("{} {}", char::from(tag), message.body.escape_ascii()),
    };
    messages.iter().map(line).collect()
}

/// Prepares and describes a text, and executes it with several numbers of values.
fn used(client: &mut Client, name: &str, sql: &str, types: &[u32]) -> Vec<Message> {
    let mut all = segment(client, |out| {
        frontend::parse(out, name, sql, types);
        frontend::describe(out, b'S', name);
    });
    for values in [
        &["1"][..],
        &["2", "7"],
        &["3", "7", "8"],
        &["1", "x"],
        &["1"],
    ] {
        let values: Vec<_> = values.iter().map(|value| Some(*value)).collect();
        all.extend(segment(client, |out| {
            frontend::bind(out, ("", name), &[], &values, &[]);
            frontend::describe(out, b'P', "");
            frontend::execute(out, "", 0);
        }));
    }
    // All in one segment, as most drivers do.
    for id in ["1", "4"] {
        all.extend(segment(client, |out| {
            frontend::parse(out, "", sql, types);
            frontend::bind(out, ("", ""), &[0], &[Some(id)], &[0]);
            frontend::describe(out, b'P', "");
            frontend::execute(out, "", 0);
        }));
    }
    all.extend(client.query("select * from t order by id").unwrap());
    all.extend(segment(client, |out| {
        frontend::close(out, b'S', name);
        frontend::close(out, b'S', "");
    }));
    all
}

/// A client of Windrow and one of the server itself.
struct Both {
    _gateway: Gateway,
    through: Client,
    alone: Client,
}

impl Both {
    fn start() -> Self {
        let gateway = Gateway::start();
        gateway.exec(TABLE);
        let (through, alone) = (gateway.client(), gateway.direct());
        Self {
            _gateway: gateway,
            through,
            alone,
        }
    }

    /// Runs a program through Windrow and past it, each time on an empty table.
    fn same(&mut self, what: &str, program: impl Fn(&mut Client) -> Vec<Message>) {
        let mut told = Vec::new();
        for tried in [true, false] {
            self.alone.query("truncate t").unwrap();
            let client = match tried {
                true => &mut self.through,
                false => &mut self.alone,
            };
            told.push(lines(&program(client)));
        }
        assert_eq!(told[0], told[1], "{what}");
    }
}

#[test]
fn texts_with_literals_are_told_what_the_server_tells() {
    let mut both = Both::start();
    for (number, (column, value)) in VALUES.iter().enumerate() {
        let texts = [
            format!("insert into t (id, {column}) values ($1, {value}) returning id, {column}"),
            format!("update t set {column} = {value} where id = $1"),
        ];
        let mut forms = [("", &[][..]), ("one", &[23])];
        forms.rotate_left(number % 2);
        for (sql, (name, types)) in texts.iter().zip(forms) {
            both.same(&format!("{sql} {types:?}"), |client| {
                used(client, name, sql, types)
            });
        }
    }
}

#[test]
fn literals_stand_anywhere() {
    let mut both = Both::start();
    for sql in [
        "insert into t (id, v) values (1, 'a')",
        "insert into t values (1, 'a', 2.5)",
        "insert into t (id, v) values ($1, 'a'), (5, 'b')",
        "insert into t (id, v) values (1, 'a') on conflict (id) do update set v = 'b' where t.v = 'a' returning *, 'c' as c",
        "insert into t (id) values ($1) returning 4711 as x, 'y'",
        "insert into t (id, v) values ($2, 'a')",
        "insert into t (id, v) values (1, 'a') /*traceparent='00-1'*/",
        "/* one */ delete from t where id = 1 and v = 'a'",
        "delete from t where id in (1)",
        "update t set v = 'b', n = n + 1 where id = 1 and v in ('a', 'b') returning v",
        "update t set v = 'b' where id = '1'",
        "update t set v = 'b' where id = 'x'",
        "update t set v = 'b' where id = 1 and v = 5",
        "insert into t (id, v) values (1, 'a', 3)",
        "insert into nowhere (id, v) values ($1, 'a')",
        "insert into t (id, v) valeus (1, 'a')",
        "insert into t (id, v) values (1, 'a'); insert into t (id) values (2)",
    ] {
        for types in [&[][..], &[20], &[23, 25, 25]] {
            both.same(&format!("{sql} {types:?}"), |client| {
                used(client, "", sql, types)
            });
        }
    }
}

/// A literal has the type of its place each time that the server looks at the text.
#[test]
fn a_literal_follows_its_column() {
    let gateway = Gateway::start();
    gateway.exec(TABLE);
    let altered = |mut client: Client| {
        gateway.exec("truncate t; alter table t alter small type int2 using 1");
        let run = |client: &mut Client, id: &str| {
            segment(client, |out| {
                frontend::bind(out, ("", "one"), &[], &[Some(id)], &[]);
                frontend::execute(out, "", 0);
            })
        };
        let sql = "insert into t (id, small) values ($1, '007')";
        let mut all = segment(&mut client, |out| frontend::parse(out, "one", sql, &[]));
        all.extend(run(&mut client, "1"));
        gateway.exec("alter table t alter small type text");
        all.extend(run(&mut client, "2"));
        all.extend(run(&mut client, "3"));
        all.extend(segment(&mut client, |out| {
            frontend::describe(out, b'S', "one");
        }));
        all.extend(client.query("select id, small from t order by id").unwrap());
        lines(&all)
    };
    assert_eq!(altered(gateway.client()), altered(gateway.direct()));
}

/// Returns the number of catalog questions about tables in the server's log.
fn questions(server: &Postgres) -> usize {
    server
        .log()
        .matches("n.nspname, c.relname, current_setting")
        .count()
}

#[test]
fn new_texts_of_a_known_table_ask_the_catalog_nothing() {
    let server = Postgres::builder().set("log_statement", "all");
    let gateway = Gateway::with(server, &[]);
    gateway.exec("create table t (id int primary key, v text)");
    let mut client = gateway.client();
    let mut run = |sql: String, values: &[&str]| {
        let values: Vec<_> = values.iter().map(|value| Some(*value)).collect();
        let answer = segment(&mut client, |out| {
            frontend::parse(out, "", &sql, &[]);
            frontend::bind(out, ("", ""), &[], &values, &[]);
            frontend::describe(out, b'P', "");
            frontend::execute(out, "", 0);
        });
        assert_eq!(sqlstate(&answer), None, "{sql}");
    };
    let mut texts = |from: u32| {
        for n in from..from + 40 {
            let trace = format!("/*traceparent='00-{n}'*/");
            run(
                format!("insert into t values ($1, $2) {trace}"),
                &[&n.to_string(), "x"],
            );
            run(
                format!("update t set v = 'n{n}' where id = $1 {trace}"),
                &[&n.to_string()],
            );
            run(format!("delete from t where id = {n} {trace}"), &[]);
            run(
                format!("insert into t (v, id) values ('{n} /* no comment */', {n})"),
                &[],
            );
            // This literal is a part of what is described.
            run(
                format!("update t set v = 'x' where id = $1 returning {n}"),
                &[&n.to_string()],
            );
        }
    };
    texts(0);
    let known = questions(&gateway.server);
    assert!((1..=5).contains(&known), "{known}");
    texts(1_000);
    assert_eq!(questions(&gateway.server), known);
    // What is relayed is logged as its client wrote it.
    assert!(!gateway.server.log().contains("traceparent"));
    assert_eq!(gateway.exec("select count(*) from t"), "80");
}
