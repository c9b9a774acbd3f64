//! Random batches of calls against the same calls sent one by one in the same order, in a second
//! copy of the tables: each client is told the same, and the tables are the same in the end. Values
//! from sequences may differ, for gaps are allowed.

use std::sync::Arc;

use bytes::BufMut;
use postgres_protocol::message::frontend;
use windrow_core::{Formats, ParsedStatement, SqlCall, Statement, Unit, UnitOutcome, Write};
use windrow_pgwire::Target;
use windrow_pgwire::wire::{Answer, Wire};

use crate::parsed::{Make, delete, insert, update};
use crate::support::{Bed, arguments, messages, said, told, unit_of};

const TABLES: &str = "
create table parent (id int primary key); insert into parent select generate_series(0, 5);
create table plain (id int primary key, a varchar(5), n numeric(6, 2) check (n < 1000), at timestamptz default '2000-01-01', v int not null);
create table keyed (id serial primary key, k text unique, v int not null default 7);
create table ident (id bigint generated always as identity, k uuid primary key, d date, f float8);
create table comp (a int, b text, n int default 0, j jsonb, primary key (a, b));
create table child (id int primary key, p int references parent);
create table two (x int primary key, y int unique, z text);
create table trig (id int primary key, a text);
create function trig() returns trigger language plpgsql as $$ begin
  raise notice 'row %', new.id;
  if new.a = 'drop' then return null; end if;
  if new.a = 'no' then raise exception 'refused' using hint = 'ask again'; end if;
  new.a := upper(new.a); return new; end $$;
create trigger trig before insert or update on trig for each row execute function trig();
create table part (id int, region int, v text, primary key (id, region)) partition by list (region);
create table part0 partition of part for values in (0); create table part1 partition of part for values in (1);
create type mood as enum ('sad', 'so so', 'happy'); create domain small as int check (value < 100);
create table kinds (id int primary key, e mood, s small, xs int[], b bytea, l boolean, c char(4), t time);
create table late (id int primary key, p int references parent deferrable);
";

/// Numbers from a seed.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below as u64).unwrap()
    }

    pub(crate) fn pick<'v>(&mut self, values: &[&'v str]) -> &'v str {
        values[self.roll(values.len())]
    }
}

/// How a value is made: a whole number below a limit, or one of these; `~` is NULL.
#[derive(Clone, Copy)]
enum Value {
    Id(usize),
    One(&'static [&'static str]),
}

const INTS: Value = Value::One(&["1", "2", "-7", "~", " 3", "x", "99999999999"]);
const FINE: Value = Value::One(&["1", "2", "-7", "55"]);
const TEXTS: Value = Value::One(&[
    "a",
    "b b",
    "",
    "~",
    "dropp",
    "much too long",
    "drop",
    "no",
    "ok   ",
]);
const KEYS: Value = Value::One(&[
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p",
]);
const NUMBERS: Value = Value::One(&["1", "2.345", "999.999", "1e2", "~", "5000", "NaN", "0.001"]);
const TIMES: Value = Value::One(&[
    "2020-01-01",
    "2020-01-01 10:00+02",
    "infinity",
    "~",
    "never",
    "Jan 5 1999",
]);
const UUIDS: Value = Value::One(&[
    "00000000-0000-0000-0000-000000000001",
    "00000000000000000000000000000001",
    "00000000-0000-0000-0000-000000000002",
    "{00000000-0000-0000-0000-000000000003}",
    "00000000-0000-0000-0000-00000000000A",
    "00000000-0000-0000-0000-00000000000a",
    "nonsense",
    "~",
]);
const FLOATS: Value = Value::One(&["1.5", "-0", "1e400", "NaN", " 2 ", "0.1", "~", "1e-310"]);
const JSONS: Value = Value::One(&["{\"a\": 1}", "[1, 2]", "~", "{", "null"]);

fn statements() -> Vec<(Make, Vec<Value>)> {
    vec![
        (
            insert("plain", "id, a, n, v", "$1, $2, $3, $4"),
            vec![Value::Id(40), TEXTS, NUMBERS, INTS],
        ),
        (
            insert("plain", "id, v", "$1, $2 * 2"),
            vec![Value::Id(200), FINE],
        ),
        (
            insert("plain", "", "$1, lower($2), $3 + 1, $4, 5")
                .calls(&["lower"])
                .returning("id, a, n, at"),
            vec![Value::Id(200), TEXTS, NUMBERS, TIMES],
        ),
        (
            insert("plain as p", "id, a, v", "$1, $2, $3")
                .conflict("id", "update set a = excluded.a, v = p.v + excluded.v")
                .returning("*"),
            vec![Value::Id(20), TEXTS, FINE],
        ),
        (
            insert("plain", "id, v", "$1, $2").conflict("id", "nothing"),
            vec![Value::Id(30), FINE],
        ),
        (
            insert("plain", "id, v", "$1, $2")
                .conflict("id", "update set v = $2 where plain.v < 10"),
            vec![Value::Id(20), FINE],
        ),
        (
            update("plain", "v = v + $1, a = $2", "id = $3").returning("v, a"),
            vec![FINE, TEXTS, Value::Id(40)],
        ),
        (
            update("plain", "n = $1, at = default", "id = $2").and("v = $3 or $3 > 1"),
            vec![NUMBERS, Value::Id(40), FINE],
        ),
        (
            delete("plain", "id = $1").returning("plain.*"),
            vec![Value::Id(60)],
        ),
        (insert("keyed", "k, v", "$1, $2"), vec![KEYS, INTS]),
        (
            insert("keyed", "id, k", "default, $1").returning("k, v"),
            vec![KEYS],
        ),
        (
            insert("keyed", "k, v", "$1, $2")
                .conflict("k", "update set v = excluded.v + 1")
                .returning("v"),
            vec![KEYS, FINE],
        ),
        (
            insert("keyed", "k", "$1").conflict("", "nothing"),
            vec![KEYS],
        ),
        (delete("keyed", "k = $1").returning("v"), vec![KEYS]),
        (
            insert("ident", "k, d, f", "$1, $2, $3").returning("k, f"),
            vec![UUIDS, TIMES, FLOATS],
        ),
        (
            update("ident", "f = $1", "k = $2").returning("f, d"),
            vec![FLOATS, UUIDS],
        ),
        (delete("ident", "k = $1"), vec![UUIDS]),
        (
            insert("comp", "a, b, j", "$1, $2, $3").returning("*"),
            vec![Value::Id(6), KEYS, JSONS],
        ),
        (
            update("comp as c", "n = c.n + $1", "b = $2, a = $3").returning("c.n, a, b"),
            vec![FINE, KEYS, Value::Id(6)],
        ),
        (update("comp", "b = $1", "b = $2, a = 3"), vec![KEYS, KEYS]),
        (delete("comp", "a = $1, b = 'a'"), vec![Value::Id(6)]),
        (
            insert("child", "", "$1, $2"),
            vec![Value::Id(30), Value::Id(8)],
        ),
        (
            update("child", "p = $1", "id = $2"),
            vec![Value::Id(8), Value::Id(30)],
        ),
        (
            insert("two", "x, y", "$1, $2"),
            vec![Value::Id(20), Value::Id(20)],
        ),
        (
            insert("two", "x, y", "$1, $2")
                .conflict("", "nothing")
                .returning("x, y"),
            vec![Value::Id(20), Value::Id(20)],
        ),
        (
            insert("two", "x, y, z", "$1, $2, $3").conflict("x", "update set y = excluded.y"),
            vec![Value::Id(20), Value::Id(20), TEXTS],
        ),
        (
            update("two", "y = $1", "x = $2"),
            vec![Value::Id(20), Value::Id(20)],
        ),
        (delete("two", "y = $1"), vec![Value::Id(20)]),
        (
            insert("trig", "", "$1, $2").returning("*"),
            vec![Value::Id(30), TEXTS],
        ),
        (
            update("trig", "a = $1", "id = $2"),
            vec![TEXTS, Value::Id(30)],
        ),
        (
            insert("part", "", "$1, $2, $3").returning("v, region"),
            vec![Value::Id(30), Value::Id(3), TEXTS],
        ),
        (
            delete("part", "id = $1, region = $2"),
            vec![Value::Id(30), Value::Id(3)],
        ),
        (
            insert("kinds", "", "$1, $2, $3, $4, $5, $6, $7, $8").returning("*"),
            vec![
                Value::Id(60),
                Value::One(&["sad", "so so", "glad", "~"]),
                Value::One(&["5", "99", "500", "~", "x"]),
                Value::One(&["{1,2}", "{}", "~", "{x}"]),
                Value::One(&["\\x00ff", "abc", "a\\\\b", "\\xzz", "~"]),
                Value::One(&["t", "TRUE", "off", "maybe", "~"]),
                Value::One(&["ab", "abcd  ", "abcde", "~"]),
                Value::One(&["10:00", "25:00", "~"]),
            ],
        ),
        (
            insert("kinds", "id, e, s, b, l, c", "$1, $2, $3, $4, $5, $6"),
            vec![
                Value::Id(200),
                Value::One(&["sad", "happy"]),
                Value::One(&["5", "99", "500"]),
                Value::One(&["\\x00ff", "abc"]),
                Value::One(&["t", "f"]),
                Value::One(&["ab", "abcd  "]),
            ],
        ),
        (
            insert("late", "", "$1, $2"),
            vec![Value::Id(60), Value::Id(8)],
        ),
        (
            insert("plain", "id, v", "")
                .whole("insert into plain (id, v) values ($1, 1), ($2, 2) returning id"),
            vec![Value::Id(60), Value::Id(60)],
        ),
    ]
}

struct Shape {
    statement: Arc<Statement>,
    values: Vec<Value>,
}

fn random_call(dice: &mut Dice, shapes: &[Shape], focus: Option<usize>) -> SqlCall {
    let shape = &shapes[focus.unwrap_or_else(|| dice.roll(shapes.len()))];
    let types = shape.statement.parameters();
    let wants_binary = dice.roll(3) == 0;
    let mut values = Vec::new();
    let mut formats = Vec::new();
    for (value, type_oid) in shape.values.iter().zip(types) {
        let text = match value {
            Value::Id(below) => dice.roll(*below).to_string(),
            Value::One(words) => dice.pick(words).to_owned(),
        };
        let number: Option<i32> = text.parse().ok();
        let binary = number.filter(|_| wants_binary && *type_oid == 23);
        formats.push(binary.is_some());
        values.push(match binary {
            Some(number) => Some(number.to_be_bytes().to_vec()),
            None => (text != "~").then(|| text.into_bytes()),
        });
    }
    SqlCall {
        statement: shape.statement.clone(),
        arguments: arguments(&values),
        formats: Formats::of(formats.into_iter()),
        results: [Formats::Text, Formats::Text, Formats::Binary][dice.roll(3)].clone(),
        fresh: false,
        origin: None,
    }
}

/// What a unit was told, in a form that can be compared: an error's schema is that of the copy.
fn tell(outcome: &UnitOutcome) -> String {
    let plain = |text: String| match text.find(", took") {
        Some(at) => text[..at].to_owned(),
        None => text,
    };
    match outcome {
        Ok(dones) => dones
            .iter()
            .map(|d| plain(said(d)))
            .collect::<Vec<_>>()
            .join(" / "),
        Err(failed) => {
            let before: Vec<_> = failed.before.iter().map(|d| plain(said(d))).collect();
            let told = failed.fault.verbatim().unwrap_or_default();
            let words = told.strip_prefix(windrow_core::Fault::BIND_COMPLETE);
            let error = messages(words.unwrap_or(told)).join(" ");
            format!("{before:?} failed: {}", without_schema(&error))
        }
    }
}

fn without_schema(words: &str) -> String {
    let generated = words.contains("tkeyed") || words.contains("tident");
    let told = words
        .split("; ")
        .filter(|word| !matches!(*word, "scopy" | "spublic"));
    let told = told.map(|word| match word.split_once("contains (") {
        Some((front, row)) if generated => {
            let number = row.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{front}contains (n{number}")
        }
        _ => word.to_owned(),
    });
    told.collect::<Vec<_>>().join("; ")
}

/// A unit sent by itself, as its client would have sent it.
async fn alone(wire: &mut Wire, unit: &Unit) -> String {
    for call in unit.writes().iter().filter_map(Write::call) {
        let parsed: &ParsedStatement = call.statement.parsed();
        frontend::parse("", &parsed.text, parsed.types.iter().copied(), wire.out()).unwrap();
        bind(wire, call);
        frontend::execute("", 0, wire.out()).unwrap();
    }
    frontend::sync(wire.out());
    let (mut done, mut now, mut error) = (Vec::new(), Vec::new(), None);
    wire.exchange(1, &mut |answer| match answer {
        Answer::DataRow(row) => message(&mut now, b'D', row.body()),
        Answer::Notice(body) => message(&mut now, b'N', body),
        Answer::Error(failed) => {
            message(&mut now, b'E', &failed.body);
            error = Some(messages(&std::mem::take(&mut now)).join(" "));
        }
        Answer::CommandComplete(tag) => {
            let lines = messages(&std::mem::take(&mut now)).into_iter();
            done.push(
                std::iter::once(tag.rows().to_string())
                    .chain(lines)
                    .collect::<Vec<_>>()
                    .join(", "),
            );
        }
        _ => {}
    })
    .await
    .unwrap();
    match error {
        None => done.join(" / "),
        Some(error) => format!("{done:?} failed: {}", without_schema(&error)),
    }
}

fn message(out: &mut Vec<u8>, tag: u8, body: &[u8]) {
    out.push(tag);
    out.extend_from_slice(&u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    out.extend_from_slice(body);
}

fn bind(wire: &mut Wire, call: &SqlCall) {
    let out = wire.out();
    let count = call.statement.parameters().len();
    let start = out.len();
    out.put_u8(b'B');
    out.put_i32(0);
    out.put_slice(&[0, 0]);
    out.put_u16(u16::try_from(count).unwrap());
    for place in 0..count {
        out.put_i16(i16::from(call.formats.is_binary(place)));
    }
    out.put_u16(u16::try_from(count).unwrap());
    out.put_slice(call.arguments.as_bytes());
    out.put_i16(1);
    out.put_i16(i16::from(call.results == Formats::Binary));
    let length = u32::try_from(out.len() - start - 1).unwrap();
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
}

/// The rows of a table, but for values from sequences.
fn rows(bed: &Bed, schema: &str) -> String {
    let columns = [
        ("plain", "*"),
        ("keyed", "k, v"),
        ("ident", "k, d, f"),
        ("comp", "*"),
        ("child", "*"),
        ("two", "*"),
        ("trig", "*"),
        ("part", "*"),
        ("kinds", "*"),
        ("late", "*"),
    ];
    let table = |(table, list): (&str, &str)| {
        bed.sql(&format!(
            "select '{table}', {list} from {schema}.{table} order by 2, 3"
        ))
    };
    columns.map(table).join("\n")
}

async fn run(seed: u64, batches: usize) {
    let copy = format!("create schema copy; set search_path = copy; {TABLES}");
    // A plan for values that are known refuses a wrong one even where no row is found; one for any
    // values does not.
    let set = ["set plan_cache_mode = force_generic_plan"];
    let mut bed = Bed::with(&format!("{TABLES} {copy}"), &[], &set).await;
    let target = Target::parse(bed.database.url()).unwrap();
    let settings = [(
        "options",
        "-c search_path=copy -c plan_cache_mode=force_generic_plan".to_owned(),
    )];
    let patience = std::time::Duration::from_secs(10);
    let mut wire = Wire::connect(&target, &settings, patience).await.unwrap();
    let mut shapes = Vec::new();
    for (made, values) in statements() {
        let statement = bed.describe(made.parsed()).await;
        shapes.push(Shape { statement, values });
    }
    let mut dice = Dice(seed * 7919 + 1);
    for batch in 0..batches {
        let units: Vec<Unit> = (0..1 + dice.roll(60))
            .scan(dice.roll(shapes.len()), |focus, _| {
                // Some statements come often, so that they become one.
                if dice.roll(12) == 0 {
                    *focus = dice.roll(shapes.len());
                }
                let many = [1, 1, 1, 1, 2, 3][dice.roll(6)];
                let focus = (dice.roll(4) > 0).then_some(*focus);
                Some(unit_of(
                    (0..many).map(|_| random_call(&mut dice, &shapes, focus)),
                ))
            })
            .collect();
        let report = bed.run(&units).await;
        for (place, (verdict, unit)) in report.verdicts.into_iter().zip(&units).enumerate() {
            let outcome = told(verdict);
            let joined = tell(&outcome);
            let alone = alone(&mut wire, unit).await;
            assert_eq!(
                joined,
                alone,
                "seed {seed}, batch {batch}, unit {place}: {:?}",
                unit.writes()
            );
        }
        if batch % 10 == 9 {
            let copies = (rows(&bed, "public"), rows(&bed, "copy"));
            assert_eq!(copies.0, copies.1, "seed {seed}, batch {batch}");
        }
    }
}

#[tokio::test]
async fn joined_calls_are_told_what_they_would_have_been_told_alone() {
    for seed in 1..=3 {
        run(seed, 30).await;
    }
}
