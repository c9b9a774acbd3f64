//! Roles that a database is asked for.

use windrow_pg::PgConfig;
use windrow_testkit::postgres::Postgres;

use crate::auth::server;
use crate::support::{Stand, config, until};

const QUERY: &str = "SELECT usename, passwd FROM pg_catalog.pg_shadow WHERE usename = $1";

fn asking(server: &Postgres, query: &str) -> PgConfig {
    let mut config = config(&server.url());
    config.roles.auth_query = Some(query.to_owned());
    config
}

const WHO: &str = "select current_user";

#[test]
fn the_database_says_who_there_is() {
    let server = server();
    let stand = Stand::new(asking(&server, QUERY));
    assert_eq!(
        stand
            .psql(&stand.url("one:secret%20one", "app"), WHO)
            .as_deref(),
        Ok("one")
    );
    assert_eq!(
        stand
            .psql(&stand.url("two:secret%20two", "app"), WHO)
            .as_deref(),
        Ok("two")
    );
    for user in ["one:wrong", "nobody:wrong", "o'ne:x"] {
        let error = stand.psql(&stand.url(user, "app"), WHO).unwrap_err();
        assert!(
            error.contains("28P01") || error.contains("password authentication failed"),
            "{error}"
        );
    }
    let error = stand
        .psql(&stand.url("old:secret%20old", "app"), WHO)
        .unwrap_err();
    assert!(error.contains("only SCRAM-SHA-256 is supported"), "{error}");
    // A password that was changed is known at once: the old one is good no more, even for who comes
    // first.
    server
        .exec("set password_encryption = 'scram-sha-256'; alter role one password 'new'")
        .unwrap();
    let old = stand.url("one:secret%20one", "app");
    assert!(stand.psql(&old, WHO).is_err());
    let new = stand.url("one:new", "app");
    assert_eq!(stand.psql(&new, WHO).as_deref(), Ok("one"));
    // Nobody is trusted any more.
    assert!(stand.psql(&stand.url("windrow", "app"), WHO).is_err());
}

#[test]
fn it_is_asked_again_after_its_server_was_away() {
    let server = server();
    let stand = Stand::new(asking(&server, QUERY));
    let one = stand.url("one:secret%20one", "app");
    let two = stand.url("two:secret%20two", "app");
    assert_eq!(stand.psql(&one, WHO).as_deref(), Ok("one"));
    server.stop().unwrap();
    // Who is known may come in; what he asks for fails by itself. Who is not known cannot.
    let error = stand.psql(&two, WHO).unwrap_err();
    assert!(
        error.contains("cannot connect") || error.contains("lost"),
        "{error}"
    );
    server.restart().unwrap();
    until("the role is known again", || {
        stand.psql(&two, WHO).as_deref() == Ok("two")
    });
}

#[test]
fn a_query_that_fails_says_so() {
    let server = server();
    let stand = Stand::new(asking(
        &server,
        "SELECT name, verifier FROM nowhere WHERE name = $1",
    ));
    let error = stand.psql(&stand.url("one:x", "app"), WHO).unwrap_err();
    assert!(
        error.contains("the auth_query failed") && error.contains("nowhere"),
        "{error}"
    );
}
