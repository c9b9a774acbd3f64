use postgres_protocol::authentication::sasl::{ChannelBinding as Binding, ScramSha256};
use windrow_core::FaultClass;
use windrow_testkit::postgres::Postgres;

use super::support::{ask, connect};
use crate::scram::{self, Mechanism};
use crate::target::Credential;
use crate::wire::Wire;

fn server() -> Postgres {
    let server = Postgres::builder()
        .hba("host all scram_user 127.0.0.1/32 scram-sha-256")
        .hba("host all md5_user 127.0.0.1/32 md5")
        .hba("host all clear_user 127.0.0.1/32 password")
        .hba("local all clear_user password")
        .hba("host all trust_user 127.0.0.1/32 trust")
        .hba("host all nobody 127.0.0.1/32 reject")
        .start()
        .unwrap();
    server
        .exec(
            "set password_encryption = 'scram-sha-256';
             create role scram_user login password 'pa:ss@wörd';
             create role clear_user login password 'pa:ss@wörd';
             create role trust_user login;
             set password_encryption = 'md5';
             create role md5_user login password 'pa:ss@wörd';",
        )
        .unwrap();
    server
}

fn url(server: &Postgres, user: &str, password: &str) -> String {
    let port = server.port();
    format!("postgres://{user}{password}@127.0.0.1:{port}/postgres")
}

const RIGHT: &str = ":pa%3Ass%40w%C3%B6rd";

#[tokio::test]
async fn every_method_lets_the_right_password_in_and_no_other() {
    let server = server();
    for user in ["scram_user", "md5_user", "clear_user"] {
        let mut wire = connect(&url(&server, user, RIGHT)).await.unwrap();
        assert_eq!(ask(&mut wire, "select current_user").await, user);

        let wrong = connect(&url(&server, user, ":hush")).await.unwrap_err();
        assert_eq!((wrong.class, &*wrong.code), (FaultClass::Denied, "28P01"));
        assert!(wrong.message.contains(user), "{wrong}");
        assert!(wrong.message.contains(&server.port().to_string()));
        assert!(!format!("{wrong:?}").contains("hush"));

        let none = connect(&url(&server, user, "")).await.unwrap_err();
        assert_eq!(none.class, FaultClass::Denied);
        assert!(none.message.contains("PGPASSWORD"), "{none}");
    }
    let mut trusted = connect(&url(&server, "trust_user", "")).await.unwrap();
    assert_eq!(ask(&mut trusted, "select current_user").await, "trust_user");
}

#[tokio::test]
async fn a_user_that_may_not_come_in_is_denied() {
    let server = server();
    let rejected = connect(&url(&server, "nobody", "")).await.unwrap_err();
    assert_eq!(
        (rejected.class, &*rejected.code),
        (FaultClass::Denied, "28000")
    );
    let unknown = connect(&url(&server, "who", "")).await.unwrap_err();
    assert_eq!(
        (unknown.class, &*unknown.code),
        (FaultClass::Denied, "28000")
    );
}

#[tokio::test]
async fn a_clear_password_may_pass_through_a_local_socket() {
    let server = server();
    let folder = server.socket_folder().display();
    let port = server.port();
    let url = format!("postgres://clear_user{RIGHT}@/postgres?host={folder}&port={port}");
    let mut wire = connect(&url).await.unwrap();
    assert_eq!(ask(&mut wire, "select current_user").await, "clear_user");
}

#[tokio::test]
async fn binding_that_is_required_is_not_done_without() {
    let server = server();
    for user in ["scram_user", "md5_user", "clear_user", "trust_user"] {
        let url = url(&server, user, RIGHT) + "?channel_binding=require";
        let fault = connect(&url).await.unwrap_err();
        assert_eq!(fault.class, FaultClass::Denied, "{user}");
        assert!(fault.message.contains("channel_binding"), "{fault}");
    }
}

#[test]
fn a_clear_password_does_not_pass_through_an_open_network() {
    use crate::wire::auth::Auth;
    use crate::wire::endpoint::Endpoint;
    use crate::wire::entrance::Entrance;

    let target = super::support::target("postgres://u:hush@192.0.2.1/d");
    for (address, tls, sent) in [
        ("192.0.2.1:5432", false, false),
        ("192.0.2.1:5432", true, true),
        ("127.0.0.1:5432", false, true),
        ("[::ffff:127.0.0.1]:5432", false, true),
    ] {
        let entrance = Entrance {
            target: &target,
            host: &target.hosts[0],
            endpoint: &Endpoint::Tcp(address.parse().unwrap()),
            settings: &[],
        };
        let reply = Auth::new(&entrance, tls, None).step(&[0, 0, 0, 3]);
        assert_eq!(reply.is_ok(), sent, "{address} {tls}");
        if let Err(fault) = reply {
            assert!(fault.message.contains("clear text"), "{fault}");
        }
    }
}

#[tokio::test]
async fn what_a_proof_gave_away_opens_the_server_that_has_the_verifier() {
    let server = server();
    let verifier = |role: &str| {
        let sql = format!("select rolpassword from pg_authid where rolname = '{role}'");
        server.exec(&sql).unwrap()
    };
    let keys = |verifier: &str| {
        let mut client = ScramSha256::new("pa:ss@wörd".as_bytes(), Binding::unsupported());
        let gate = scram::Server::new(verifier.parse().unwrap(), true, None);
        let (begun, challenge) = gate.begin(Mechanism::Plain, client.message()).unwrap();
        client.update(challenge.as_bytes()).unwrap();
        begun.finish(client.message()).unwrap().1
    };
    let target = super::support::target(&server.url());
    let enter = async |role: &str, keys| {
        let guest = target.for_session(role, &Credential::Scram(keys));
        Wire::connect(&guest, &[], super::support::TIMEOUT).await
    };
    let mut wire = enter("scram_user", keys(&verifier("scram_user")))
        .await
        .unwrap();
    assert_eq!(ask(&mut wire, "select current_user").await, "scram_user");

    // The same password with another salt is another verifier.
    let other = enter("scram_user", keys(&verifier("clear_user"))).await;
    let other = other.unwrap_err();
    assert_eq!(&*other.code, "28P01");
    assert_eq!(
        &*other.message,
        "password authentication failed for user \"scram_user\""
    );

    let clear = enter("clear_user", keys(&verifier("clear_user"))).await;
    assert!(clear.unwrap_err().message.contains("scram-sha-256"));
}

#[tokio::test]
async fn an_idle_connection_that_the_server_ended_is_noticed() {
    let server = server();
    let mut wire = connect(&server.url()).await.unwrap();
    assert!(wire.is_alive());
    ask(&mut wire, "set application_name = 'x'; select 1").await;
    assert!(wire.is_alive() && wire.is_usable());
    server.stop().unwrap();
    // The server's last words are there; the runtime has to look at its sockets once.
    while wire.is_alive() {
        tokio::task::yield_now().await;
    }
    assert!(!wire.is_usable());
}
