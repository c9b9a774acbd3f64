//! What operators are told of tables that are written to by SQL.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value as Json;
use windrow_testkit::pgclient::backend::sqlstate;

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
fn told(gateway: &Gateway, table: &str) -> Vec<String> {
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
