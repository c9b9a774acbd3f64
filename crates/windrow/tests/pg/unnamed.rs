//! The unnamed statement where a write before it fails: each program is answered as by the server
//! itself.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use windrow_testkit::pgclient::{Client, backend::Message, frontend};

use crate::support::Gateway;

const TEXTS: [&str; 6] = [
    "insert into t (id) values (1)",
    "insert into t (id) values (2) on conflict do nothing",
    "update t set v = v + 1 where id = 1",
    "delete from t where id = 1",
    "update t set v = 1 / 0 where id = 2",
    "select 1",
];

#[derive(Clone, Copy, Debug)]
enum Act {
    Parse(&'static str),
    Write,
    Close,
}

fn cycles() -> impl Strategy<Value = Vec<Vec<Act>>> {
    let act = prop_oneof![
        3 => select(&TEXTS[..]).prop_map(Act::Parse),
        5 => Just(Act::Write),
        1 => Just(Act::Close),
    ];
    proptest::collection::vec(proptest::collection::vec(act, 1..7), 2..7)
}

fn messages(cycle: &[Act]) -> Vec<u8> {
    let mut out = Vec::new();
    for act in cycle {
        match act {
            Act::Parse(sql) => frontend::parse(&mut out, "", sql, &[]),
            Act::Write => {
                frontend::bind(&mut out, ("", ""), &[], &[None::<&str>; 0], &[]);
                frontend::execute(&mut out, "", 0);
            }
            Act::Close => frontend::close(&mut out, b'S', ""),
        }
    }
    frontend::sync(&mut out);
    out
}

/// The tags of the answers, with the commands and SQLSTATEs.
fn told(answer: &[Message]) -> Vec<String> {
    let word = |message: &Message| {
        let said = message.command().or_else(|| message.sqlstate());
        format!("{} {}", char::from(message.tag), said.unwrap_or_default())
    };
    answer.iter().map(word).collect()
}

fn run(client: &mut Client, cycles: &[Vec<Act>], is_pipelined: bool) -> Vec<String> {
    let mut all = Vec::new();
    let mut left = 0;
    for cycle in cycles {
        client.send(&messages(cycle)).unwrap();
        left += 1;
        if !is_pipelined {
            all.extend(told(&client.until_ready().unwrap()));
            left -= 1;
        }
    }
    for _ in 0..left {
        all.extend(told(&client.until_ready().unwrap()));
    }
    all
}

#[test]
fn what_is_passed_over_behind_a_write_that_fails_changes_nothing() {
    let gateway = Gateway::start();
    gateway.exec("create table t (id int primary key, v int default 0)");
    let same = |cycles: &[Vec<Act>], is_pipelined: bool| {
        let mut both = [gateway.direct(), gateway.client()].map(|mut client| {
            gateway.exec("truncate t; insert into t values (1)");
            run(&mut client, cycles, is_pipelined)
        });
        let through = std::mem::take(&mut both[1]);
        assert_eq!(through, both[0], "{cycles:?} {is_pipelined}");
    };
    for is_pipelined in [false, true] {
        same(
            &[
                vec![Act::Parse(TEXTS[0]), Act::Write, Act::Parse(TEXTS[1])],
                vec![Act::Write],
                vec![Act::Parse(TEXTS[0]), Act::Write, Act::Close],
                vec![Act::Write, Act::Parse(TEXTS[2]), Act::Write],
                vec![Act::Write],
            ],
            is_pipelined,
        );
    }
    let config = Config {
        cases: 50,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let tried = runner.run(&(cycles(), any::<bool>()), |(cycles, is_pipelined)| {
        same(&cycles, is_pipelined);
        Ok(())
    });
    tried.unwrap();
}
