//! Values that a statement reads of its session: the same alone and joined with others.

use windrow_testkit::pgclient::backend::{first_value, sqlstate};
use windrow_testkit::pgclient::{Client, frontend};

use crate::support::Gateway;

fn ask(client: &mut Client, sql: &str) -> String {
    let answer = client.query(sql).unwrap();
    assert_eq!(sqlstate(&answer), None, "{sql}: {answer:?}");
    first_value(&answer).unwrap_or_default()
}

#[test]
fn every_setting_that_a_write_tells_is_the_sessions() {
    let gateway = Gateway::start();
    gateway.exec("create table seen (name text primary key, value text)");
    let settings =
        gateway.exec("select name from pg_settings where name <> 'transaction_deferrable'");
    let (mut client, mut direct) = (gateway.client(), gateway.direct());
    for session in [&mut client, &mut direct] {
        ask(session, "set application_name = 'mine'");
    }
    for name in settings.lines() {
        let told = format!("current_setting('{name}', true)");
        let sql = format!("insert into seen values ('{name}', {told}) returning value");
        let through = ask(&mut client, &sql);
        assert_eq!(
            through,
            ask(&mut direct, &format!("select {told}")),
            "{name}"
        );
    }
}

#[test]
fn an_audit_column_has_its_own_sessions_values() {
    let gateway = Gateway::start();
    gateway.exec(
        "create table audited (id int primary key, app text default current_setting('application_name'),
           who text default current_user, tenant text default current_setting('app.tenant', true), waits text);
         create function audits() returns trigger language plpgsql as
           $$ begin new.waits := current_setting('lock_timeout') || current_setting('statement_timeout'); return new; end $$;
         create trigger audits before insert on audited for each row execute function audits();
         create role other; grant all on audited to other",
    );
    let mut clients: Vec<Client> = (0..4).map(|_| gateway.client()).collect();
    for (n, client) in clients.iter_mut().enumerate() {
        ask(client, &format!("set application_name = 'app{n}'"));
        ask(client, &format!("set app.tenant = 't{n}'"));
        ask(client, &format!("set lock_timeout = '{}s'", n + 1));
        if n % 2 == 1 {
            ask(client, "set role other");
        }
    }
    let insert = |id: usize| {
        let mut out = Vec::new();
        frontend::parse(
            &mut out,
            "",
            "insert into audited (id) values ($1) returning *",
            &[],
        );
        frontend::bind(&mut out, ("", ""), &[], &[Some(id.to_string())], &[]);
        frontend::execute(&mut out, "", 0);
        frontend::sync(&mut out);
        out
    };
    for round in 0..3 {
        // All at once: what can be joined is.
        for (n, client) in clients.iter_mut().enumerate() {
            client.send(&insert(round * 10 + n)).unwrap();
        }
        for (n, client) in clients.iter_mut().enumerate() {
            let answer = client.until_ready().unwrap();
            assert_eq!(sqlstate(&answer), None);
            let row = answer
                .iter()
                .find(|message| message.tag == b'D')
                .unwrap()
                .values();
            let text = |value: &Option<Vec<u8>>| String::from_utf8(value.clone().unwrap()).unwrap();
            let row: Vec<String> = row.iter().map(text).collect();
            let who = if n % 2 == 1 {
                "other"
            } else {
                &*gateway.address.role
            };
            let waits = format!("{}s0", n + 1);
            let expected = [&format!("app{n}"), who, &format!("t{n}"), &waits];
            assert_eq!(row[1..], expected.map(str::to_owned), "{n}");
        }
    }
}

#[test]
fn the_size_of_a_value_is_that_of_the_client() {
    let gateway = Gateway::start();
    gateway.exec("create table sized (id int primary key, v text, size int)");
    let run = |client: &mut Client, first: usize| -> Vec<String> {
        let sql = "insert into sized values ($1, $2, pg_column_size($2::text)) returning size";
        let mut out = Vec::new();
        for (n, value) in ["a", "abcdef", ""].iter().enumerate() {
            frontend::parse(&mut out, "", sql, &[]);
            let values = [Some((first + n).to_string()), Some((*value).to_owned())];
            frontend::bind(&mut out, ("", ""), &[], &values, &[]);
            frontend::execute(&mut out, "", 0);
            frontend::sync(&mut out);
        }
        client.send(&out).unwrap();
        let sizes = (0..3).map(|_| first_value(&client.until_ready().unwrap()).unwrap());
        sizes.collect()
    };
    let alone = run(&mut gateway.direct(), 0);
    let mut client = gateway.client();
    for round in 1..4 {
        assert_eq!(run(&mut client, round * 10), alone);
    }
}
