//! What the server says of prepared statements, whatever state the transaction is in: Windrow says
//! the same, in the same order. Each program runs through Windrow and past it.

use windrow_testkit::pgclient::{Client, Message, frontend};

use crate::support::Gateway;
use crate::types::{plain, segment};

/// Runs a program through Windrow and past it.
fn same(gateway: &Gateway, program: impl Fn(&mut Client, &str) -> Vec<Message>) {
    let told = |mut client: Client| {
        gateway.exec("drop table if exists t; create table t (id int primary key, v text)");
        plain(&program(&mut client, "t"))
    };
    let (through, alone) = (told(gateway.client()), told(gateway.direct()));
    assert_eq!(through, alone);
}

const TEXTS: [&str; 5] = [
    "insert into t (id, v) values ($1, $2)",
    "insert into t (id, v) values ($1, $2) returning *",
    "update t set v = $2 where id = $1",
    "select v from t where id = $1 and v = $2",
    "rollback",
];

/// A segment each: Describe of the statement; Bind with so many values, and Execute.
fn used(client: &mut Client, name: &str) -> Vec<Message> {
    let mut all = segment(client, |out| frontend::describe(out, b'S', name));
    for count in [0, 1, 2, 3] {
        let values = vec![Some("1".to_owned()); count];
        all.extend(segment(client, |out| {
            frontend::bind(out, ("", name), &[], &values, &[]);
            frontend::execute(out, "", 0);
        }));
    }
    all
}

#[test]
fn statements_in_a_failed_transaction() {
    let gateway = Gateway::start();
    for sql in TEXTS {
        same(&gateway, |client, _| {
            let mut all = segment(client, |out| {
                frontend::parse(out, "one", sql, &[]);
                frontend::describe(out, b'S', "one");
            });
            for (begin, fails) in [("begin", "select 1 / 0"), ("begin", "selec")] {
                all.extend(client.query(begin).unwrap());
                all.extend(client.query(fails).unwrap());
                all.extend(used(client, "one"));
                all.extend(client.query("rollback").unwrap());
            }
            all.extend(client.query("begin; select 1 / 0").unwrap());
            all.extend(used(client, "one"));
            all.extend(client.query("rollback").unwrap());
            all.extend(used(client, "one"));
            all
        });
    }
}

#[test]
fn texts_under_a_name_that_is_taken() {
    let gateway = Gateway::start();
    for sql in [
        "select nothing",
        "selec",
        "select 1; select 2",
        "insert into t (nothing) values ($1)",
        "insert into nowhere (id) values ($1)",
        "insert into t (id) values ($1)",
        "select $1",
        "select 1",
        "",
    ] {
        same(&gateway, |client, _| {
            let taken = |client: &mut Client| {
                segment(client, |out| {
                    frontend::parse(out, "one", sql, &[]);
                    frontend::describe(out, b'S', "one");
                })
            };
            let mut all = segment(client, |out| {
                frontend::parse(out, "one", TEXTS[0], &[]);
                frontend::describe(out, b'S', "one");
            });
            all.extend(taken(client));
            all.extend(used(client, "one"));
            for query in ["begin", "select 1 / 0", "rollback"] {
                all.extend(client.query(query).unwrap());
                all.extend(taken(client));
            }
            all.extend(used(client, "one"));
            all
        });
    }
}

/// The parameters are described before the server finds that the rows are others by now.
#[test]
fn a_statement_whose_rows_have_changed() {
    let gateway = Gateway::start();
    for sql in [TEXTS[0], TEXTS[1], "select * from t where id = $1"] {
        same(&gateway, |client, table| {
            let mut all = segment(client, |out| {
                frontend::parse(out, "one", sql, &[]);
                frontend::describe(out, b'S', "one");
            });
            gateway.exec(&format!("alter table {table} add w int"));
            for query in ["begin", "select 1"] {
                all.extend(client.query(query).unwrap());
                all.extend(segment(client, |out| frontend::describe(out, b'S', "one")));
            }
            all.extend(client.query("rollback").unwrap());
            all
        });
    }
}

/// Types that a client names for parameters which its text does not have.
#[test]
fn types_of_parameters_that_are_not_there() {
    let gateway = Gateway::start();
    for (sql, types) in [
        ("", &[23][..]),
        ("", &[0]),
        (" -- nothing", &[25, 0]),
        ("deallocate two", &[23]),
        ("select 1", &[23]),
        ("insert into t (id) values ($1)", &[23, 25]),
    ] {
        same(&gateway, |client, _| {
            let mut all = segment(client, |out| frontend::parse(out, "two", "select 1", &[]));
            for name in ["", "one"] {
                all.extend(segment(client, |out| {
                    frontend::parse(out, name, sql, types);
                    frontend::describe(out, b'S', name);
                }));
                all.extend(used(client, name));
            }
            all
        });
    }
}
