use windrow_core::FaultClass;
use windrow_testkit::postgres::Postgres;

use super::support::{ask, connect, parse, run, sync};
use crate::wire::Wire;
use crate::wire::socket::Socket;

#[tokio::test]
async fn a_server_killed_during_an_exchange_breaks_it() {
    let server = Postgres::start().unwrap();
    let mut wire = connect(&server.url()).await.unwrap();
    parse(&mut wire, "", "select pg_sleep(600)");
    run(&mut wire, "", &[]);
    sync(&mut wire);
    let killing = async {
        until_asleep(&server).await;
        server.kill9().unwrap();
    };
    let mut heard = 0;
    let mut on = |_: crate::wire::Answer<'_>| heard += 1;
    let (broken, ()) = tokio::join!(wire.exchange(1, &mut on), killing);
    let broken = broken.unwrap_err();
    assert!(broken.sent > 0, "{broken}");
    assert_eq!(broken.syncs_seen, 0);
    assert_eq!(broken.unknown().class, FaultClass::Unknown);
    assert!(broken.to_string().contains(&server.port().to_string()));
    assert_eq!(heard, 0);

    assert!(!wire.is_usable());
    let again = wire.simple("select 1").await.unwrap_err();
    assert_eq!(again.sent, 0);
}

#[tokio::test]
async fn a_session_that_is_ended_says_why() {
    let server = Postgres::start().unwrap();
    let mut wire = connect(&server.url()).await.unwrap();
    let ending = async {
        until_asleep(&server).await;
        terminate_all(&server);
    };
    let (broken, ()) = tokio::join!(wire.simple("select pg_sleep(600)"), ending);
    let broken = broken.unwrap_err();
    assert_eq!(broken.error.as_ref().unwrap().code, "57P01");
    assert!(broken.to_string().contains("administrator"), "{broken}");
    assert_eq!(broken.unavailable().class, FaultClass::Unavailable);
}

#[tokio::test]
async fn a_connection_lost_while_idle_is_found_before_anything_is_sent() {
    let server = Postgres::start().unwrap();
    for kill in [true, false] {
        let mut wire = connect(&server.url()).await.unwrap();
        assert_eq!(ask(&mut wire, "select 1").await, "1");
        if kill {
            server.kill9().unwrap();
            server.restart().unwrap();
        } else {
            terminate_all(&server);
        }
        noticed(&wire).await;
        let broken = wire.simple("select 1").await.unwrap_err();
        assert_eq!(broken.sent, 0, "{broken}");
        if !kill {
            assert_eq!(broken.error.unwrap().code, "57P01");
        }
    }
}

#[tokio::test]
async fn an_exchange_dropped_half_way_makes_the_connection_unusable() {
    let server = Postgres::start().unwrap();
    let mut wire = connect(&server.url()).await.unwrap();
    {
        let mut sleeping = std::pin::pin!(wire.simple("select pg_sleep(600)"));
        tokio::select! {
            biased;
            _ = &mut sleeping => panic!("it sleeps"),
            () = until_asleep(&server) => {}
        }
    }
    assert!(!wire.is_usable());
    let broken = wire.simple("select 1").await.unwrap_err();
    assert_eq!(broken.sent, 0);
}

/// Waits until the runtime knows that there is something to read.
async fn noticed(wire: &Wire) {
    if let Socket::Tcp(socket) = &wire.socket {
        socket.readable().await.unwrap();
    }
}

async fn until_asleep(server: &Postgres) {
    let asleep = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
    while server.exec(asleep).unwrap().trim() == "0" {
        tokio::task::yield_now().await;
    }
}

fn terminate_all(server: &Postgres) {
    server
        .exec(
            "select pg_terminate_backend(pid) from pg_stat_activity \
             where backend_type = 'client backend' and pid <> pg_backend_pid()",
        )
        .unwrap();
}
