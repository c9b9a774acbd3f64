//! Tables change between what clients parse and what they execute: each is told what it would be
//! told past the program.

use std::cell::RefCell;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use windrow_testkit::pgclient::{Client, Message, backend, frontend};

use crate::support::Gateway;
use crate::types::plain;

const CLIENTS: usize = 4;

/// How many cases are tried, where this environment variable does not say otherwise.
const CASES: &str = "WINDROW_INTERLEAVED_CASES";

/// What clients send: `$1` is a row of their own, `$2` a value of their own; `S` is the case's
/// schema.
const STATEMENTS: &[&str] = &[
    "insert into S.t (id, v) values ($1, $2)",
    "insert into S.t (id, v) values ($1, $2) returning *",
    "insert into S.t (id, v) values ($1, $2) returning v, id",
    "insert into S.t (id, v) values ($1, $2) on conflict (id) do update set v = excluded.v",
    "update S.t set v = $2 where id = $1",
    "update S.t set v = $2 where id = $1 returning *",
    "delete from S.t where id = $1",
    "delete from S.t where id = $1 returning *",
    "select * from S.t where id = $1",
];

/// What happens to the table. What the table of the moment does not allow is refused, with and
/// without the program.
const CHANGES: &[&str] = &[
    "alter table S.t add column x int default 7",
    "alter table S.t drop column x",
    "alter table S.t alter v drop default, alter v type bigint using v::text::bigint",
    "alter table S.t alter v drop default, alter v type int using v::text::numeric::int",
    "alter table S.t alter v drop default, alter v type double precision using v::text::float8",
    "alter table S.t alter v drop default, alter v type numeric using v::text::numeric",
    "alter table S.t alter v drop default, alter v type text",
    "alter table S.t rename column v to w",
    "alter table S.t rename column w to v",
    "alter table S.t drop constraint t_pkey",
    "alter table S.t add primary key (id)",
    "create unique index once on S.t (v)",
    "drop index S.once",
    "alter table S.t add constraint few check (v <> 3) not valid",
    "alter table S.t drop constraint few",
    "drop table S.t cascade; create table S.t (v bigint, id int primary key)",
    "drop table S.t cascade; create table S.t (id int, v double precision)",
    "drop table S.t cascade; create table S.t (id bigint primary key, v text default 'x', n int default 9)",
    "alter table S.t rename to base; create view S.t as select * from S.base",
    "drop view S.t; alter table S.base rename to t",
    "create rule never as on insert to S.t where new.id % 2 = 1 do instead nothing",
    "drop rule never on S.t",
    "create trigger tell before insert or update on S.t for each row execute function S.tell()",
    "drop trigger tell on S.t",
    "create or replace function S.tell() returns trigger language plpgsql as
        $$ begin raise notice 'now %', new.id; return new; end $$",
    "create trigger skip before insert on S.t for each row when (new.id % 2 = 0) execute function S.skip()",
    "drop trigger skip on S.t",
    "create trigger unread before insert or update on S.t for each row execute function S.unread()",
    "drop trigger unread on S.t",
    "truncate S.t",
    "alter table S.t alter v set default 5",
    "alter table S.t add column g int generated always as (id * 2) stored",
    "alter table S.t alter g drop expression",
    "alter table S.t set unlogged",
    "alter table S.t rename to old; create table S.t (like S.old including all)",
];

const TABLES: &str = "create schema S; create table S.t (id int primary key, v int);
    create function S.tell() returns trigger language plpgsql as
        $$ begin raise notice 'got %', new.id; return new; end $$;
    create function S.skip() returns trigger language plpgsql as $$ begin return null; end $$;
    create function S.unread() returns trigger language plpgsql as
        $$ begin execute 'select 1'; return new; end $$";

/// What one client does in a round; all of them do theirs at the same time.
#[derive(Clone, Debug)]
enum Step {
    Nothing,
    /// Parses under one of two names.
    Prepare(usize, usize),
    /// Executes what was parsed, with a value of its own row `row`.
    Execute {
        name: usize,
        row: usize,
        binary: bool,
    },
    Simple(usize, usize),
    Unnamed(usize, usize),
    /// Two that commit together.
    Unit([usize; 2], usize),
    /// One in a transaction block.
    Block(usize, usize),
}

/// A round: what each client does, and the change behind it.
type Round = (Vec<Step>, Option<usize>);

fn step() -> impl Strategy<Value = Step> {
    let (statement, row) = (0..STATEMENTS.len(), 0..3_usize);
    prop_oneof![
        1 => Just(Step::Nothing),
        3 => (0..2_usize, statement.clone()).prop_map(|(name, of)| Step::Prepare(name, of)),
        6 => (0..2_usize, row.clone(), any::<bool>())
            .prop_map(|(name, row, binary)| Step::Execute { name, row, binary }),
        2 => (statement.clone(), row.clone()).prop_map(|(of, row)| Step::Simple(of, row)),
        2 => (statement.clone(), row.clone()).prop_map(|(of, row)| Step::Unnamed(of, row)),
        1 => ([statement.clone(), statement.clone()], row.clone())
            .prop_map(|(of, row)| Step::Unit(of, row)),
        1 => (statement, row).prop_map(|(of, row)| Step::Block(of, row)),
    ]
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let change = proptest::option::weighted(0.6, 0..CHANGES.len());
    vec((vec(step(), CLIENTS), change), 4..14)
}

/// A client, and the types of the parameters that it was told.
struct Part {
    client: Client,
    number: usize,
    told: [Option<Vec<u32>>; 2],
}

impl Part {
    /// Sends its step; false if there is nothing to be awaited.
    fn send(&mut self, schema: &str, step: &Step) -> bool {
        let sql = |of: usize| STATEMENTS[of].replace("S.", &format!("{schema}."));
        let id = |row: usize| (self.number * 10 + row).to_string();
        // A value that no other row has.
        let value = |row: usize| (self.number * 10 + row + 1).to_string();
        let mut out = Vec::new();
        match *step {
            Step::Nothing => return false,
            Step::Prepare(name, of) => {
                // It is described and remembered where its answer is read.
                frontend::close(&mut out, b'S', NAMES[name]);
                frontend::parse(&mut out, NAMES[name], &sql(of), &[]);
                frontend::describe(&mut out, b'S', NAMES[name]);
            }
            Step::Execute { name, row, binary } => {
                let types = self.told[name].clone().unwrap_or_default();
                let texts = [id(row), value(row)];
                let values = types.iter().zip(texts).map(|(of, text)| {
                    let known = if binary { in_binary(*of, &text) } else { None };
                    (
                        u16::from(known.is_some()),
                        known.unwrap_or(text.into_bytes()),
                    )
                });
                let (formats, values): (Vec<u16>, Vec<Vec<u8>>) = values.unzip();
                let values: Vec<_> = values.into_iter().map(Some).collect();
                frontend::bind(
                    &mut out,
                    ("", NAMES[name]),
                    &formats,
                    &values,
                    &[binary.into()],
                );
                frontend::execute(&mut out, "", 0);
            }
            Step::Simple(of, row) => {
                let text = sql(of).replace("$1", &id(row)).replace("$2", &value(row));
                frontend::query(&mut out, &text);
                self.client.send(&out).unwrap();
                return true;
            }
            Step::Unnamed(of, row) => unnamed(&mut out, &sql(of), id(row), value(row)),
            Step::Unit(of, row) => {
                for (of, row) in of.into_iter().zip([row, (row + 1) % 3]) {
                    unnamed(&mut out, &sql(of), id(row), value(row));
                }
            }
            Step::Block(of, row) => {
                frontend::query(&mut out, "begin");
                unnamed(&mut out, &sql(of), id(row), value(row));
                frontend::sync(&mut out);
                frontend::query(&mut out, "commit");
                self.client.send(&out).unwrap();
                return true;
            }
        }
        frontend::sync(&mut out);
        self.client.send(&out).unwrap();
        true
    }

    fn hear(&mut self, step: &Step) -> Vec<String> {
        let mut answer = self.client.until_ready().unwrap();
        if let Step::Block(..) = step {
            answer.extend(self.client.until_ready().unwrap());
            answer.extend(self.client.until_ready().unwrap());
        }
        if let Step::Prepare(name, _) = step {
            self.told[*name] = answer.iter().find(|m| m.tag == b't').map(types);
        }
        essence(plain(&answer))
    }
}

/// What was refused is refused, whatever was said before: the program does not ask the server anew
/// for what it knows.
fn essence(mut lines: Vec<String>) -> Vec<String> {
    if lines.iter().any(|line| line.starts_with('E')) {
        lines.retain(|line| line.starts_with(['E', 'N', 'Z']));
    }
    lines
}

const NAMES: [&str; 2] = ["one", "two"];

/// All of a statement that is parsed at its use, but for the Sync.
fn unnamed(out: &mut Vec<u8>, sql: &str, id: String, value: String) {
    let mut values = vec![Some(id)];
    values.extend(sql.contains("$2").then_some(Some(value)));
    frontend::parse(out, "", sql, &[]);
    frontend::bind(out, ("", ""), &[], &values, &[]);
    frontend::describe(out, b'P', "");
    frontend::execute(out, "", 0);
}

/// The types in a ParameterDescription.
fn types(message: &Message) -> Vec<u32> {
    let numbers = message.body[2..].chunks_exact(4);
    numbers
        .map(|n| u32::from_be_bytes(n.try_into().unwrap()))
        .collect()
}

/// A whole number in the binary form of a type.
fn in_binary(of: u32, text: &str) -> Option<Vec<u8>> {
    match of {
        20 => Some(text.parse::<i64>().unwrap().to_be_bytes().into()),
        23 => Some(text.parse::<i32>().unwrap().to_be_bytes().into()),
        701 => Some(text.parse::<f64>().unwrap().to_be_bytes().into()),
        25 => Some(text.as_bytes().into()),
        _ => None,
    }
}

/// What all clients are told, round by round, and what is left.
fn play(gateway: &Gateway, clients: Vec<Client>, schema: &str, rounds: &[Round]) -> Vec<String> {
    let mut owner = gateway.direct();
    let in_schema = |sql: &str| {
        sql.replace("S.", &format!("{schema}."))
            .replace("schema S", &format!("schema {schema}"))
    };
    owner
        .query(&format!(
            "set client_min_messages = warning; drop schema if exists {schema} cascade"
        ))
        .unwrap();
    let made = owner.query(&in_schema(TABLES)).unwrap();
    assert_eq!(backend::sqlstate(&made), None);
    let part = |(number, client)| Part {
        client,
        number,
        told: [None, None],
    };
    let mut parts: Vec<Part> = clients.into_iter().enumerate().map(part).collect();
    let mut told = Vec::new();
    for (number, (steps, change)) in rounds.iter().enumerate() {
        let sent: Vec<bool> = parts
            .iter_mut()
            .zip(steps)
            .map(|(part, step)| part.send(schema, step))
            .collect();
        for ((part, step), _) in parts
            .iter_mut()
            .zip(steps)
            .zip(sent)
            .filter(|(_, sent)| *sent)
        {
            let heard = part.hear(step);
            let lines = heard
                .into_iter()
                .map(|line| format!("{number}.{} {line}", part.number));
            told.extend(lines);
        }
        if let Some(change) = change {
            let refused = backend::sqlstate(&owner.query(&in_schema(CHANGES[*change])).unwrap());
            told.push(format!("{number} {} {refused:?}", CHANGES[*change]));
        }
    }
    told.extend(plain(
        &owner
            .query(&in_schema("select * from S.t order by id, 1, 2"))
            .unwrap(),
    ));
    told
}

#[test]
fn what_is_parsed_before_a_change_and_executed_behind_it_is_told_as_alone() {
    let gateway = Gateway::start();
    let cases = std::env::var(CASES).ok().and_then(|n| n.parse().ok());
    let config = Config {
        cases: cases.unwrap_or(24),
        failure_persistence: None,
        max_shrink_iters: 300,
        ..Config::default()
    };
    let count = RefCell::new(0);
    let result = TestRunner::new(config).run(&rounds(), |rounds| {
        *count.borrow_mut() += 1;
        let schema = format!("s{}", count.borrow());
        let clients = |open: &dyn Fn() -> Client| (0..CLIENTS).map(|_| open()).collect();
        let alone = play(&gateway, clients(&|| gateway.direct()), &schema, &rounds);
        let through = play(&gateway, clients(&|| gateway.client()), &schema, &rounds);
        let different = through.iter().zip(&alone).position(|(a, b)| a != b);
        if let Some(place) = different {
            let before = &alone[..place];
            let (is, would) = (&through[place], &alone[place]);
            let text = format!("{before:#?}\nis        {is}\nwould be  {would}");
            return Err(TestCaseError::fail(text));
        }
        prop_assert_eq!(through.len(), alone.len());
        gateway.exec(&format!("drop schema {schema} cascade"));
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

/// The server keeps what a session's triggers were planned for, and refuses that session once a
/// column has another type. Nobody else is refused for it.
#[test]
fn who_comes_behind_a_change_meets_no_plan_from_before_it() {
    let gateway = Gateway::start();
    gateway.exec(
        "create table t (id int primary key, v int);
         create function tell() returns trigger language plpgsql as
             $$ begin raise notice 'got %', new.v; new.v := new.v + 1; return new; end $$;
         create trigger tell before insert on t for each row execute function tell()",
    );
    let sql = "insert into t values ($1, 5)";
    for (round, of) in (0..).zip(["bigint", "numeric", "bigint", "int"]) {
        let mut clients: Vec<Client> = (0..8).map(|_| gateway.client()).collect();
        for (n, client) in (0..).zip(&mut clients) {
            let id = round * 10 + n;
            let answer = client.query(&sql.replace("$1", &id.to_string())).unwrap();
            assert_eq!(backend::sqlstate(&answer), None, "{of} {n}: {answer:?}");
        }
        gateway.exec(&format!(
            "alter table t alter v type {of} using v::text::{of}"
        ));
    }
    assert_eq!(
        gateway.exec("select count(*), min(v), max(v) from t"),
        "32|6|6"
    );
}

/// A statement that the server refuses because its plan is from before a change goes once more, in
/// its client's own text. What that gives is told with the types of the moment.
#[test]
fn a_clients_own_text_behind_a_change_is_told_with_the_types_of_the_moment() {
    let gateway = Gateway::start();
    let (to_bigint, back) = (2, 3);
    let idle = || vec![Step::Nothing; CLIENTS];
    let only = |client: usize, step| {
        let mut steps = idle();
        steps[client] = step;
        steps
    };
    let execute = Step::Execute {
        name: 0,
        row: 0,
        binary: false,
    };
    let rounds = [
        (only(1, Step::Prepare(0, 1)), Some(to_bigint)),
        (only(1, execute), None),
        (only(0, Step::Simple(2, 0)), Some(back)),
        (only(1, Step::Simple(2, 0)), None),
    ];
    let clients = |open: &dyn Fn() -> Client| (0..CLIENTS).map(|_| open()).collect();
    let alone = play(&gateway, clients(&|| gateway.direct()), "s", &rounds);
    let through = play(&gateway, clients(&|| gateway.client()), "s", &rounds);
    assert_eq!(through, alone);
}

/// The same, where the client asks what its row took from a sequence.
#[test]
fn what_a_clients_own_text_took_from_a_sequence_is_known_behind_a_change() {
    let gateway = Gateway::start();
    gateway.exec("create table t (id int primary key, s serial, v int)");
    let mut client = gateway.client();
    for (id, of) in (1..).zip(["bigint", "int", "numeric", "int"]) {
        let sql = format!("insert into t (id, v) values ({id}, 7) returning v");
        let answer = client.query(&sql).unwrap();
        assert_eq!(backend::sqlstate(&answer), None, "{answer:?}");
        let answer = client.query("select lastval()").unwrap();
        assert_eq!(
            plain(&answer)[1],
            format!("D \\x00\\x01\\x00\\x00\\x00\\x01{id}"),
            "before it is {of}"
        );
        gateway.exec(&format!(
            "alter table t alter v type {of} using v::text::{of}"
        ));
    }
}
