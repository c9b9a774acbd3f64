//! Code that comes to a table while its writes are joined.

use windrow_testkit::pgclient::{Client, backend, frontend};

use crate::support::Gateway;

const STATE: &str = "select pg_catalog.concat_ws(' ', pg_catalog.current_setting('search_path'), \
     current_user, pg_catalog.current_setting('app.tenant', true), \
     (select count(*) from pg_catalog.pg_locks where locktype = 'advisory' and pid = pg_catalog.pg_backend_pid()))";

/// Changes that a trigger makes to the session of its write.
const SETS: [&str; 6] = [
    "set_config('search_path', 'acme', false)",
    "set_config('search_path', 'acme, pg_catalog', false)",
    "set_config('role', 'pg_read_all_data', false)",
    "set_config('app.tenant', 'acme', false)",
    "pg_advisory_lock_shared(1)",
    "set_config('search_path', 'acme', true)",
];

fn state(client: &mut Client) -> Option<String> {
    backend::first_value(&client.query(STATE).unwrap())
}

/// Lets each client insert a row before any of them gets an answer.
fn insert(clients: &mut [Client], table: &str) {
    for client in clients.iter_mut() {
        let mut out = Vec::new();
        let sql = format!("insert into {table} values ($1)");
        frontend::parse(&mut out, "", &sql, &[]);
        frontend::bind(&mut out, ("", ""), &[], &[Some("1")], &[]);
        frontend::execute(&mut out, "", 0);
        frontend::sync(&mut out);
        client.send(&out).unwrap();
    }
}

fn is_inserted(clients: &mut [Client]) {
    for client in clients {
        let answer = client.until_ready().unwrap();
        let command = answer.iter().find_map(|message| message.command());
        assert_eq!(command.as_deref(), Some("INSERT 0 1"), "{answer:?}");
    }
}

#[test]
fn what_a_trigger_sets_stays_with_the_session_that_fired_it() {
    let gateway = Gateway::start();
    gateway.exec(
        "create schema acme; create table acme.orders (note text); create table orders (note text)",
    );
    for sets in SETS {
        gateway.exec(
            "drop table if exists fired; create table fired (id int); truncate orders; \
             grant all on orders, fired to public",
        );
        let mut firing: Vec<_> = (0..4).map(|_| gateway.client()).collect();
        let mut others: Vec<_> = (0..8).map(|_| gateway.client()).collect();
        let before = state(&mut gateway.direct());
        for _ in 0..3 {
            insert(&mut firing, "fired");
            insert(&mut others, "orders");
            is_inserted(&mut firing);
            is_inserted(&mut others);
        }
        gateway.exec(&format!(
            "create or replace function sets() returns trigger language plpgsql as \
             $$ begin perform pg_catalog.{sets}; return new; end $$; \
             create trigger sets before insert on fired for each row execute function sets()"
        ));
        let mut alone = [gateway.direct()];
        insert(&mut alone, "fired");
        is_inserted(&mut alone);
        let expected = state(&mut alone[0]);
        drop(alone);
        insert(&mut others, "orders");
        insert(&mut firing, "fired");
        insert(&mut others, "orders");
        is_inserted(&mut others);
        is_inserted(&mut firing);
        is_inserted(&mut others);
        for client in &mut others {
            assert_eq!(state(client), before, "{sets}");
        }
        // The first write may have met the trigger on its way: that is set back behind it.
        insert(&mut firing, "fired");
        is_inserted(&mut firing);
        for client in &mut firing {
            assert_eq!(state(client), expected, "{sets}");
        }
        drop(firing);
        insert(&mut others, "orders");
        is_inserted(&mut others);
        for client in &mut others {
            assert_eq!(state(client), before, "{sets}");
        }
        let rows = gateway.exec("select count(*) from orders; select count(*) from acme.orders");
        assert_eq!(rows, format!("{}\n0", 8 * 6), "{sets}");
    }
}
