//! `windrow.transactions = 'late'`: in a transaction, inserts are answered before the server has
//! executed them, whether they are kept or go to a server connection, and what the server does is
//! the same.

use std::cell::RefCell;
use std::time::Duration;

use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use proptest::{collection, prelude::*};
use tokio::runtime::Runtime;
use windrow_testkit::pgclient::backend::Message;
use windrow_testkit::pgclient::{Address, Client, backend, frontend};
use windrow_testkit::postgres::Postgres;
use windrow_testkit::process::Windrow;
use windrow_testkit::proxy::{Direction, Proxy};

use crate::support::{Gateway, ok, serve, tags};

const TABLE: &str =
    "create table t (id int primary key, v int check (v < 1000), at timestamptz default now())";

/// A statement that is executed on a server connection, and so are those of its transaction after
/// it.
const ON_SERVER: &str = "update t set v = v where v = -7";

/// Begins a transaction, on a server connection or not.
fn begin(client: &mut Client, on_server: bool) {
    ok(client, "begin");
    if on_server {
        ok(client, ON_SERVER);
    }
}

/// A gateway with a line to its server that can be held.
pub struct Line {
    /// The line.
    pub proxy: Proxy,
    /// The way through the gateway.
    pub address: Address,
    /// The way past both.
    pub direct: Address,
    _windrow: Windrow,
    _server: Postgres,
    _runtime: Runtime,
}

impl Line {
    /// Starts a server with one table, the line and the gateway.
    pub fn start(round_trip: Duration) -> Self {
        let server = Postgres::builder().start().unwrap();
        let direct = Address::of(&server.create_database().unwrap()).unwrap();
        Client::connect(&direct).unwrap().query(TABLE).unwrap();
        let runtime = Runtime::new().unwrap();
        let proxy = Proxy::builder(direct.socket.to_string()).round_trip(round_trip);
        let proxy = runtime.block_on(proxy.start()).unwrap();
        let (windrow, address) = serve(&direct.at(proxy.address()), &[]);
        Self {
            proxy,
            address,
            direct,
            _windrow: windrow,
            _server: server,
            _runtime: runtime,
        }
    }

    /// A client whose transactions are late, before a gateway that knows the table.
    fn client(&self) -> Client {
        let options = [("options", "-c windrow.defer=on")];
        let mut client = Client::connect_with(&self.address, &options).unwrap();
        ok(&mut client, "insert into t (id, v) values (-1, 1)");
        ok(&mut client, "delete from t where id = -1");
        prepared(&mut client, -1);
        assert_eq!(tags(&client.until_ready().unwrap()), "12nCZ");
        ok(&mut client, "delete from t where id = -1");
        ok(&mut client, ON_SERVER);
        client
    }

    fn count(&self) -> String {
        let sql = "select count(*) from t";
        windrow_testkit::postgres::psql(&self.direct.url(), sql).unwrap()
    }
}

/// Parse, Bind, Describe, Execute and Sync of an insert, without reading the answer.
fn prepared(client: &mut Client, id: i32) {
    let mut out = Vec::new();
    let sql = "insert into t (id, v) values ($1, $2)";
    frontend::parse(&mut out, "", sql, &[23, 23]);
    let values = [Some(id.to_string()), Some("1".to_owned())];
    frontend::bind(&mut out, ("", ""), &[], &values, &[]);
    frontend::describe(&mut out, b'P', "");
    frontend::execute(&mut out, "", 0);
    frontend::sync(&mut out);
    client.send(&out).unwrap();
}

/// While nothing comes back from the server, inserts are answered.
#[test]
fn inserts_are_answered_before_the_server_has_answered() {
    let line = Line::start(Duration::ZERO);
    let mut client = line.client();
    for round in 0..3 {
        begin(&mut client, round > 0);
        line.proxy.pause(Direction::ToClient);
        for id in 0..200 {
            let id = round * 1000 + id;
            if id % 2 == 0 {
                let sql = format!("insert into t (id, v) values ({id}, 1)");
                let answer = client.query(&sql).unwrap();
                assert_eq!(tags(&answer), "CZ", "{answer:?}");
                assert_eq!(answer[0].command().unwrap(), "INSERT 0 1");
            } else {
                prepared(&mut client, id);
                assert_eq!(tags(&client.until_ready().unwrap()), "12nCZ");
            }
        }
        line.proxy.resume(Direction::ToClient);
        let answer = client.query("commit").unwrap();
        assert_eq!(answer[0].command().unwrap(), "COMMIT", "{answer:?}");
    }
    assert_eq!(line.count(), "600");
}

/// A loop in a transaction takes a few round trips, whatever its length.
#[test]
fn a_loop_takes_a_few_round_trips() {
    let line = Line::start(Duration::from_millis(20));
    let mut client = line.client();
    for (on_server, most) in [(true, 250), (false, 10)] {
        let before = line.proxy.round_trips();
        begin(&mut client, on_server);
        for id in 0..500 {
            let id = id + 1000 * most;
            ok(
                &mut client,
                &format!("insert into t (id, v) values ({id}, 1)"),
            );
        }
        ok(&mut client, "commit");
        let trips = line.proxy.round_trips() - before;
        assert!(trips < most, "{trips} round trips");
    }
    assert_eq!(line.count(), "1000");
}

#[test]
fn the_first_error_is_told_at_the_commit() {
    let line = Line::start(Duration::ZERO);
    for on_server in [true, false] {
        told_at_commit(&line, on_server);
    }
}

fn told_at_commit(line: &Line, on_server: bool) {
    let mut client = line.client();
    begin(&mut client, on_server);
    line.proxy.pause(Direction::ToClient);
    for id in [1, 2, 1, 3] {
        ok(
            &mut client,
            &format!("insert into t (id, v) values ({id}, 1)"),
        );
    }
    // It is executed by then, and the client asks nothing meanwhile.
    let mut out = Vec::new();
    frontend::query(&mut out, "commit");
    client.send(&out).unwrap();
    line.proxy.resume(Direction::ToClient);
    let answer = client.until_ready().unwrap();
    assert_eq!(tags(&answer), "EZ", "{answer:?}");
    assert_eq!(answer[0].sqlstate().as_deref(), Some("23505"));
    let sql = "insert into t (id, v) values (1, 1)";
    assert_eq!(answer[0].field(b'q').as_deref(), Some(sql));
    assert!(answer[0].field(b'W').unwrap().contains(sql));
    assert_eq!(answer[1].body, b"I");
    assert_eq!(line.count(), "0");
    ok(&mut client, "begin");
    ok(&mut client, "insert into t (id, v) values (1, 1)");
    ok(&mut client, "commit");
    assert_eq!(line.count(), "1");
    ok(&mut client, "delete from t");
}

#[test]
fn an_error_is_told_at_the_next_read_and_in_the_extended_protocol() {
    let line = Line::start(Duration::ZERO);
    let mut client = line.client();
    for (commit, on_server) in [(false, false), (true, false), (false, true), (true, true)] {
        begin(&mut client, on_server);
        line.proxy.pause(Direction::ToClient);
        prepared(&mut client, 1);
        prepared(&mut client, 1);
        for _ in 0..2 {
            assert_eq!(tags(&client.until_ready().unwrap()), "12nCZ");
        }
        let mut out = Vec::new();
        let sql = if commit {
            "commit"
        } else {
            "select count(*) from t"
        };
        frontend::parse(&mut out, "", sql, &[]);
        frontend::bind::<String>(&mut out, ("", ""), &[], &[], &[]);
        frontend::execute(&mut out, "", 0);
        frontend::sync(&mut out);
        client.send(&out).unwrap();
        line.proxy.resume(Direction::ToClient);
        let answer = client.until_ready().unwrap();
        assert_eq!(
            backend::sqlstate(&answer).as_deref(),
            Some("23505"),
            "{answer:?}"
        );
        let errors = answer.iter().filter(|m| m.tag == b'E').count();
        assert_eq!(
            (errors, answer.last().unwrap().tag),
            (1, b'Z'),
            "{answer:?}"
        );
        if !commit {
            let again = client.query("select 1").unwrap();
            assert_eq!(backend::sqlstate(&again).as_deref(), Some("25P02"));
            ok(&mut client, "rollback");
        }
        assert_eq!(line.count(), "0");
    }
}

/// An error that comes within a segment, between two messages of its client, is told there, and the
/// rest up to the Sync is passed over.
#[test]
fn an_error_within_a_segment_ends_it() {
    let line = Line::start(Duration::ZERO);
    let mut client = line.client();
    let mut out = Vec::new();
    let sql = "insert into t (id, v) values ($1, $2)";
    frontend::parse(&mut out, "s", sql, &[23, 23]);
    frontend::sync(&mut out);
    client.send(&out).unwrap();
    assert_eq!(tags(&client.until_ready().unwrap()), "1Z");
    ok(&mut client, "begin");
    let mut told = String::new();
    while !told.ends_with('E') {
        out.clear();
        let values = [Some("1"), Some("1")];
        frontend::bind(&mut out, ("", "s"), &[], &values, &[]);
        frontend::execute(&mut out, "", 0);
        frontend::flush(&mut out);
        client.send(&out).unwrap();
        for _ in 0..2 {
            told.push(char::from(client.receive().unwrap().unwrap().tag));
            if told.ends_with('E') {
                break;
            }
        }
    }
    assert!(told.starts_with("2C"), "{told}");
    out.clear();
    frontend::execute(&mut out, "", 0);
    frontend::sync(&mut out);
    client.send(&out).unwrap();
    let answer = client.until_ready().unwrap();
    assert_eq!((tags(&answer).as_str(), &*answer[0].body), ("Z", &b"E"[..]));
    let answer = client.query("commit").unwrap();
    assert_eq!(answer[0].command().unwrap(), "ROLLBACK", "{answer:?}");
    assert_eq!(line.count(), "0");
}

#[test]
fn who_rolls_back_is_told_nothing() {
    let line = Line::start(Duration::ZERO);
    for on_server in [true, false] {
        rolls_back(&line, on_server);
    }
}

fn rolls_back(line: &Line, on_server: bool) {
    let mut client = line.client();
    begin(&mut client, on_server);
    ok(&mut client, "insert into t (id, v) values (1, 1)");
    ok(&mut client, "savepoint s");
    line.proxy.pause(Direction::ToClient);
    ok(&mut client, "insert into t (id, v) values (1, 1)");
    let mut out = Vec::new();
    frontend::query(&mut out, "rollback to s");
    client.send(&out).unwrap();
    line.proxy.resume(Direction::ToClient);
    let answer = client.until_ready().unwrap();
    assert_eq!(tags(&answer), "CZ", "{answer:?}");
    ok(&mut client, "insert into t (id, v) values (2, 1)");
    ok(&mut client, "commit");
    assert_eq!(line.count(), "2");
    ok(&mut client, "begin");
    ok(&mut client, "insert into t (id, v) values (1, 1)");
    let answer = client.query("rollback").unwrap();
    assert_eq!(tags(&answer), "CZ", "{answer:?}");
    assert_eq!(line.count(), "2");
    ok(&mut client, "delete from t");
}

/// What is not certain is not told: triggers that drop rows, settings and tables that were changed
/// within the transaction.
#[test]
fn what_is_not_certain_waits_for_the_server() {
    let line = Line::start(Duration::ZERO);
    let mut setup = Client::connect(&line.direct).unwrap();
    ok(
        &mut setup,
        "create function drops() returns trigger language plpgsql as 'begin return null; end'",
    );
    ok(&mut setup, "create table dropping (id int)");
    ok(
        &mut setup,
        "create trigger d before insert on dropping for each row execute function drops()",
    );
    let mut client = line.client();
    for _ in 0..3 {
        ok(&mut client, "begin");
        let answer = client
            .query("insert into dropping (id) values (1)")
            .unwrap();
        assert_eq!(answer[0].command().unwrap(), "INSERT 0 0");
        ok(
            &mut client,
            "create temp table t (id int, v int) on commit drop",
        );
        ok(
            &mut client,
            "create trigger d before insert on pg_temp.t for each row execute function drops()",
        );
        let answer = client.query("insert into t (id, v) values (1, 1)").unwrap();
        assert_eq!(answer[0].command().unwrap(), "INSERT 0 0");
        ok(&mut client, "commit");
    }
    assert_eq!(line.count(), "0");
}

#[test]
fn a_lost_line_has_written_nothing() {
    let line = Line::start(Duration::ZERO);
    let mut client = line.client();
    begin(&mut client, true);
    line.proxy.pause(Direction::ToClient);
    for id in 0..10 {
        ok(
            &mut client,
            &format!("insert into t (id, v) values ({id}, 1)"),
        );
    }
    line.proxy.cut();
    line.proxy.resume(Direction::ToClient);
    let answer = client.query("commit");
    let told = answer.map(|answer| backend::sqlstate(&answer));
    assert!(
        matches!(
            told.as_ref().map(Option::as_deref),
            Ok(Some("57P01")) | Err(_)
        ),
        "{told:?}"
    );
    assert_eq!(line.count(), "0");
}

/// A statement of a random transaction.
#[derive(Clone, Debug)]
enum Step {
    Insert(i32, i32),
    Prepared(i32),
    Sql(&'static str),
}

fn step() -> impl Strategy<Value = Step> {
    let others = [
        "select count(*) from t",
        "update t set v = v + 1 where id = 3",
        "delete from t where id = 4",
        "savepoint s",
        "rollback to s",
        "release s",
        "insert into t (id, v) values (5, 1), (6, 1)",
        "insert into t (id, v) values (7, 1) on conflict do nothing",
        "insert into t (id, v) values (8, 1) returning id",
        "insert into t (id, v) values ('x', 1)",
        "set local statement_timeout = '1h'",
    ];
    let ends = ["commit", "rollback", "begin", "commit and chain"];
    prop_oneof![
        6 => (0..12, prop_oneof![9 => Just(1), 1 => Just(1000)]).prop_map(|(id, v)| Step::Insert(id, v)),
        6 => (0..12).prop_map(Step::Prepared),
        3 => proptest::sample::select(others.to_vec()).prop_map(Step::Sql),
        2 => proptest::sample::select(ends.to_vec()).prop_map(Step::Sql),
    ]
}

/// What a client was told of each statement: its command, or its error.
fn play(client: &mut Client, steps: &[Step]) -> Vec<String> {
    let mut told = Vec::new();
    let mut play = |client: &mut Client, step: &Step| {
        let answer = match step {
            Step::Insert(id, v) => {
                client.query(&format!("insert into t (id, v) values ({id}, {v})"))
            }
            Step::Prepared(id) => {
                prepared(client, *id);
                client.until_ready()
            }
            Step::Sql(sql) => client.query(sql),
        };
        let answer = answer.unwrap();
        let command = answer.iter().find_map(|m| m.command());
        told.push(backend::sqlstate(&answer).or(command).unwrap_or_default());
    };
    play(client, &Step::Sql("begin"));
    for step in steps {
        play(client, step);
    }
    play(client, &Step::Sql("rollback"));
    told
}

fn errors(told: &[String]) -> Vec<&str> {
    let told = told.iter().map(String::as_str);
    told.filter(|said| said.len() == 5 && *said != "BEGIN" && *said != "25P02" && *said != "25P01")
        .collect()
}

/// Random transactions leave the same rows as on the server itself. Whoever keeps a transaction
/// that has failed is told the same error, later.
#[test]
fn tables_are_the_same_and_no_error_is_lost() {
    let gateway = Gateway::start();
    gateway.exec(TABLE);
    let plain = Address::of(&gateway.server.create_database().unwrap()).unwrap();
    let mut judge = Client::connect(&plain).unwrap();
    ok(&mut judge, TABLE);
    let options = [("options", "-c windrow.defer=on")];
    let tried = Client::connect_with(&gateway.address, &options).unwrap();
    let clients = RefCell::new((tried, gateway.direct(), judge));
    let config = Config {
        cases: 100,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(11),
        ..Config::default()
    };
    let result = TestRunner::new(config).run(&collection::vec(step(), 1..24), |steps| {
        let (tried, direct, judge) = &mut *clients.borrow_mut();
        let one = play(tried, &steps);
        let other = play(judge, &steps);
        let rows = "select coalesce(string_agg(id || ':' || v, ' ' order by id), '') from t";
        let [left, right] = [direct, judge].map(|client| {
            let rows = backend::first_value(&client.query(rows).unwrap());
            ok(client, "truncate t");
            rows
        });
        prop_assert_eq!(left, right);
        // Each error is one of the server's, in its order.
        let mut theirs = errors(&other).into_iter();
        for error in errors(&one) {
            let found = theirs.any(|their| their == error);
            if !found {
                return Err(TestCaseError::fail(format!("{one:?}\n{other:?}")));
            }
        }
        // No transaction that was not kept is said to have been.
        let ends = |told: &[String]| told.iter().filter(|said| *said == "COMMIT").count();
        prop_assert_eq!(ends(&one), ends(&other), "{:?}\n{:?}", one, other);
        Ok(())
    });
    result.unwrap();
}

/// Nobody has told the gateway that the table is another one: what was answered early turns out to
/// be wrong, and so the transaction fails. The next one is told the truth.
#[test]
fn a_transaction_fails_whose_table_has_changed_since_it_was_proven() {
    let line = Line::start(Duration::ZERO);
    let mut owner = Client::connect(&line.direct).unwrap();
    ok(
        &mut owner,
        "create function drops() returns trigger language plpgsql as 'begin return null; end'",
    );
    for (change, back) in [
        (
            "create trigger d before insert on t for each row execute function drops()",
            "drop trigger d on t",
        ),
        (
            "create rule d as on insert to t do instead nothing",
            "drop rule d on t",
        ),
    ] {
        for simple in [true, false] {
            // A question that is under way at this moment may tell the gateway of the change.
            let mut attempts = 0..20;
            assert!(
                attempts.any(|_| fails_once((change, back), simple, &line, &mut owner)),
                "the gateway knew of each change at once"
            );
        }
    }
    assert_eq!(line.count(), "0");
}

/// Inserts into a table behind which a change drops its rows. True where the gateway did not know
/// of it, and so the first transaction failed; what is told must be true in either case.
fn fails_once((change, back): (&str, &str), simple: bool, line: &Line, owner: &mut Client) -> bool {
    let mut client = line.client();
    ok(owner, change);
    let insert = |client: &mut Client, id: i32| {
        let sql = format!("insert into t (id, v) values ({id}, 1)");
        match simple {
            true => client.query(&sql).unwrap(),
            false => {
                prepared(client, id);
                client.until_ready().unwrap()
            }
        }
    };
    let dropped = |told: &[Message]| {
        let tags = told.iter().filter(|m| m.tag == b'C');
        tags.filter(|tag| tag.command().unwrap() == "INSERT 0 0")
            .count()
    };
    ok(&mut client, "begin");
    let mut told: Vec<Message> = (0..3).flat_map(|id| insert(&mut client, id)).collect();
    let knew = dropped(&told) == 3;
    if knew {
        ok(&mut client, "commit");
    } else {
        told.extend(client.query("commit").unwrap());
        let failed = backend::sqlstate(&told);
        assert_eq!(failed.as_deref(), Some("40001"), "{told:?}");
        let errors = told.iter().filter(|m| m.tag == b'E').count();
        let end = &told.last().unwrap().body;
        assert_eq!((errors, &**end), (1, &b"I"[..]), "{told:?}");
    }
    ok(&mut client, "begin");
    let told = insert(&mut client, 1);
    assert_eq!(dropped(&told), 1, "{told:?}");
    ok(&mut client, "commit");
    ok(owner, back);
    !knew
}

#[test]
fn a_transaction_fails_that_was_told_types_from_before_a_change() {
    let line = Line::start(Duration::ZERO);
    let mut owner = Client::connect(&line.direct).unwrap();
    let mut client = line.client();
    // All that is said from the Parse to the end of the transaction.
    let describe = |client: &mut Client| {
        ok(client, "begin");
        let mut out = Vec::new();
        frontend::parse(&mut out, "s", "insert into t (id, v) values ($1, $2)", &[]);
        frontend::describe(&mut out, b'S', "s");
        frontend::sync(&mut out);
        client.send(&out).unwrap();
        let mut told = client.until_ready().unwrap();
        told.extend(client.query("commit").unwrap());
        ok(client, "deallocate all");
        told
    };
    let before = describe(&mut client);
    ok(&mut owner, "alter table t alter v type bigint");
    for attempt in 0..2 {
        let told = describe(&mut client);
        let is_old = told[1].body == before[1].body;
        let failed = backend::sqlstate(&told);
        assert_eq!(failed.as_deref(), is_old.then_some("40001"), "{told:?}");
        assert!(attempt == 0 || !is_old, "{told:?}");
    }
}
