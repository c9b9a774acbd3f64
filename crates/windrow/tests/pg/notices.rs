//! What triggers and functions raise for a client's write reaches that client, in its place, and
//! nobody else.

use windrow_testkit::pgclient::{Client, Message, backend, frontend};

use crate::support::Gateway;
use crate::types::plain;

const CLIENTS: usize = 16;

const TABLES: &str = "
    create function late() returns trigger language plpgsql as $$ begin
        raise notice 'at last %', new.id; return null; end $$;
    create function positive(int) returns bool immutable language plpgsql as $$ begin
        raise notice 'checked %', $1; return $1 > 0; end $$;
    create function tell() returns trigger language plpgsql as $$ begin
        raise notice 'got %', new.id; return new; end $$;
    create domain size as int check (positive(value));
    create table deferred (id int primary key, v int);
    create constraint trigger late after insert or update on deferred deferrable initially deferred
        for each row execute function late();
    create table checked (id int primary key, v int, constraint good check (positive(id)));
    create table of_domain (id int primary key, v size);
    create table told (id int primary key, v int);
    create trigger tell before insert or update on told for each row execute function tell();
    create table all_of_it (id int primary key, v size, check (positive(id)));
    create constraint trigger late after insert or update on all_of_it deferrable initially deferred
        for each row execute function late();
    create trigger tell before insert or update on all_of_it for each row execute function tell()";

/// One statement of a client, as it is sent.
fn sent(sql: &str, id: usize, extended: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if !extended {
        frontend::query(&mut out, &sql.replace("$1", &id.to_string()));
        return out;
    }
    frontend::parse(&mut out, "", sql, &[]);
    frontend::bind(&mut out, ("", ""), &[], &[Some(id.to_string())], &[]);
    frontend::execute(&mut out, "", 0);
    frontend::sync(&mut out);
    out
}

/// What each of many clients is told, all at the same time.
fn told(clients: &mut [Client], sql: &str, extended: bool) -> Vec<Vec<String>> {
    for (id, client) in (1..).zip(clients.iter_mut()) {
        // The last one is refused.
        let id = if id == CLIENTS { 0 } else { id };
        client.send(&sent(sql, id, extended)).unwrap();
    }
    let hear = |client: &mut Client| plain(&client.until_ready().unwrap());
    clients.iter_mut().map(hear).collect()
}

#[test]
fn each_client_gets_the_notices_of_its_own_write() {
    let gateway = Gateway::start();
    gateway.exec(TABLES);
    let mut through: Vec<Client> = (0..CLIENTS).map(|_| gateway.client()).collect();
    let mut alone: Vec<Client> = (0..CLIENTS).map(|_| gateway.direct()).collect();
    for table in ["deferred", "checked", "of_domain", "told", "all_of_it"] {
        for extended in [false, true] {
            for sql in [
                "insert into T (id, v) values ($1, 1 + $1::int)",
                "update T set v = v + 1 where id = $1",
                "insert into T (id, v) values ($1, 9) on conflict (id) do update set v = 5 returning v",
            ] {
                let sql = sql.replace('T', table);
                // Both find the same rows.
                gateway.exec(&format!("create table before as table {table}"));
                let expected = told(&mut alone, &sql, extended);
                let notices = |lines: &Vec<String>| lines.iter().any(|line| line.starts_with("N "));
                assert!(expected.iter().any(notices), "{sql}: {expected:?}");
                gateway.exec(&format!(
                    "truncate {table}; set session_replication_role = replica;
                     insert into {table} table before; drop table before"
                ));
                assert_eq!(told(&mut through, &sql, extended), expected, "{sql}");
            }
            gateway.exec(&format!("truncate {table}"));
        }
    }
}

/// A block's deferred trigger speaks at COMMIT.
#[test]
fn deferred_triggers_speak_at_the_commit() {
    let gateway = Gateway::start();
    gateway.exec(TABLES);
    let program = |client: &mut Client| -> Vec<String> {
        let mut all: Vec<Message> = Vec::new();
        for sql in [
            "insert into deferred values (1, 1)",
            "begin",
            "insert into deferred values (2, 1)",
            "set constraints all immediate",
            "insert into deferred values (3, 1)",
            "commit",
            "insert into deferred values (4, 1); insert into deferred values (5, 1)",
        ] {
            all.extend(client.query(sql).unwrap());
        }
        assert_eq!(backend::sqlstate(&all), None, "{all:?}");
        plain(&all)
    };
    let expected = program(&mut gateway.direct());
    gateway.exec("truncate deferred");
    assert_eq!(program(&mut gateway.client()), expected);
}
