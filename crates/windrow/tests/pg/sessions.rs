//! Sessions with settings of their own, and what they take of the server.

use windrow_testkit::command::until;
use windrow_testkit::pgclient::backend::{first_value, sqlstate};
use windrow_testkit::pgclient::{Address, Client};
use windrow_testkit::postgres::Postgres;

use crate::load::TABLE;
use crate::support::Gateway;

fn ask(client: &mut Client, sql: &str) -> String {
    let answer = client.query(sql).unwrap();
    assert_eq!(sqlstate(&answer), None, "{sql}: {answer:?}");
    first_value(&answer).unwrap_or_default()
}

#[test]
fn sessions_with_settings_of_their_own_leave_room_for_others() {
    let gateway = Gateway::with(Postgres::builder().set("max_connections", "60"), &[]);
    gateway.exec(TABLE);
    let mut clients: Vec<Client> = (0..120).map(|_| gateway.client()).collect();
    for round in 0..2_usize {
        for (n, client) in clients.iter_mut().enumerate() {
            let timeout = 100_001 + n;
            if round == 0 {
                ask(client, &format!("set statement_timeout = {timeout}"));
            }
            let id = round * 1_000 + n;
            ask(
                client,
                &format!(
                    "insert into readings (id, note) values ({id}, current_setting('statement_timeout'))"
                ),
            );
            let note = ask(
                client,
                &format!("select note from readings where id = {id}"),
            );
            assert_eq!(note, format!("{timeout}ms"));
        }
        // Who comes past it gets in.
        let mut direct = gateway.direct();
        let used = "select count(*) from pg_stat_activity where datname = current_database()";
        let used: u32 = ask(&mut direct, used).parse().unwrap();
        assert!(used < 50, "{used} server connections");
    }
}

#[test]
fn lanes_and_sessions_share_one_bound() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("windrow.toml");
    std::fs::write(&file, "[pg]\nmax_server_connections = 3\n").unwrap();
    let options = ["--config", file.to_str().unwrap()];
    let gateway = Gateway::with(Postgres::builder(), &options);
    gateway.exec(TABLE);
    let mut clients: Vec<Client> = (0..8).map(|_| gateway.client()).collect();
    for round in 0..4 {
        for (n, client) in (0..).zip(&mut clients) {
            let id = round * 100 + n;
            ask(
                client,
                &format!("insert into readings (id, note) values ({id}, 'x')"),
            );
            for sql in ["begin", "select count(*) from readings", "commit"] {
                ask(client, sql);
            }
        }
        let used = "select count(*) from pg_stat_activity where datname = current_database() \
             and application_name <> 'psql' and query !~ 'pg_roles|PREPARE'";
        // Besides, there are the one that asks for roles, the one that describes, that of HTTP, and
        // for a moment two that ask whether who is in would be let in. The server ends connections
        // later than their clients do.
        until("few server connections are left", || {
            gateway.exec(used).parse::<u32>().unwrap() <= 8
        });
    }
}

#[test]
fn sessions_that_keep_their_connections_end_no_joined_writes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("windrow.toml");
    std::fs::write(
        &file,
        "[pg]\nmax_server_connections = 3\nserver_wait = \"1s\"\n",
    )
    .unwrap();
    let options = ["--config", file.to_str().unwrap()];
    let gateway = Gateway::with(Postgres::builder(), &options);
    gateway.exec(TABLE);
    let mut writer = gateway.client();
    let mut others: Vec<Client> = (0..4).map(|_| gateway.client()).collect();
    // Two get a connection, and keep it; the others are told that there are no more.
    let told: Vec<_> = others
        .iter_mut()
        .map(|one| one.query("begin; select 1").unwrap())
        .collect();
    let told = told.iter().filter(|answer| sqlstate(answer).is_none());
    assert_eq!(told.count(), 2);
    for id in 0..20 {
        let insert = format!("insert into readings (id, note) values ({id}, 'x')");
        let answer = writer.query(&insert).unwrap();
        assert_eq!(sqlstate(&answer), None, "{answer:?}");
    }
}

#[test]
fn settings_that_several_share_are_joined() {
    let gateway = Gateway::start();
    gateway.exec(TABLE);
    let count = |of: &str| -> u64 {
        let console = Address {
            database: "windrow".to_owned(),
            ..gateway.address.clone()
        };
        let mut console = Client::connect(&console).unwrap();
        let answer = console.query("show stats").unwrap();
        let rows = answer.iter().filter(|message| message.tag == b'D');
        let mut rows = rows.map(|row| row.values());
        let text = |value: &Option<Vec<u8>>| String::from_utf8(value.clone().unwrap()).unwrap();
        let row = rows.find(|row| text(&row[0]) == of).unwrap();
        text(&row[1]).parse().unwrap()
    };
    let in_lanes = || count("statements_joined") + count("statements_joinable");
    let mut clients: Vec<Client> = (0..3).map(|_| gateway.client()).collect();
    ask(&mut clients[0], "set time zone 'Asia/Tokyo'");
    ask(
        &mut clients[0],
        "insert into readings (id, note) values (1, 'alone')",
    );
    assert_eq!(in_lanes(), 0);
    for client in &mut clients[1..] {
        ask(client, "set time zone 'Asia/Tokyo'");
    }
    for (id, client) in (10..).zip(&mut clients) {
        ask(
            client,
            &format!("insert into readings (id, note) values ({id}, 'shared')"),
        );
    }
    // The second one is the first to find that somebody else wants the same.
    for (id, client) in (20..).zip(&mut clients) {
        ask(
            client,
            &format!("insert into readings (id, note) values ({id}, 'shared')"),
        );
    }
    assert!(in_lanes() >= 3);
    assert_eq!(gateway.exec("select count(*) from readings"), "7");
}

/// What `random()` gives behind `setseed` is known, in whatever statement it stands.
#[test]
fn a_seed_reaches_every_random_number_of_its_session() {
    let gateway = Gateway::start();
    gateway.exec(
        "create table t (id int primary key, v float8 default random());
         create view seen as select id, v from t",
    );
    let program = |client: &mut Client| -> Vec<String> {
        let statements = [
            "insert into t (id) values (1) returning v",
            "select setseed(0.25)",
            "insert into t (id) values (2) returning v",
            "insert into t (id, v) values (3, random()) returning v",
            "update t set v = random() where id = 2 returning v",
            "select random()",
            "insert into t (id) values (4)",
            "insert into seen (id, v) values (5, random())",
            "select v from t where id = 4",
            "select v from t where id = 5",
            "do $$ begin perform setseed(0.5); end $$",
            "insert into t (id) values (6) returning v",
            "set seed = 0.75",
            "insert into t (id) values (7) returning v",
            "begin",
            "select random()",
            "commit",
            "insert into t (id) values (8) returning v",
        ];
        let told = statements.map(|sql| ask(client, sql));
        told[1..].to_vec()
    };
    let expected = program(&mut gateway.direct());
    // Others come and go between.
    let mut others: Vec<Client> = (0..4).map(|_| gateway.client()).collect();
    for (id, other) in (100..).zip(&mut others) {
        ask(other, &format!("insert into t (id) values ({id})"));
    }
    for round in 0..2 {
        gateway.exec("delete from t where id < 100");
        assert_eq!(program(&mut gateway.client()), expected, "{round}");
    }
}
