//! Who has sent a notification.

use windrow_testkit::pgclient::Client;
use windrow_testkit::pgclient::backend::sqlstate;

use crate::support::Stand;

/// The process number that a client was told at its start.
fn process_number(client: &Client) -> i32 {
    let key = client.cancel_key().unwrap();
    i32::from_be_bytes(key[..4].try_into().unwrap())
}

/// Receives until a notification comes: its sender, and what it says.
fn notified(client: &mut Client) -> (i32, String) {
    loop {
        let message = client.receive().unwrap().unwrap();
        if message.tag == b'A' {
            let mut texts = message.body[4..].split(|byte| *byte == 0);
            let text = String::from_utf8_lossy(texts.nth(1).unwrap()).into_owned();
            return (
                i32::from_be_bytes(message.body[..4].try_into().unwrap()),
                text,
            );
        }
    }
}

#[test]
fn who_listens_to_nothing_any_more_keeps_no_connection() {
    let stand = Stand::with(|config| config.max_server_connections = 1, 64 << 20);
    let (mut listener, mut other) = (stand.client(), stand.client());
    for (listens, ends) in [
        (&["listen c"][..], &["unlisten *"][..]),
        (&["listen c", "listen d"], &["unlisten c", "unlisten d"]),
        (&["listen c"], &["begin", "unlisten c", "commit"]),
        (&["listen c"], &["discard all"]),
    ] {
        for sql in listens.iter().chain(&["notify c, 'heard'"]) {
            listener.query(sql).unwrap();
        }
        for sql in ends {
            assert_eq!(sqlstate(&listener.query(sql).unwrap()), None, "{sql}");
        }
        // There is one connection for both.
        assert_eq!(sqlstate(&other.query("select 1").unwrap()), None);
    }
    // One channel is left, and what is told there is heard.
    for sql in ["listen c", "listen d", "unlisten c", "select 1"] {
        listener.query(sql).unwrap();
    }
    let mut direct = stand.direct();
    direct.query("notify c, 'no'; notify d, 'yes'").unwrap();
    assert_eq!(notified(&mut listener).1, "yes");
    // Who changes its mind within a transaction still listens.
    for sql in ["begin", "unlisten *", "rollback", "select 1"] {
        listener.query(sql).unwrap();
    }
    direct.query("notify d, 'again'").unwrap();
    assert_eq!(notified(&mut listener).1, "again");
}

#[test]
fn a_notification_names_its_session_as_that_was_told_itself() {
    let stand = Stand::new();
    for sql in [
        "create function tells() returns trigger language plpgsql as \
         $f$ begin perform pg_notify('c', 'by a trigger'); return new; end $f$",
        "create table told (id int)",
        "create trigger tell after insert on told for each row execute function tells()",
    ] {
        stand.executes(sql);
    }
    let (mut listener, mut other) = (stand.client(), stand.client());
    listener.query("listen c").unwrap();
    for (sql, text) in [
        ("notify c, 'plain'", "plain"),
        ("select pg_notify('c', 'called')", "called"),
        ("begin; insert into told select 1; commit", "by a trigger"),
    ] {
        // Its own are told behind the answer, at the latest.
        let answer = listener.query(sql).unwrap();
        assert_eq!(sqlstate(&answer), None, "{sql}");
        let own = answer.iter().find(|message| message.tag == b'A');
        let pid = match own {
            Some(message) => i32::from_be_bytes(message.body[..4].try_into().unwrap()),
            None => notified(&mut listener).0,
        };
        assert_eq!(pid, process_number(&listener), "{sql}");
        other.query(sql).unwrap();
        assert_eq!(
            notified(&mut listener),
            (process_number(&other), text.to_owned()),
            "{sql}"
        );
    }
    // One that comes past the frontend is told as it is.
    let mut direct = stand.direct();
    direct.query("notify c, 'direct'").unwrap();
    assert_eq!(
        notified(&mut listener),
        (process_number(&direct), "direct".to_owned())
    );
}
