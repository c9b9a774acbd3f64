//! SQL clients that are answered by the spool.

use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use windrow_testkit::command;
use windrow_testkit::proxy::{Direction, Proxy};

use crate::support::{Db, Gateway, TEST_TIMEOUT, draining, spool};

/// All that is read of a value for the spool, and some that is left to the database.
const TYPES: &str = "create table types (id int primary key, small smallint, big bigint,
    single real, double double precision, exact numeric(9, 3), free numeric, yes boolean,
    words text, short varchar(5), padded char(4), bytes bytea, id2 uuid, plain json, parsed jsonb,
    day date, local timestamp, moment timestamptz, span interval, list int[], address inet,
    made timestamptz default now(), fixed text default 'x', mood mood);";

/// Statements; of some the values are refused.
const STATEMENTS: &[&str] = &[
    "(id, small, big) values (1, -32768, 9223372036854775807)",
    "(id, single, double, exact, free) values (2, 0.1, 1e-300, 1.2345, 1.500)",
    "(id, single, double, exact, free) values (3, 3, 7, 5, 123456789012345678901234567890)",
    "(id, yes, words) values (4, true, 'it''s')",
    "(id, yes, words, short) values (5, 'f', E'a\\nb', 'abc  ')",
    "(id, padded, bytes) values (6, 'ab', '\\x00ff')",
    "(id, bytes) values (7, 'plain')",
    "(id, id2) values (8, 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11')",
    "(id, plain, parsed) values (9, '{\"b\" : 1, \"a\":2}', '{\"b\" : 1, \"a\":2}')",
    "(id, plain, parsed) values (10, '\"text\"', 'null')",
    "(id, day, local, moment) values (11, '2024-02-29', '2024-02-29 23:59:59.999999', '2024-02-29 12:00+02')",
    "(id, day, moment) values (12, '2/29/2024', '2024-02-29 12:00')",
    "(id, day, local) values (13, 'infinity', '-infinity')",
    "(id, span, list, address) values (14, '1 day', '{1,null,3}', '10.0.0.1/8')",
    "(id, words) values (15, null)",
    "(id, words) values (15, 'twice')",
    "(id, short) values (16, 'too long')",
    "(id, small) values (17, 40000)",
    "(id, day) values (18, 'no day')",
    "(id, mood, fixed) values (19, 'sad', default)",
    "(id, mood) values (20, 'none')",
    "(id, words) values (21, upper('a'))",
    "(id, words) values (22, 'one'), (23, 'two')",
    "(id, words) values (4, 'again') on conflict (id) do update set words = excluded.words",
    "(id, words) values (4, 'never') on conflict (id) do nothing",
    "(id, words) values (4, 'more') on conflict (id) do update set words = types.words || excluded.words",
    "(id) values (null)",
];

pub(crate) async fn connect(gateway: &Gateway, db: &Db, options: &str) -> Client {
    let config: tokio_postgres::Config = db.url().parse().unwrap();
    connect_as(gateway, db, config.get_user().unwrap(), options).await
}

/// How a client of the database reaches it through the gateway.
pub(crate) fn sql_config(gateway: &Gateway, db: &Db) -> tokio_postgres::Config {
    sql_config_of(gateway, &db.url())
}

/// The same of a database with this URL.
pub(crate) fn sql_config_of(gateway: &Gateway, url: &str) -> tokio_postgres::Config {
    let address = gateway.process.pg_address().unwrap();
    let direct: tokio_postgres::Config = url.parse().unwrap();
    let mut config = tokio_postgres::Config::new();
    config.host(address.ip().to_string()).port(address.port());
    config.dbname(direct.get_dbname().unwrap());
    config.user(direct.get_user().unwrap());
    if let Some(password) = direct.get_password() {
        config.password(password);
    }
    config
}

async fn connect_as(gateway: &Gateway, db: &Db, role: &str, options: &str) -> Client {
    let mut config = sql_config(gateway, db);
    config.user(role);
    if !options.is_empty() {
        config.options(options);
    }
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

pub(crate) fn start(db: &Db, directory: &std::path::Path, more: &[&str]) -> Gateway {
    let all = [&["--pg", "127.0.0.1:0"], more].concat();
    Gateway::with(&db.url(), directory, &all)
}

/// What a statement is answered, or its error's code.
pub(crate) async fn told(client: &Client, sql: &str) -> String {
    let messages = match client.simple_query(sql).await {
        Ok(messages) => messages,
        Err(error) => return format!("error {}", error.code().map_or("", |code| code.code())),
    };
    let text = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        SimpleQueryMessage::CommandComplete(rows) => Some(rows.to_string()),
        _ => None,
    };
    messages.iter().find_map(text).unwrap_or_default()
}

/// Tells how many entries were ever appended.
async fn appended(gateway: &Gateway) -> u64 {
    gateway.spool().await["end"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn spooled_statements_store_what_they_would_have_stored() {
    let mood = "create type mood as enum ('sad', 'ok');";
    let (through, direct) = (Db::postgres(), Db::postgres());
    for db in [&through, &direct] {
        db.sql(&format!("{mood} {TYPES}"));
    }
    let directory = spool();
    let gateway = start(&through, directory.path(), &[]);
    let client = connect(&gateway, &through, "").await;
    let (alone, connection) = tokio_postgres::connect(&direct.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    for statement in STATEMENTS {
        let sql = format!("insert into types {statement}");
        let (here, there) = (told(&client, &sql).await, told(&alone, &sql).await);
        let refused = there.starts_with("error");
        // What the spool has taken may be refused afterwards.
        assert!(
            here == there || refused && here == "1",
            "{sql}: {here} for {there}"
        );
    }
    let spooled = appended(&gateway).await;
    assert!(spooled >= 14, "only {spooled} went by the spool");
    gateway.level().await;
    // All but the time at which a row was made.
    let all = "select to_jsonb(types) - 'made', exact::text, free::text, plain::text, \
        moment, local, made is not null from types order by id";
    assert_eq!(through.sql(all), direct.sql(all));
    let letters = "select code from windrow_rejected order by 1";
    assert_eq!(
        through.sql(letters).replace('\n', " "),
        "22001 22003 22P02 23502 23505"
    );
    gateway.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn binary_values_of_a_driver_are_stored_as_they_are() {
    let db = Db::postgres();
    db.sql("create table b (a int primary key, b bigint, c double precision, d text, e bytea, f bool, g real)");
    let directory = spool();
    let gateway = start(&db, directory.path(), &[]);
    let client = connect(&gateway, &db, "").await;
    let sql = "insert into b values ($1, $2, $3, $4, $5, $6, $7)";
    let statement = client.prepare(sql).await.unwrap();
    for n in 0..50_i32 {
        let (big, double) = (i64::MIN + i64::from(n), 0.1 * f64::from(n));
        let (text, bytes) = (format!("'\\{n}\""), vec![0_u8, 255]);
        let single = 0.1_f32;
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
            [&n, &big, &double, &text, &bytes, &(n % 2 == 0), &single];
        assert_eq!(client.execute(&statement, &values).await.unwrap(), 1);
    }
    assert_eq!(appended(&gateway).await, 50);
    let rows = client
        .query("select a, b, c, d, e, f, g from b order by a", &[])
        .await
        .unwrap();
    assert_eq!(rows.len(), 50);
    let row = &rows[7];
    let same = (0.1 * 7.0, "'\\7\"", vec![0_u8, 255], false);
    assert_eq!((row.get(2), row.get(3), row.get(4), row.get(5)), same);
    assert_eq!(
        (row.get::<_, i64>(1), row.get::<_, f32>(6)),
        (i64::MIN + 7, 0.1)
    );
    gateway.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_has_in_the_spool_comes_before_all_else_of_it() {
    let db = Db::postgres();
    db.sql("create table t (id int primary key, v int)");
    let directory = spool();
    let gateway = start(&db, directory.path(), &[]);
    let client = connect(&gateway, &db, "").await;
    for n in 0..20 {
        assert_eq!(
            told(&client, &format!("insert into t values ({n}, 0)")).await,
            "1"
        );
        assert_eq!(
            told(&client, &format!("update t set v = 1 where id = {n}")).await,
            "1"
        );
        assert_eq!(
            told(&client, &format!("insert into t values (100 + {n}, 0)")).await,
            "1"
        );
        let count = told(&client, "select count(*) from t").await;
        assert_eq!(count, (2 * n + 2).to_string());
    }
    client
        .batch_execute("insert into t values (50, 0); ")
        .await
        .unwrap();
    client
        .batch_execute("begin; delete from t where id = 50; commit")
        .await
        .unwrap();
    assert_eq!(
        told(&client, "select count(*) from t where id = 50").await,
        "0"
    );
    gateway.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_read_as_the_server_reads_its_own() {
    let db = Db::postgres();
    db.sql("create table t (id serial primary key, v int)");
    let directory = spool();
    let gateway = start(&db, directory.path(), &["--ack", "commit"]);
    let client = connect(&gateway, &db, "").await;
    let show = "show windrow.ack";
    assert_eq!(told(&client, show).await, "commit");
    assert_eq!(
        told(&client, "set windrow.ack = 'disk'").await,
        "error 22023"
    );
    assert_eq!(
        told(&client, "set windrow.read_your_writes = maybe").await,
        "error 22023"
    );
    assert_eq!(told(&client, "insert into t (v) values (1)").await, "1");
    assert_eq!(appended(&gateway).await, 0);
    client
        .batch_execute("set windrow.ack = spool")
        .await
        .unwrap();
    assert_eq!(told(&client, show).await, "spool");
    assert_eq!(told(&client, "insert into t (v) values (2)").await, "1");
    assert_eq!(appended(&gateway).await, 1);
    // A statement that is prepared asks nothing yet.
    client
        .batch_execute("prepare last as select lastval()")
        .await
        .unwrap();
    // The value is taken later, so nobody can tell it.
    assert_eq!(told(&client, "execute last").await, "error 0A000");
    assert_eq!(told(&client, "select lastval()").await, "error 0A000");
    assert_eq!(
        told(&client, "select currval('t_id_seq')").await,
        "error 0A000"
    );
    // Who asks is answered by the database from now on.
    assert_eq!(told(&client, "insert into t (v) values (3)").await, "1");
    assert_eq!(appended(&gateway).await, 1);
    client.batch_execute("reset windrow.ack").await.unwrap();
    assert_eq!(told(&client, show).await, "commit");
    let early = connect(
        &gateway,
        &db,
        "-cwindrow.ack=spool -cwindrow.read_your_writes=off",
    )
    .await;
    assert_eq!(told(&early, show).await, "spool");
    assert_eq!(told(&early, "show windrow.read_your_writes").await, "off");
    // Settings that a default may read keep rows out of the spool.
    early.batch_execute("set app.tenant = 'x'").await.unwrap();
    assert_eq!(told(&early, "insert into t (v) values (4)").await, "1");
    assert_eq!(appended(&gateway).await, 1);
    gateway.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_another_role_has_no_spool() {
    let db = Db::postgres();
    let role = format!("guest_of_{}", db.sql("select current_database()"));
    db.sql(&format!(
        "create table t (id int primary key); create role {role} login; grant all on t to {role}"
    ));
    let directory = spool();
    let gateway = start(&db, directory.path(), &[]);
    let client = connect_as(&gateway, &db, &role, "").await;
    assert_eq!(told(&client, "show windrow.ack").await, "commit");
    let set = "set windrow.ack = 'spool'";
    assert_eq!(told(&client, set).await, "error 42501");
    assert_eq!(told(&client, "insert into t values (1)").await, "1");
    assert_eq!(appended(&gateway).await, 0);
    drop(client);
    gateway.stop();
    db.sql(&format!("drop owned by {role}; drop role {role}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_that_drops_rows_is_seen() {
    let db = Db::postgres();
    db.sql("create table t (id int primary key)");
    db.sql(
        "create function drops() returns trigger language plpgsql as
        $$ begin if new.id > 5 then return null; end if; return new; end $$",
    );
    let directory = spool();
    let gateway = start(&db, directory.path(), &[]);
    let client = connect(&gateway, &db, "").await;
    assert_eq!(told(&client, "insert into t values (1)").await, "1");
    assert_eq!(appended(&gateway).await, 1);
    let trigger = "create trigger drops before insert on t for each row execute function drops()";
    client.batch_execute(trigger).await.unwrap();
    let answer = told(&client, "insert into t values (9)").await;
    assert_eq!((&*answer, appended(&gateway).await), ("0", 1));
    gateway.stop();
}

/// On the way past the spool a row would wait for the lock, and overtake others.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_keeps_no_row_out_of_the_spool() {
    let (db, directory) = (Db::postgres(), spool());
    db.sql("create table t (id int primary key)");
    let gateway = start(&db, directory.path(), &[]);
    let client = connect(&gateway, &db, "").await;
    assert_eq!(told(&client, "insert into t values (1)").await, "1");
    // Whatever changes the catalog has every table looked at again.
    client.batch_execute("create table other ()").await.unwrap();
    let (locker, connection) = tokio_postgres::connect(&db.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let lock = "begin; lock table t in access exclusive mode";
    locker.batch_execute(lock).await.unwrap();
    let insert = told(&client, "insert into t values (2)");
    let answer = tokio::time::timeout(TEST_TIMEOUT, insert).await.unwrap();
    assert_eq!((&*answer, appended(&gateway).await), ("1", 2));
    locker.batch_execute("commit").await.unwrap();
    gateway.level().await;
    assert_eq!(db.sql("select count(*) from t"), "2");
    gateway.stop();
}

const FAMILY: &str = "create table parents (id int primary key);
    create table children (id int primary key, parent int not null references parents (id));";

#[tokio::test(flavor = "multi_thread")]
async fn children_of_ten_sessions_find_their_parents_over_kills() {
    let db = Db::postgres();
    db.sql(FAMILY);
    let directory = spool();
    let mut acknowledged = Vec::new();
    for round in 0..4_i32 {
        let gateway = start(&db, directory.path(), &[]);
        let mut sessions = Vec::new();
        for session in 0..10_i32 {
            let client = connect(&gateway, &db, "").await;
            sessions.push(tokio::spawn(async move {
                let parent = client
                    .prepare("insert into parents values ($1)")
                    .await
                    .unwrap();
                let child = client
                    .prepare("insert into children values ($1, $2)")
                    .await
                    .unwrap();
                let mut told = Vec::new();
                for n in 0..20_i32 {
                    let id = (round * 10 + session) * 20 + n;
                    client.execute(&parent, &[&id]).await.unwrap();
                    client.execute(&child, &[&id, &id]).await.unwrap();
                    told.push(id);
                }
                told
            }));
        }
        for session in sessions {
            acknowledged.extend(session.await.unwrap());
        }
        match round % 2 {
            0 => gateway.kill9(),
            _ => drop(gateway.stop()),
        }
    }
    command::run(&mut draining(&db.url(), directory.path())).ends(0);
    let count = acknowledged.len().to_string();
    assert_eq!(db.sql("select count(*) from children"), count);
    assert_eq!(db.sql("select count(*) from parents"), count);
    assert_eq!(db.sql("select count(*) from windrow_rejected"), "0");
}

/// A statement waits for the spool as long as its client does.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_left_is_not_waited_for() {
    let (db, directory) = (Db::postgres(), spool());
    db.sql("create table t (id int primary key, v int)");
    let direct: tokio_postgres::Config = db.url().parse().unwrap();
    let upstream = format!("127.0.0.1:{}", direct.get_ports()[0]);
    let proxy = Proxy::builder(upstream).start().await.unwrap();
    let through = proxy.through(&db.url()).unwrap();
    let more = ["--pg", "127.0.0.1:0"];
    let gateway = Gateway::with(&through, directory.path(), &more);
    let (client, connection) = sql_config(&gateway, &db).connect(NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    assert_eq!(told(&client, "insert into t values (1, 0)").await, "1");
    gateway.level().await;
    proxy.pause(Direction::ToServer);
    assert_eq!(told(&client, "insert into t values (2, 0)").await, "1");
    let delete = client.simple_query("delete from t");
    let waits = tokio::time::timeout(std::time::Duration::from_millis(200), delete).await;
    assert!(waits.is_err(), "it waits for the database");
    connection.abort();
    let start = std::time::Instant::now();
    loop {
        let (_, metrics) = gateway.get("/metrics").await;
        if metrics
            .as_str()
            .unwrap()
            .contains("\nwindrow_pg_clients 0\n")
        {
            break;
        }
        assert!(start.elapsed() < TEST_TIMEOUT, "{}", gateway.process.log());
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    proxy.resume(Direction::ToServer);
    gateway.level().await;
    gateway.stop();
    assert_eq!(db.sql("select count(*) from t"), "2");
}

/// The first statement of a block waits for the spool: those after it see the database as it did.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_begins_after_what_its_session_has_spooled() {
    let (db, directory) = (Db::postgres(), spool());
    db.sql("create table t (id int primary key, v int)");
    let gateway = start(&db, directory.path(), &[]);
    let options = "-cwindrow.ack=spool -cwindrow.read_your_writes=off";
    let client = connect(&gateway, &db, options).await;
    let (mut holder, connection) = tokio_postgres::connect(&db.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    assert_eq!(told(&client, "insert into t values (1, 0)").await, "1");
    gateway.level().await;
    let lock = holder.transaction().await.unwrap();
    lock.batch_execute("lock table t in exclusive mode")
        .await
        .unwrap();
    assert_eq!(told(&client, "insert into t values (2, 0)").await, "1");
    // A read outside of a block does not wait.
    assert_eq!(told(&client, "select count(*) from t").await, "1");
    told(&client, "begin isolation level repeatable read").await;
    let mut select = std::pin::pin!(told(&client, "select 1"));
    let waits = tokio::time::timeout(std::time::Duration::from_millis(200), select.as_mut()).await;
    assert!(waits.is_err(), "it waits for the database");
    lock.rollback().await.unwrap();
    assert_eq!(select.await, "1");
    let update = "update t set v = 1 where id = 2";
    assert_eq!(told(&client, update).await, "1");
    assert_eq!(told(&client, "commit").await, "0");
    gateway.stop();
}
