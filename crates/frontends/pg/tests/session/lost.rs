//! Server connections that are lost.

use tokio::runtime::Runtime;
use windrow_pgwire::Target;
use windrow_testkit::pgclient::{Client, frontend};
use windrow_testkit::proxy::{Direction, Proxy};

use crate::support::Stand;

/// A frontend whose relay reaches the server over a proxy.
fn over_a_proxy() -> (Stand, Proxy, Runtime) {
    let runtime = Runtime::new().unwrap();
    let mut started = None;
    let stand = Stand::at(
        |config, direct| {
            let starting = Proxy::builder(direct.socket.to_string()).start();
            let proxy = runtime.block_on(starting).unwrap();
            let url = direct.at(proxy.address()).url();
            config.databases[0].target = Target::parse(&url).unwrap();
            started = Some(proxy);
        },
        64 << 20,
    );
    (stand, started.unwrap(), runtime)
}

/// A client. Connections that were just cut may still be on their way out.
fn come(stand: &Stand) -> Client {
    let mut tries = (0..1000).map(|_| Client::connect(&stand.address()));
    tries.find_map(Result::ok).unwrap()
}

/// A text that is longer than all that the frontend asks for itself.
fn long(sql: &str) -> String {
    format!("{sql} /* {} */", "x".repeat(100_000))
}

fn queries(texts: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    let query = |sql: &&str| frontend::query(&mut out, &long(sql));
    texts.iter().for_each(query);
    out
}

/// Half a message is no reason to wait for the rest, and no place for an error.
#[test]
fn a_connection_that_breaks_within_an_answer_ends_the_session() {
    let (stand, proxy, _runtime) = over_a_proxy();
    for allowed in (1..110).step_by(3) {
        let mut client = come(&stand);
        while client
            .query("begin")
            .unwrap()
            .last()
            .is_none_or(|last| last.tag != b'Z')
        {
            client = come(&stand);
        }
        proxy.cut_after(Direction::ToClient, allowed);
        client
            .send(&queries(&["select 'some text' from generate_series(1, 3)"]))
            .unwrap();
        let mut told = Vec::new();
        // What broke off is no message.
        while let Ok(Some(message)) = client.receive() {
            told.push(message.tag);
        }
        assert!(!told.contains(&b'Z'), "{allowed} {told:?}");
    }
}
