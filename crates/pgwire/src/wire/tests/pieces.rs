//! Exchanges whose words are made while they are sent.

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use windrow_testkit::postgres::Postgres;

use super::support::{TIMEOUT, ask, connect, parse, run, short, sync};
use crate::wire::{Answer, Dialogue};

/// COPY in pieces of a hundred rows.
struct Copying {
    pieces: usize,
    said: usize,
    heard: Vec<String>,
    notices: usize,
}

impl Dialogue for Copying {
    fn more(&mut self, out: &mut BytesMut) -> bool {
        assert!(out.is_empty(), "all before it is sent");
        let failed = self.heard.iter().any(|answer| answer == "23505");
        let open = self.pieces > 0 && !failed;
        if open {
            self.pieces -= 1;
            let row = |n| format!("{}\t{}\n", self.pieces * 100 + n, "x".repeat(500));
            let rows: String = (0..100).map(row).collect();
            frontend::CopyData::new(rows.as_bytes()).unwrap().write(out);
        } else {
            frontend::copy_done(out);
            frontend::sync(out);
        }
        self.said += out.len();
        open
    }

    fn receive(&mut self, answer: Answer<'_>) {
        match answer {
            Answer::Notice(_) => self.notices += 1,
            other => self.heard.push(short(&other)),
        }
    }
}

fn copying(pieces: usize) -> Copying {
    Copying {
        pieces,
        said: 0,
        heard: Vec::new(),
        notices: 0,
    }
}

#[tokio::test]
async fn more_is_said_while_answers_come_and_an_error_is_heard_between() {
    let server = Postgres::start().unwrap();
    server
        .exec(
            "create table t (id int primary key, v text);
             create function say() returns trigger language plpgsql as
               $$ begin raise notice '%', repeat('n', 1000); return new; end $$;
             create trigger say before insert on t for each row execute function say()",
        )
        .unwrap();
    let mut wire = connect(&server.url()).await.unwrap();
    // More than both sides' socket buffers hold, in both directions.
    let mut all = copying(300);
    parse(&mut wire, "", "copy t from stdin");
    run(&mut wire, "", &[]);
    tokio::time::timeout(TIMEOUT * 2, wire.converse(1, &mut all))
        .await
        .expect("sending and receiving wait for each other")
        .unwrap();
    let usual = ["ParseComplete", "BindComplete", "CopyIn"];
    assert_eq!(all.heard, [&usual[..], &["COPY 30000", "ready I"]].concat());
    assert_eq!((all.pieces, all.notices), (0, 30_000));
    // Ids that are there: the first row fails.
    let mut again = copying(3_000);
    again.pieces = 300;
    parse(&mut wire, "", "copy t from stdin");
    run(&mut wire, "", &[]);
    wire.converse(1, &mut again).await.unwrap();
    assert_eq!(again.heard, [&usual[..], &["23505", "ready I"]].concat());
    assert!(again.pieces > 0, "what nobody wants is not sent");
    assert_eq!(ask(&mut wire, "select count(*) from t").await, "30000");
}

#[tokio::test]
async fn all_pieces_count_as_sent_where_the_connection_breaks() {
    let server = Postgres::start().unwrap();
    server.exec("create table t (id int, v text)").unwrap();
    let mut wire = connect(&server.url()).await.unwrap();
    parse(&mut wire, "", "copy t from stdin");
    run(&mut wire, "", &[]);
    sync(&mut wire);
    let prelude = wire.out().len();
    // The second Ready never comes.
    server
        .exec(
            "create function bye() returns trigger language plpgsql as
        $$ begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$;
        create trigger bye before insert on t for each statement execute function bye()",
        )
        .unwrap();
    let mut all = copying(3);
    let broken = wire.converse(2, &mut all).await.unwrap_err();
    assert!(broken.error.is_some_and(|error| error.code == "57P01"));
    assert!((prelude..=prelude + all.said).contains(&broken.sent));
    assert!(!wire.is_usable());
    let mut none = copying(1);
    let broken = wire.converse(1, &mut none).await.unwrap_err();
    assert_eq!((broken.sent, none.said), (0, 0));
}
