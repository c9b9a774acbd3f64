//! A session's SETs, by how the transaction ends that they stand in.

use windrow_pgwire::Target;
use windrow_testkit::pgclient::backend::first_value;
use windrow_testkit::pgclient::{Client, frontend};
use windrow_testkit::postgres::Postgres;

use crate::support::{Stand, segment};

const SEEN: &str = "select current_setting('app.tenant', true)";

/// Fails at COMMIT.
const LATE: &str = "insert into late select 7";

fn stand(change: impl FnOnce(&mut windrow_pg::PgConfig)) -> Stand {
    let stand = Stand::with(
        |config| {
            config.max_server_connections = 2;
            config.databases[0].followed = true;
            change(config);
        },
        64 << 20,
    );
    stand.executes(
        "create table late (id int references t deferrable initially deferred); \
         create table marks (id int, tenant text default current_setting('app.tenant', true))",
    );
    stand
}

fn seen(client: &mut Client) -> Option<String> {
    first_value(&client.query(SEEN).unwrap())
}

/// Takes the connection of another session in which the setting was made, and holds it.
fn has_the_connection(other: &mut Client) {
    other.query("set app.tenant = 'z'").unwrap();
    other.query("begin").unwrap();
    assert_eq!(seen(other).as_deref(), Some("z"));
}

/// Sends each list of statements: the first as simple queries, or all of it as segments.
fn run(client: &mut Client, way: &[&[&str]]) {
    client.query("set app.tenant = 'a'").unwrap();
    for texts in way {
        match texts {
            [text] => drop(client.query(text).unwrap()),
            texts => drop(segment(client, |out| {
                for text in *texts {
                    frontend::parse(out, "", text, &[]);
                    frontend::bind(out, ("", ""), &[], &[None::<&str>; 0], &[]);
                    frontend::execute(out, "", 0);
                }
            })),
        }
    }
}

const B: &str = "set app.tenant = 'b'";
const C: &str = "set app.tenant = 'c'";

/// Ways to end a transaction, and the tenant after it.
const WAYS: &[(&[&[&str]], &str)] = &[
    (&[&["begin"], &[B], &[LATE], &["commit"]], "a"),
    (
        &[
            &["begin"],
            &["savepoint s"],
            &["rollback to s"],
            &[B],
            &[LATE],
            &["end"],
        ],
        "a",
    ),
    (&[&["begin"], &[B], &["select 1/0"], &["commit"]], "a"),
    (&[&["begin"], &[B], &["commit"]], "b"),
    (&[&["begin"], &[B], &["rollback"]], "a"),
    (
        &[
            &["begin"],
            &[B],
            &["savepoint s"],
            &["select 1/0"],
            &["rollback to s"],
            &["commit"],
        ],
        "b",
    ),
    (
        &[&["begin"], &["rollback and chain"], &[B], &["commit"]],
        "b",
    ),
    (
        &[&["begin"], &[B], &["rollback and chain"], &["commit"]],
        "a",
    ),
    (
        &[
            &["begin"],
            &[B],
            &["commit and chain"],
            &[C],
            &[LATE],
            &["commit"],
        ],
        "b",
    ),
    (&[&["set app.tenant = 'b'; insert into late select 7"]], "a"),
    (&[&["begin", B, LATE, "commit"]], "a"),
    (&[&["begin", B, "commit", "select 1/0"]], "b"),
    (&[&["begin", B, "rollback", "select 1"]], "a"),
    (&[&["begin", B], &["rollback", C]], "c"),
    (&[&["begin", B], &["commit", C, LATE]], "b"),
    (
        &[
            &["begin", B, "savepoint s", "select 1/0"],
            &["rollback to s"],
            &["commit"],
        ],
        "b",
    ),
    (&[&[B, LATE]], "a"),
    (&[&[B, "commit", "select 1/0"]], "b"),
    (
        &[&["begin"], &[B], &["rollback to s; rollback"], &["commit"]],
        "a",
    ),
];

#[test]
fn a_set_is_kept_if_its_transaction_is_committed() {
    let stand = stand(|_| {});
    // From now on the catalog is known.
    stand.client().query(LATE).unwrap();
    for (way, expected) in WAYS {
        let mut alone = stand.direct();
        run(&mut alone, way);
        assert_eq!(seen(&mut alone).as_deref(), Some(*expected), "{way:?}");
        let (mut client, mut other) = (stand.client(), stand.client());
        run(&mut client, way);
        has_the_connection(&mut other);
        assert_eq!(seen(&mut client).as_deref(), Some(*expected), "{way:?}");
        other.query("rollback").unwrap();
        let joined = stand.control.units().len();
        client.query("insert into marks values (1)").unwrap();
        assert_eq!(stand.control.units().len(), joined + 1, "{way:?}");
        let found = stand.executes("delete from marks returning tenant");
        assert!(found.starts_with(expected), "{way:?}: {found}");
    }
}

/// A setting of a module is known to its connection for ever, and empty there.
#[test]
fn a_first_set_that_is_undone_is_met_by_nobody() {
    let stand = stand(|_| {});
    for way in [
        &["begin", B, "rollback"][..],
        &["set app.tenant = 'b'; select 1/0"],
    ] {
        let (mut alone, mut client) = (stand.direct(), stand.client());
        for sql in way {
            alone.query(sql).unwrap();
            client.query(sql).unwrap();
        }
        assert_eq!(seen(&mut stand.client()), None, "{way:?}");
        assert_eq!(seen(&mut client), seen(&mut alone), "{way:?}");
    }
}

#[test]
fn a_set_is_kept_if_its_transaction_is_prepared() {
    let server = Postgres::builder();
    let server = server
        .set("max_prepared_transactions", "2")
        .start()
        .unwrap();
    let url = server.url_for("postgres");
    server
        .exec(
            "create table marks (id int, tenant text default current_setting('app.tenant', true))",
        )
        .unwrap();
    let stand = stand(|config| config.databases[0].target = Target::parse(&url).unwrap());
    for before in [&[][..], &["savepoint a", "rollback to a"]] {
        let (mut client, mut other) = (stand.client(), stand.client());
        client.query("set app.tenant = 'a'").unwrap();
        client.query("begin").unwrap();
        for sql in before {
            client.query(sql).unwrap();
        }
        client.query(B).unwrap();
        client.query("prepare transaction 'g'").unwrap();
        has_the_connection(&mut other);
        assert_eq!(seen(&mut client).as_deref(), Some("b"), "{before:?}");
        other.query("rollback").unwrap();
        let joined = stand.control.units().len();
        client.query("insert into marks values (1)").unwrap();
        assert_eq!(stand.control.units().len(), joined + 1, "{before:?}");
        assert_eq!(
            stand
                .executes("delete from marks returning tenant")
                .lines()
                .next(),
            Some("b")
        );
        client.query("rollback prepared 'g'").unwrap();
    }
}
