//! Many sessions write to the same rows at once.

use tokio::task::JoinSet;

use crate::raw::{RawClient, error, execute, success};
use crate::support::Gateway;

const SESSIONS: u64 = 16;
const ROUNDS: u64 = 45;
const KEYS: u64 = 4;

/// Adds one to a counter in the way of the round. Returns the rows that the answer says.
async fn add(client: &mut RawClient, round: u64, key: u64) -> u64 {
    let answer = match round % 3 {
        0 => {
            let text = format!("update counters set n = n + 1 where id = {key}");
            client.query(&text).await.unwrap()
        }
        1 => {
            let id = client.id(0).unwrap();
            client
                .ask(&execute(id, &["1", &key.to_string()]))
                .await
                .unwrap()
        }
        _ => {
            let id = client.id(1).unwrap();
            client.ask(&execute(id, &[&key.to_string()])).await.unwrap()
        }
    };
    let done = success(&answer);
    done.unwrap_or_else(|| panic!("round {round}: {:?}", error(&answer)))
        .affected
}

#[tokio::test(flavor = "multi_thread")]
async fn sums_are_exact() {
    let gateway = Gateway::start();
    gateway.exec("create table counters (id int primary key, n bigint not null)");
    let mut running = JoinSet::new();
    for session in 0..SESSIONS {
        let mut client = gateway.client().await;
        running.spawn(async move {
            let update = b"update counters set n = n + ? where id = ?";
            client.prepare(0, update).await.unwrap();
            let upsert = b"insert into counters values (?, 1) on duplicate key update n = n + 1";
            client.prepare(1, upsert).await.unwrap();
            let mut done = vec![0; usize::try_from(KEYS).unwrap()];
            for round in 0..ROUNDS {
                let key = (session + round) % KEYS;
                // Before the row is there, an UPDATE changes nothing. An insert affects one row,
                // an update behind ON DUPLICATE KEY two.
                let affected = add(&mut client, round, key).await;
                done[usize::try_from(key).unwrap()] += affected.min(1);
            }
            done
        });
    }
    let sums = running
        .join_all()
        .await
        .into_iter()
        .reduce(|all, one| all.iter().zip(one).map(|(a, b)| a + b).collect());
    for (key, sum) in sums.unwrap().into_iter().enumerate() {
        let stored = gateway.exec(&format!("select n from counters where id = {key}"));
        assert_eq!(stored, sum.to_string(), "key {key}");
    }
    gateway.joins();
}
