//! Many clients, few server connections.

use windrow_testkit::pgclient::{Client, backend, frontend};
use windrow_testkit::postgres::Postgres;

use crate::load::TABLE;
use crate::support::Gateway;

const CLIENTS: u32 = 1_000;

#[test]
fn a_thousand_clients_share_a_few_server_connections() {
    let gateway = Gateway::with(Postgres::builder().set("max_connections", "80"), &[]);
    gateway.exec(TABLE);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| gateway.client()).collect();
    for round in 0..3 {
        for (n, client) in (0..).zip(&mut clients) {
            let id = round * CLIENTS + n;
            let mut out = Vec::new();
            frontend::parse(
                &mut out,
                "",
                "insert into readings (id, note) values ($1, $2)",
                &[],
            );
            let values = [Some(id.to_string()), Some("many".to_owned())];
            frontend::bind(&mut out, ("", ""), &[], &values, &[]);
            frontend::execute(&mut out, "", 0);
            frontend::sync(&mut out);
            client.send(&out).unwrap();
        }
        for client in &mut clients {
            let answer = client.until_ready().unwrap();
            let command = answer.iter().find_map(|m| m.command());
            assert_eq!(command.as_deref(), Some("INSERT 0 1"), "{answer:?}");
        }
    }
    let used = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    let used: u32 = gateway.exec(used).parse().unwrap();
    assert!(used <= 20, "{used} server connections");
    assert_eq!(
        gateway.exec("select count(*) from readings"),
        (3 * CLIENTS).to_string()
    );
    // Reads of all of them go over the few connections that there are, one after the other.
    for client in &mut clients {
        let mut out = Vec::new();
        frontend::query(&mut out, "select count(*) from readings where id = 7");
        client.send(&out).unwrap();
    }
    for client in &mut clients {
        let answer = client.until_ready().unwrap();
        assert_eq!(
            backend::first_value(&answer).as_deref(),
            Some("1"),
            "{answer:?}"
        );
    }
}
