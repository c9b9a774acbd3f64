//! Scenarios for tokio-postgres, which prepares everything and pipelines what is asked at once.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use futures_util::{SinkExt, StreamExt, TryStreamExt, pin_mut, stream};
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Error, NoTls, SimpleQueryMessage};

type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// What was told so far. Notices arrive beside the answers.
#[derive(Clone, Default)]
struct Transcript(Arc<Mutex<String>>);

impl Transcript {
    fn say(&self, step: &str, told: impl Debug) {
        writeln!(self.0.lock().unwrap(), "{step}: {told:?}").unwrap();
    }

    fn step<T: Debug>(&self, step: &str, result: Result<T, Error>) {
        match result {
            Ok(value) => self.say(step, value),
            Err(error) => self.say(step, failure(&error)),
        }
    }
}

fn failure(error: &Error) -> String {
    error
        .as_db_error()
        .map_or_else(|| format!("{error:?}"), |told| format!("{told:?}"))
}

/// Plays all scenarios.
pub fn play(url: &str) -> String {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let transcript = Transcript::default();
    runtime.block_on(all(url, &transcript));
    transcript.0.lock().unwrap().clone()
}

async fn all(url: &str, t: &Transcript) {
    let c = connect(url, t).await;
    c.batch_execute(include_str!("../../../../tests/drivers/schema.sql"))
        .await
        .unwrap();
    writes(&c, t).await;
    refused(&c, t).await;
    pipelined(&c, t).await;
    transactions(url, t).await;
    session(&c, url, t).await;
    rows_of_a_loop(&c, t).await;
    together(url, &c, t).await;
}

async fn connect(url: &str, t: &Transcript) -> Client {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let t = t.clone();
    tokio::spawn(async move {
        let messages = stream::poll_fn(move |context| connection.poll_message(context));
        pin_mut!(messages);
        while let Some(Ok(message)) = messages.next().await {
            match message {
                AsyncMessage::Notice(notice) => t.say("notice", format!("{notice:?}")),
                AsyncMessage::Notification(n) => t.say("heard", (n.channel(), n.payload())),
                _ => {}
            }
        }
    });
    client
}

/// The rows as the texts that a simple query gives.
async fn simple(c: &Client, sql: &str) -> Result<Vec<String>, Error> {
    let messages = c.simple_query(sql).await?;
    Ok(messages.iter().map(simple_message).collect())
}

fn simple_message(message: &SimpleQueryMessage) -> String {
    match message {
        SimpleQueryMessage::Row(row) => {
            let cells = (0..row.len()).map(|n| row.get(n).map(str::to_owned));
            format!("row {:?}", cells.collect::<Vec<_>>())
        }
        SimpleQueryMessage::CommandComplete(count) => format!("complete {count}"),
        SimpleQueryMessage::RowDescription(columns) => {
            format!(
                "columns {:?}",
                columns.iter().map(|c| c.name()).collect::<Vec<_>>()
            )
        }
        _ => "other".to_owned(),
    }
}

async fn writes(c: &Client, t: &Transcript) {
    let insert = "INSERT INTO parent (id, name) VALUES ($1, $2)";
    t.step("parent", c.execute(insert, &[&1, &"one"]).await);
    let child = "INSERT INTO child (parent_id, quantity) VALUES ($1, $2) RETURNING id";
    t.step(
        "child",
        c.query_one(child, &[&1, &5])
            .await
            .map(|row| row.get::<_, i32>(0)),
    );
    t.step(
        "lastval",
        c.query_one("SELECT lastval()", &[])
            .await
            .map(|row| row.get::<_, i64>(0)),
    );
    let insert = c
        .prepare("INSERT INTO plain (id, a, b) VALUES ($1, $2, $3)")
        .await
        .unwrap();
    t.say("types", (insert.params(), insert.columns().len()));
    for n in 1..30 {
        t.step("insert", c.execute(&insert, &[&n, &Some(n), &"it's"]).await);
    }
    for id in [1, 99] {
        t.step(
            "update",
            c.execute("UPDATE plain SET a = a + $1 WHERE id = $2", &[&10, &id])
                .await,
        );
        let returning = "UPDATE plain SET a = a + $1 WHERE id = $2 RETURNING a";
        let rows = c.query(returning, &[&10, &id]).await;
        t.step(
            "returning",
            rows.map(|rows| rows.iter().map(|row| row.get(0)).collect::<Vec<i32>>()),
        );
        t.step(
            "delete",
            c.execute("DELETE FROM plain WHERE id = $1", &[&id]).await,
        );
    }
    let upsert = "INSERT INTO counter AS k VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET n = k.n + excluded.n RETURNING n";
    for _ in 0..3 {
        t.step(
            "upsert",
            c.query_one(upsert, &[&"u", &3_i64])
                .await
                .map(|row| row.get::<_, i64>(0)),
        );
    }
    let kinds = "INSERT INTO kinds (small, big, single, wide, words, bytes, yes, numbers) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let bytes: &[u8] = &[0, 1, 255];
    let values: Values<'_> = &[
        &-3_i16,
        &i64::MAX,
        &1.5_f32,
        &f64::NAN,
        &"\u{fc}\\'",
        &bytes,
        &true,
        &vec![Some(1), None],
    ];
    t.step("kinds", c.execute(kinds, values).await);
    t.step("kinds read", simple(c, "SELECT * FROM kinds").await);
}

async fn refused(c: &Client, t: &Transcript) {
    let cases: [(&str, Values<'_>); 9] = [
        (
            "INSERT INTO parent (id, name) VALUES ($1, $2)",
            &[&2, &"one"],
        ),
        (
            "INSERT INTO parent (id, name) VALUES ($1, $2)",
            &[&1, &"two"],
        ),
        ("INSERT INTO child (parent_id) VALUES ($1)", &[&77]),
        (
            "INSERT INTO parent (id, name) VALUES ($1, $2)",
            &[&3, &None::<&str>],
        ),
        (
            "INSERT INTO child (parent_id, label) VALUES ($1, $2)",
            &[&1, &"longer than ten"],
        ),
        ("INSERT INTO nowhere VALUES ($1)", &[&1]),
        ("INSERT INTO late VALUES ($1, $2)", &[&1, &999]),
        ("INSERT INTO noisy VALUES ($1, $2)", &[&1, &"warn"]),
        ("INSERT INTO noisy VALUES ($1, $2)", &[&2, &"refuse"]),
    ];
    for (sql, values) in cases {
        t.step(sql, c.execute(sql, values).await);
    }
    t.step(
        "wrong type",
        c.execute("INSERT INTO plain (id) VALUES ($1)", &[&"text"])
            .await,
    );
    t.step("script", simple(c, "INSERT INTO plain (id) VALUES (900); SELECT 1 AS x; INSERT INTO plain (id) VALUES (900)").await);
}

/// Many questions at once on one connection; their answers come in order, each its own.
async fn pipelined(c: &Client, t: &Transcript) {
    let insert = c
        .prepare("INSERT INTO plain (id, a) VALUES ($1, $2) RETURNING id")
        .await
        .unwrap();
    let read = c
        .prepare("SELECT count(*) FROM plain WHERE id = $1")
        .await
        .unwrap();
    let ids: Vec<i32> = (1000..1200)
        .map(|n| if n % 10 == 7 { 1000 } else { n })
        .collect();
    let asked = ids.iter().map(|id| {
        let (insert, read) = (&insert, &read);
        async move {
            let (both, one): ([&(dyn ToSql + Sync); 2], [&(dyn ToSql + Sync); 1]) =
                ([id, id], [id]);
            let first = c.query_one(insert, &both);
            let second = c.query_one(read, &one);
            let (first, second) = futures_util::join!(first, second);
            (
                first
                    .map(|row| row.get::<_, i32>(0))
                    .map_err(|e| failure(&e)),
                second
                    .map(|row| row.get::<_, i64>(0))
                    .map_err(|e| failure(&e)),
            )
        }
    });
    for told in join_all(asked).await {
        t.say("pipelined", told);
    }
    let updates = (1000..1200).map(|id| async move {
        c.execute("UPDATE plain SET a = a + 1 WHERE id = $1", &[&id])
            .await
            .ok()
    });
    t.say("updates", join_all(updates).await);
}

async fn transactions(url: &str, t: &Transcript) {
    let mut c = connect(url, t).await;
    let mut outer = c.transaction().await.unwrap();
    t.step(
        "insert",
        outer
            .execute("INSERT INTO plain (id) VALUES ($1)", &[&2000])
            .await,
    );
    let inner = outer.savepoint("nested").await.unwrap();
    t.step(
        "duplicate",
        inner
            .execute("INSERT INTO plain (id) VALUES ($1)", &[&2000])
            .await,
    );
    t.step("failed", inner.execute("SELECT 1", &[]).await);
    t.step("back", inner.rollback().await);
    let portal = outer
        .bind("SELECT n FROM generate_series(1, 25) n", &[])
        .await
        .unwrap();
    for _ in 0..3 {
        t.step(
            "portal",
            outer.query_portal(&portal, 10).await.map(|rows| rows.len()),
        );
    }
    t.step("commit", outer.commit().await);
    let dropped = c.transaction().await.unwrap();
    t.step(
        "undone",
        dropped
            .execute("INSERT INTO plain (id) VALUES ($1)", &[&2001])
            .await,
    );
    drop(dropped);
    let rows = c
        .query_one("SELECT count(*) FROM plain WHERE id >= 2000", &[])
        .await;
    t.step("left", rows.map(|row| row.get::<_, i64>(0)));
    let late = c.transaction().await.unwrap();
    t.step(
        "late",
        late.execute("INSERT INTO late VALUES ($1, $2)", &[&2, &999])
            .await,
    );
    t.step("commit late", late.commit().await);
}

async fn session(c: &Client, url: &str, t: &Transcript) {
    let settings = [
        "SET TIME ZONE 'Asia/Tokyo'",
        "SET ROLE windrow_guest",
        "RESET ROLE",
        "RESET ALL",
    ];
    for (id, set) in (0_i32..).zip(settings) {
        t.step(set, c.batch_execute(set).await);
        let stamped = c
            .query_one(
                "INSERT INTO stamped (id) VALUES ($1) RETURNING who, zone",
                &[&id],
            )
            .await;
        t.step(
            "stamped",
            stamped.map(|row| (row.get::<_, String>(0), row.get::<_, String>(1))),
        );
    }
    t.step("listen", c.batch_execute("LISTEN bell").await);
    t.step(
        "notify",
        c.execute("SELECT pg_notify('bell', 'ding')", &[]).await,
    );
    t.step(
        "temporary",
        c.batch_execute("CREATE TEMP TABLE passing (id int)").await,
    );
    t.step(
        "into it",
        c.execute("INSERT INTO passing VALUES ($1)", &[&1]).await,
    );
    for lines in [
        "3000\tcopied\n3001\tcopied\n",
        "3002\tcopied\n3000\tcopied\n",
    ] {
        t.step("copy in", copy_in(c, lines).await);
    }
    t.step("copy out", copy_out(c).await);
    let large = "x".repeat(1_000_000);
    t.step(
        "large",
        c.execute(
            "INSERT INTO plain (id, b) VALUES ($1, $2)",
            &[&3100, &large],
        )
        .await,
    );
    let back = c
        .query_one("SELECT b FROM plain WHERE id = 3100", &[])
        .await;
    t.step("whole", back.map(|row| row.get::<_, String>(0) == large));
    t.step(
        "many",
        c.query("SELECT n FROM generate_series(1, 10000) n", &[])
            .await
            .map(|rows| rows.len()),
    );
    t.step(
        "timeout",
        simple(c, "SET statement_timeout = 100; SELECT pg_sleep(60)").await,
    );
    t.step("still", simple(c, "SHOW statement_timeout").await);
    t.step(
        "no timeout",
        c.batch_execute("RESET statement_timeout").await,
    );
    let other = connect(url, t).await;
    let token = other.cancel_token();
    let (slept, canceled) = futures_util::join!(simple(&other, "SELECT pg_sleep(60)"), async {
        // The sleep must have begun: nothing else can be canceled.
        while simple(c, "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)' AND state = 'active' AND pid <> pg_backend_pid()")
            .await
            .unwrap()
            .len()
            < 3
        {}
        token.cancel_query(NoTls).await
    });
    t.step("slept", slept);
    t.step("canceled", canceled);
    t.step(
        "goes on",
        other
            .execute("INSERT INTO plain (id) VALUES (3200)", &[])
            .await,
    );
}

async fn copy_in(c: &Client, lines: &'static str) -> Result<u64, Error> {
    let sink = c.copy_in("COPY plain (id, b) FROM STDIN").await?;
    pin_mut!(sink);
    sink.send(lines.as_bytes()).await?;
    sink.finish().await
}

async fn copy_out(c: &Client) -> Result<Vec<String>, Error> {
    let sql = "COPY (SELECT id, b FROM plain WHERE id BETWEEN 3000 AND 3099 ORDER BY id) TO STDOUT";
    let parts = c.copy_out(sql).await?;
    parts
        .map_ok(|part| String::from_utf8_lossy(&part).into_owned())
        .try_collect()
        .await
}

async fn rows_of_a_loop(c: &Client, t: &Transcript) {
    let insert = c
        .prepare("INSERT INTO plain (id, a, b) VALUES ($1, $2, 'loop')")
        .await
        .unwrap();
    let update = c
        .prepare("UPDATE plain SET a = a + 1 WHERE id = $1")
        .await
        .unwrap();
    let mut counts = (0, 0);
    for n in 4000..4300 {
        counts.0 += c.execute(&insert, &[&n, &n]).await.unwrap();
        counts.1 += c.execute(&update, &[&n]).await.unwrap();
    }
    t.say("loop", counts);
}

async fn together(url: &str, c: &Client, t: &Transcript) {
    c.batch_execute("INSERT INTO counter VALUES ('shared', 0)")
        .await
        .unwrap();
    let workers = (0..32).map(|number: i32| async move {
        let own = connect(url, t).await;
        let mut won = 0;
        for n in 0..50_i32 {
            let id = 10_000 + number * 100 + n;
            own.execute("INSERT INTO plain (id, a) VALUES ($1, $2)", &[&id, &n])
                .await
                .unwrap();
            own.execute("UPDATE counter SET n = n + 1 WHERE name = $1", &[&"shared"])
                .await
                .unwrap();
            match own
                .execute("INSERT INTO claimed (key, owner) VALUES ($1, 0)", &[&n])
                .await
            {
                Ok(count) => won += count,
                Err(error) => {
                    let told = error.as_db_error().unwrap();
                    assert_eq!(
                        told.detail(),
                        Some(format!("Key (key)=({n}) already exists.").as_str())
                    );
                }
            }
        }
        won
    });
    t.say("won", join_all(workers).await.iter().sum::<u64>());
    t.step(
        "sum",
        simple(c, "SELECT n FROM counter WHERE name = 'shared'").await,
    );
    t.step(
        "rows",
        simple(c, "SELECT count(*), sum(a) FROM plain WHERE id >= 10000").await,
    );
}
