//! Sessions that want the same at the same moment: one has it, and the others are refused as the
//! server refuses them.

use std::sync::Arc;

use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::raw::{RawClient, error, execute, success};
use crate::support::Gateway;

const SESSIONS: usize = 16;
const ROUNDS: usize = 30;

/// The answers of all sessions to the same statement: the sum of affected rows, and the numbers of
/// errors.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sum {
    affected: Vec<u64>,
    errors: Vec<u16>,
}

/// Has all sessions send a statement at once, prepared or as a text.
async fn race(clients: &mut Vec<RawClient>, text: &str, is_prepared: bool) -> Sum {
    let barrier = Arc::new(Barrier::new(clients.len()));
    let mut running = JoinSet::new();
    for mut client in clients.drain(..) {
        let (barrier, text) = (Arc::clone(&barrier), text.to_owned());
        running.spawn(async move {
            if is_prepared {
                client.prepare(0, text.as_bytes()).await.unwrap();
            }
            barrier.wait().await;
            let answer = match client.id(0).filter(|_| is_prepared) {
                Some(id) => client.ask(&execute_bare(id)).await.unwrap(),
                None => client.query(&text).await.unwrap(),
            };
            (client, answer)
        });
    }
    let mut sum = Sum::default();
    for (client, answer) in running.join_all().await {
        clients.push(client);
        match success(&answer) {
            Some(success) => sum.affected.push(success.affected),
            None => sum.errors.push(error(&answer).unwrap().number),
        }
    }
    sum.affected.sort_unstable();
    sum
}

/// Returns a `COM_STMT_EXECUTE` of a statement without parameters.
fn execute_bare(id: [u8; 4]) -> Vec<u8> {
    execute(id, &[])[..10].to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_wins() {
    let gateway = Gateway::start();
    gateway.exec(
        "create table t (id int primary key, v int, u int, unique (u)); \
         create table c (id int primary key, t int, foreign key (t) references t (id))",
    );
    let mut clients = Vec::new();
    for _ in 0..SESSIONS {
        clients.push(gateway.client().await);
    }
    let most = SESSIONS - 1;
    for round in 0..ROUNDS {
        let is_prepared = round % 2 == 1;
        let insert = format!("insert into t (id, v, u) values ({round}, 0, {round})");
        let sum = race(&mut clients, &insert, is_prepared).await;
        assert_eq!((sum.affected, sum.errors), (vec![1], vec![1062; most]));
        let ignore = format!("insert ignore into t (id, v, u) values (1000, 0, 1000 + {round})");
        let sum = race(&mut clients, &ignore, is_prepared).await;
        let won = u64::from(round == 0);
        assert_eq!(
            (sum.affected.iter().sum::<u64>(), sum.errors),
            (won, vec![])
        );
        let upsert = format!(
            "insert into t (id, v) values (2000 + {round}, 1) on duplicate key update v = v + 1"
        );
        let sum = race(&mut clients, &upsert, is_prepared).await;
        let affected: Vec<u64> = [1].into_iter().chain(vec![2; most]).collect();
        assert_eq!((sum.affected, sum.errors), (affected, vec![]));
        let once = format!("update t set v = 77 where id = {round} and v = 0");
        let sum = race(&mut clients, &once, is_prepared).await;
        assert_eq!((sum.affected.iter().sum::<u64>(), sum.errors), (1, vec![]));
        let delete = format!("delete from t where id = {round}");
        let sum = race(&mut clients, &delete, is_prepared).await;
        assert_eq!((sum.affected.iter().sum::<u64>(), sum.errors), (1, vec![]));
    }
    let expected = format!("{}|{}", ROUNDS, SESSIONS * ROUNDS);
    let stored = gateway.exec("select count(*), sum(v) from t where id between 2000 and 2999");
    assert_eq!(stored, expected);
    gateway.joins();
}

/// Single writes in autocommit cannot deadlock, whatever other sessions update meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn no_session_sees_a_deadlock() {
    const KEYS: usize = 12;
    const UPDATES: usize = 60;
    let gateway = Gateway::start();
    gateway.exec("create table t (id int primary key, n int not null)");
    for key in 0..KEYS {
        gateway.exec(&format!("insert into t values ({key}, 0)"));
    }
    let mut running = JoinSet::new();
    for number in 0..SESSIONS {
        let mut client = match number % 4 {
            0 => gateway.direct().await,
            _ => gateway.client().await,
        };
        running.spawn(async move {
            for round in 0..UPDATES {
                // Each session goes over the keys in an order of its own.
                let key = (number * 7 + round * (1 + 2 * (number % 2) + 4 * (number % 3))) % KEYS;
                let text = format!("update t set n = n + 1 where id = {key}");
                let answer = client.query(&text).await.unwrap();
                assert_eq!(error(&answer), None);
            }
        });
    }
    running.join_all().await;
    let sum = gateway.exec("select sum(n) from t");
    assert_eq!(sum, (SESSIONS * UPDATES).to_string());
    gateway.joins();
}
