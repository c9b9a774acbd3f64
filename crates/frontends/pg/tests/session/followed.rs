//! Databases with replicas: what can be joined is joined, whatever happens meanwhile, for replicas
//! follow nothing else.

use std::sync::atomic::Ordering;

use windrow_testkit::pgclient::backend::sqlstate;
use windrow_testkit::pgclient::{Client, Message, frontend};

use crate::support::{Stand, segment};

fn stand(is_followed: bool) -> Stand {
    Stand::with(
        |config| config.databases[0].followed = is_followed,
        64 << 20,
    )
}

fn inserted(client: &mut Client, id: u32, extended: bool) -> Vec<Message> {
    let sql = format!("insert into t values ({id}, 'v')");
    match extended {
        false => client.query(&sql).unwrap(),
        true => segment(client, |out| {
            frontend::parse(out, "", "insert into t values ($1)", &[]);
            frontend::bind(out, ("", ""), &[], &[Some(id.to_string())], &[]);
            frontend::execute(out, "", 0);
        }),
    }
}

#[test]
fn a_write_whose_lane_does_not_answer_is_joined_or_refused() {
    for extended in [false, true] {
        let stand = stand(true);
        let mut client = stand.client();
        // One lost connection is replaced.
        stand.control.lost.store(1, Ordering::SeqCst);
        assert_eq!(sqlstate(&inserted(&mut client, 1, extended)), None);
        assert_eq!(stand.control.units(), [1]);
        assert_eq!(sqlstate(&inserted(&mut client, 2, !extended)), None);
        let stand = self::stand(true);
        let mut client = stand.client();
        stand.control.lost.store(2, Ordering::SeqCst);
        let told = sqlstate(&inserted(&mut client, 1, extended));
        assert_eq!(told.as_deref(), Some("08001"));
        assert_eq!(stand.executes("select count(*) from t"), "0");
        // The same once more.
        assert_eq!(sqlstate(&inserted(&mut client, 1, extended)), None);
        assert_eq!(stand.control.units(), [1]);
        let stand = self::stand(false);
        stand.control.lost.store(2, Ordering::SeqCst);
        assert_eq!(sqlstate(&inserted(&mut stand.client(), 1, extended)), None);
        assert_eq!(stand.control.units(), [0_usize; 0], "nobody follows it");
    }
}

#[test]
fn a_write_behind_what_is_relayed_is_joined() {
    let stand = stand(true);
    let mut client = stand.client();
    let mut out = Vec::new();
    for id in 0..20 {
        frontend::query(&mut out, "select pg_sleep(0.001)");
        frontend::query(&mut out, &format!("insert into t values ({id}, 'simple')"));
        frontend::parse(&mut out, "", "insert into t values ($1)", &[]);
        frontend::bind(
            &mut out,
            ("", ""),
            &[],
            &[Some((id + 100).to_string())],
            &[],
        );
        frontend::execute(&mut out, "", 0);
        frontend::sync(&mut out);
    }
    client.send(&out).unwrap();
    for _ in 0..60 {
        assert_eq!(sqlstate(&client.until_ready().unwrap()), None);
    }
    assert_eq!(stand.control.units().len(), 40);
    // In a transaction nothing is.
    let mut out = Vec::new();
    for sql in [
        "select 1",
        "begin",
        "insert into t values (200, 'x')",
        "commit",
    ] {
        frontend::query(&mut out, sql);
    }
    client.send(&out).unwrap();
    for _ in 0..4 {
        assert_eq!(sqlstate(&client.until_ready().unwrap()), None);
    }
    assert_eq!(stand.control.units().len(), 40);
}

#[test]
fn a_text_and_settings_that_nobody_else_has_are_joined() {
    let stand = stand(true);
    let mut client = stand.client();
    for id in 0..3 {
        let sql = format!("insert into t values ({id}, 'x') returning {id}");
        assert_eq!(sqlstate(&client.query(&sql).unwrap()), None);
    }
    assert_eq!(stand.control.units().len(), 3);
    for n in 0..12 {
        let mut client = stand.client();
        client
            .query(&format!("set statement_timeout = {}", 100_000 + n))
            .unwrap();
        assert_eq!(sqlstate(&inserted(&mut client, 100 + n, false)), None);
    }
    assert_eq!(stand.control.units().len(), 15);
}
