//! What is told in place of the server, or by it about statements that have another name there.

use windrow_testkit::pgclient::backend::{first_value, sqlstate};
use windrow_testkit::pgclient::{Client, Message, frontend};

use crate::support::{Stand, commands, segment, tags};

fn long(out: &mut Vec<u8>, length: usize) {
    frontend::bind(out, ("", ""), &[], &[Some("x".repeat(length))], &[]);
}

#[test]
fn a_value_that_is_too_long_is_refused_and_the_session_goes_on() {
    let stand = Stand::with(|config| config.max_message = 100_000, 64 << 20);
    let too_long = |answer: &[Message]| {
        let error = answer.iter().find(|m| m.tag == b'E').unwrap();
        assert_eq!(error.sqlstate().unwrap(), "54000");
        let text = error.field(b'M').unwrap();
        assert!(
            text.contains("max_message") && text.contains("100000"),
            "{text}"
        );
    };
    for begin in [false, true] {
        let mut client = stand.client();
        if begin {
            client.query("begin").unwrap();
        }
        let answer = segment(&mut client, |out| {
            frontend::parse(out, "", "insert into t (id, v) values (7, $1)", &[]);
            long(out, 1 << 20);
            frontend::execute(out, "", 0);
        });
        too_long(&answer);
        if begin {
            let answer = client.query("select 1").unwrap();
            assert_eq!(sqlstate(&answer).unwrap(), "25P02");
            client.query("rollback").unwrap();
        }
        too_long(
            &client
                .query(&format!("select '{}'", "x".repeat(1 << 20)))
                .unwrap(),
        );
        let answer = client
            .query("insert into t (id) values (1) returning id")
            .unwrap();
        assert_eq!(first_value(&answer).unwrap(), "1");
        client.query("delete from t").unwrap();
    }
    assert_eq!(stand.executes("select count(*) from t"), "0");
}

#[test]
fn execute_finds_what_was_prepared_by_the_protocol() {
    let stand = Stand::new();
    let run = |client: &mut Client| {
        segment(client, |out| {
            frontend::parse(out, "one", "insert into t (id) values ($1)", &[]);
            frontend::parse(out, "Two", "select $1::int + 1", &[]);
        });
        let mut all = Vec::new();
        for sql in [
            "execute one (1)",
            "execute \"Two\"(41)",
            "begin",
            "execute one (2)",
            "commit",
            "execute two (1)",
            "execute one ('x')",
            "deallocate one",
            "execute one (4)",
        ] {
            let answer = client.query(sql).unwrap();
            all.push((sqlstate(&answer), commands(&answer), first_value(&answer)));
        }
        // It is described as what it executes.
        for name in ["", "three"] {
            let answer = segment(client, |out| {
                frontend::parse(out, name, "execute \"Two\"(1)", &[]);
                frontend::describe(out, b'S', name);
                frontend::bind(out, ("", name), &[], &[] as &[Option<&str>], &[]);
                frontend::execute(out, "", 0);
            });
            all.push((Some(tags(&answer)), Vec::new(), first_value(&answer)));
        }
        all
    };
    let through = run(&mut stand.client());
    stand.executes("truncate t");
    let alone = run(&mut stand.direct());
    assert_eq!(through, alone);
    assert_eq!(through[0].1, ["INSERT 0 1"]);
    assert_eq!(through[1].2.as_deref(), Some("42"));
    assert_eq!(through[8].0.as_deref(), Some("26000"));
}

#[test]
fn drivers_recognize_that_a_table_has_changed() {
    let stand = Stand::new();
    let (mut client, mut other) = (stand.client(), stand.client());
    let answers = segment(&mut client, |out| {
        frontend::parse(out, "s", "select * from t", &[]);
        frontend::describe(out, b'S', "s");
    });
    assert_eq!(sqlstate(&answers), None);
    // The connection that knows the statement is somebody else's for now.
    other.query("begin; select 1").unwrap();
    stand.executes("alter table t add x int");
    let answers = segment(&mut client, |out| {
        frontend::bind(out, ("", "s"), &[], &[] as &[Option<&str>], &[]);
        frontend::execute(out, "", 0);
    });
    let error = answers.iter().find(|message| message.tag == b'E').unwrap();
    assert_eq!(error.sqlstate().unwrap(), "0A000");
    assert_eq!(error.field(b'R').unwrap(), "RevalidateCachedQuery");
}
