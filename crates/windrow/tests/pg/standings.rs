//! What operators are told of tables that are written to by SQL.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value as Json;
use windrow_testkit::pgclient::backend::sqlstate;
use windrow_testkit::pgclient::{Address, Client, Message};

use crate::support::Gateway;

const TABLES: &str = "
    create table plain (id int primary key, v int);
    create table audited (id int primary key, v int);
    create table audit (id int);
    create function audit() returns trigger language plpgsql as $$ begin
        insert into audit values (new.id); return null; end $$;
    create trigger audits after insert on audited for each row execute function audit();
    create table ring (id int primary key, next int references ring)";

/// The entries of `/v1/lanes` for a table, each as `writes level reason object`.
pub fn told(gateway: &Gateway, table: &str) -> Vec<String> {
    let mut stream = TcpStream::connect(gateway.windrow.address()).unwrap();
    let request = "GET /v1/lanes HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    let lanes: Json = serde_json::from_str(body).unwrap();
    let tables = lanes["tables"].as_array().unwrap().iter();
    let told = tables
        .filter(|entry| entry["table"] == *table)
        .map(|entry| {
            let said =
                ["level", "reason", "object"].map(|name| entry[name].as_str().unwrap_or("-"));
            format!("{} {}", entry["writes"], said.join(" / "))
        });
    told.collect()
}

/// The command tag of an answer.
fn tag(answer: &[Message]) -> String {
    answer.iter().find_map(Message::command).unwrap_or_default()
}

/// The values of an answer's rows.
fn rows(answer: &[Message]) -> Vec<Vec<Option<Vec<u8>>>> {
    let rows = answer.iter().filter(|message| message.tag == b'D');
    rows.map(Message::values).collect()
}

#[test]
fn tables_written_to_by_sql_are_told_with_what_stands_in_the_way() {
    let gateway = Gateway::start();
    gateway.exec(TABLES);
    // A session that has run unproven code keeps to its own connection from then on.
    let run = |sql| {
        let answer = gateway.client().query(sql).unwrap();
        assert_eq!(sqlstate(&answer), None, "{sql}");
    };
    for sql in [
        "insert into plain values (1, 1)",
        "update plain set v = 2 where id = 1",
        "insert into audited values (1, 1)",
        "update audited set v = 2 where id = 1",
        "insert into ring values (1, 1)",
    ] {
        run(sql);
    }
    let audited = [
        r#"["insert"] apart / a trigger that is not proven harmless / trigger audits on public.audited: in its function public.audit: insert is not known to be harmless"#,
        r#"["update"] fused / - / -"#,
    ];
    for (table, expected) in [
        ("plain", &[r#"["insert","update"] fused / - / -"#][..]),
        ("audited", &audited),
        (
            "ring",
            &[r#"["insert"] grouped / a reference to itself / table public.ring"#],
        ),
    ] {
        assert_eq!(told(&gateway, table), expected);
    }
    // What it is after a change is told with the next statement that is described.
    gateway.exec("drop trigger audits on audited");
    run("insert into audited (id) values (2)");
    let writes = r#"["insert","update"] fused / - / -"#;
    assert_eq!(told(&gateway, "audited"), [writes]);
}

/// Django deletes by `IN (1)`, others by `= ANY (ARRAY[1])`.
#[test]
fn one_value_among_others_is_a_key() {
    let gateway = Gateway::start();
    gateway.exec(TABLES);
    gateway.exec("insert into plain select n, n from generate_series(1, 9) n");
    let mut client = gateway.client();
    for (sql, count) in [
        ("delete from plain where id in (1)", 1),
        ("delete from \"plain\" where \"plain\".\"id\" in (1)", 0),
        ("delete from plain where id = any (array[2])", 1),
        ("update plain set v = 0 where id in (3) and v in (3, 4)", 1),
    ] {
        let answer = client.query(sql).unwrap();
        assert_eq!(
            tag(&answer).rsplit(' ').next(),
            Some(&*count.to_string()),
            "{sql}"
        );
    }
    let writes = r#"["update","delete"] fused / - / -"#;
    assert_eq!(told(&gateway, "plain"), [writes]);
    let answer = client
        .query("delete from plain where id = any (array['4'])")
        .unwrap();
    assert_eq!(sqlstate(&answer).as_deref(), Some("42883"));
    assert_eq!(
        gateway.exec("select id, v from plain order by id limit 2"),
        "3|0\n4|4"
    );
}

/// PostgreSQL 18 returns both versions of a row; those before it refuse that.
#[test]
fn both_versions_of_a_row_are_returned() {
    let gateway = Gateway::start();
    gateway.exec(TABLES);
    gateway.exec("insert into plain select n, n from generate_series(1, 9) n");
    let returning = [
        "update plain set v = v + 1 where id = 1 returning old.v, new.v",
        "update plain set v = v + 1 where id = 1 returning with (old as o, new as n) o.v, n.v, id",
        "insert into plain values (1, 7) on conflict (id) do update set v = 7 returning old.v, new.v",
        "delete from plain where id = 1 returning old.v, new.v",
    ];
    let (mut through, mut alone) = (gateway.client(), gateway.direct());
    for sql in returning {
        let direct = alone.query(&format!("begin; {sql}")).unwrap();
        alone.query("rollback").unwrap();
        let told = through.query(sql).unwrap();
        assert_eq!(rows(&told), rows(&direct), "{sql}");
        assert_eq!(sqlstate(&told), sqlstate(&direct), "{sql}");
    }
    let writes = match is_18(&gateway) {
        true => vec![r#"["insert","update","delete"] fused / - / -"#],
        false => Vec::new(),
    };
    assert_eq!(told(&gateway, "plain"), writes);
}

fn is_18(gateway: &Gateway) -> bool {
    gateway.exec("select current_setting('server_version_num')::int >= 180000") == "t"
}

/// A whole temporal key names one row at most.
#[test]
fn a_whole_temporal_key_is_a_key() {
    let gateway = Gateway::start();
    if !is_18(&gateway) {
        // What takes its place there says nothing of one row.
        gateway.exec(
            "create table stays (id int4range, valid_at daterange,
                exclude using gist (id with =, valid_at with &&))",
        );
    } else {
        gateway.exec(
            "create table stays (id int4range, valid_at daterange, v int,
                primary key (id, valid_at without overlaps))",
        );
    }
    gateway.exec("insert into stays (id, valid_at) values ('[1,1]', '[2024-01-01,2025-01-01)')");
    let delete = "delete from stays where id = '[1,1]' and valid_at = '[2024-01-01,2025-01-01)'";
    let answer = gateway.client().query(delete).unwrap();
    assert_eq!(tag(&answer), "DELETE 1");
    let told = told(&gateway, "stays");
    match is_18(&gateway) {
        true => assert!(told.iter().all(|said| !said.contains("apart")), "{told:?}"),
        false => assert_eq!(told, [r#"["delete"] apart / not a unique key / -"#]),
    }
}

#[test]
fn writes_of_a_session_that_keeps_its_connection_are_counted_with_what_it_is_kept_for() {
    let gateway = Gateway::start();
    gateway.exec(TABLES);
    let mut client = gateway.client();
    for sql in [
        "insert into audited values (1)",
        "insert into plain values (1)",
        "insert into plain values (2)",
    ] {
        assert_eq!(sqlstate(&client.query(sql).unwrap()), None, "{sql}");
    }
    let console = Address {
        database: "windrow".to_owned(),
        ..gateway.address
    };
    let mut console = Client::connect(&console).unwrap();
    let lines = rows(&console.query("show bypass").unwrap());
    let text = |value: &Option<Vec<u8>>| String::from_utf8(value.clone().unwrap()).unwrap();
    let lines = lines.iter().map(|line| line.iter().map(text).collect());
    let lines: Vec<Vec<String>> = lines.collect();
    let kept = lines
        .iter()
        .find(|line| line[0].starts_with("the session keeps"));
    let kept = kept.unwrap_or_else(|| panic!("{lines:?}"));
    assert_eq!(kept[1], "2");
    assert!(kept[3].contains("trigger audits on"), "{kept:?}");
    assert!(kept[4].contains("trusted_functions"), "{kept:?}");
}
