//! Scripts of several sessions, step by step: what others change between two writes of a session.
//! Other clients write through the same gateway meanwhile, so that batches hold several writes.

use std::collections::HashMap;
use std::io;

use tokio::sync::watch;
use tokio::task::JoinSet;
use windrow_mysqlwire::Target;
use windrow_mysqlwire::command;

use super::transcript::Transcript;
use super::{PLAIN, Pair};
use crate::raw::{LoginForm, RawClient, execute, query};
use crate::support::{Gateway, create};

/// The session past Windrow.
const PAST: u8 = 9;

/// Clients that write all the time.
const BUSY: usize = 4;

/// Each script begins without tables. A step is a session's number and a text. `prepare TEXT`,
/// `execute VALUES` and `reset` use a prepared statement; `as USER` logs in again.
const SCRIPTS: &[(&str, &[(u8, &str)])] = &[
    (
        "a trigger is created and dropped",
        &[
            (
                1,
                "create table t (id int auto_increment primary key, v varchar(20))",
            ),
            (
                1,
                "create table log (id int auto_increment primary key, v varchar(20))",
            ),
            (0, "insert into t (v) values ('a')"),
            (0, "prepare insert into t (v) values (?)"),
            (0, "execute b"),
            (
                1,
                "create trigger r before insert on t for each row begin set @seen = new.v; \
                    set new.v = upper(new.v); insert into log (v) values (new.v), ('two'); end",
            ),
            (0, "insert into t (v) values ('c')"),
            (0, "select last_insert_id(), row_count()"),
            (0, "execute d"),
            (0, "select last_insert_id(), row_count()"),
            (1, "drop trigger r"),
            (0, "insert into t (v) values ('e')"),
            (0, "execute f"),
            (0, "select last_insert_id(), row_count()"),
            (
                1,
                "create trigger r after update on t for each row set @seen = concat(old.v, new.v)",
            ),
            (0, "update t set v = 'x' where id = 1"),
            (
                1,
                "create trigger q after delete on t for each row signal sqlstate '45000' \
                    set message_text = 'no deletes'",
            ),
            (0, "delete from t where id = 1"),
            (0, "show warnings"),
            (0, "select * from t"),
            (0, "select sql_calc_found_rows * from log limit 1"),
            (0, "select found_rows()"),
        ],
    ),
    (
        "diagnostics are asked for",
        &[
            (PAST, "create table t (id int primary key, v varchar(3))"),
            (0, "insert into t (id, v) values (1, 'a')"),
            (0, "get diagnostics @n = number, @r = row_count"),
            (0, "select @n, @r"),
            (0, "insert into t (id, v) values (1, 'b')"),
            (
                0,
                "get diagnostics condition 1 @e = mysql_errno, @m = message_text, \
                    @s = returned_sqlstate, @c = class_origin, @d = subclass_origin",
            ),
            (0, "select @e, @m, @s, @c, @d"),
            (0, "insert into t (id, v) values (2, 'too long')"),
            (0, "get diagnostics @n = number, @r = row_count"),
            (0, "select @n, @r"),
            (0, "update t set v = 'c' where id = 1"),
            (0, "get diagnostics @n = number, @r = row_count"),
            (0, "select @n, @r"),
        ],
    ),
    (
        "a statement is reset",
        &[
            (PAST, "create table t (id int primary key, v varchar(3))"),
            (0, "prepare insert into t (id, v) values (?, ?)"),
            (0, "execute 1,a"),
            (0, "reset"),
            (0, "select row_count()"),
            (0, "execute 1,a"),
            (0, "reset"),
            (0, "select row_count()"),
            (0, "execute 1,a"),
            (0, "reset"),
            (0, "show warnings"),
            (0, "execute 2,b"),
            (0, "select row_count()"),
            (0, "reset"),
            (0, "select row_count()"),
        ],
    ),
    (
        "columns change",
        &[
            (PAST, "create table t (id int primary key, v int)"),
            (0, "insert into t (id, v) values (1, 1)"),
            (0, "prepare insert into t (id, v) values (?, ?)"),
            (0, "execute 2,2"),
            (PAST, "alter table t modify v varchar(3)"),
            (0, "insert into t (id, v) values (3, 'abc')"),
            (0, "insert into t (id, v) values (4, 'abcd')"),
            (0, "execute 5,xyz"),
            (0, "execute 6,wxyz"),
            (PAST, "alter table t add w int not null"),
            (0, "insert into t (id, v) values (7, 'a')"),
            (0, "execute 8,b"),
            (0, "insert into t values (9, 'a')"),
            (0, "insert into t values (9, 'a', 3)"),
            (PAST, "alter table t drop v"),
            (0, "insert into t (id, v) values (10, 'a')"),
            (0, "execute 11,b"),
            (0, "update t set v = 1 where id = 1"),
            (0, "update t set w = 1 where id = 1"),
            (PAST, "alter table t drop primary key"),
            (0, "insert into t (id, w) values (1, 1)"),
            (0, "update t set w = w + 1 where id = 1"),
            (0, "delete from t where id = 1"),
            (PAST, "drop table t"),
            (0, "insert into t (id, w) values (1, 1)"),
            (0, "execute 1,2"),
            // For a quarter of a second Windrow does not see another engine, unless the table is
            // created through it.
            (1, "create table t (id int, v varchar(20)) engine = myisam"),
            (0, "insert into t (id, v) values (1, 1)"),
            (0, "execute 1,2"),
            (PAST, "create or replace table t (v int, id int)"),
            (0, "insert into t values (1, 2)"),
            (0, "execute 3,4"),
            (0, "select * from t"),
        ],
    ),
    (
        "generated numbers begin, end, and move",
        &[
            (PAST, "create table t (id int primary key, v int)"),
            (0, "insert into t (v) values (1)"),
            (0, "insert into t (id, v) values (1, 1)"),
            (
                PAST,
                "alter table t modify id bigint auto_increment, auto_increment = 5000000000",
            ),
            (0, "insert into t (v) values (2)"),
            (0, "select last_insert_id()"),
            (0, "insert into t (id, v) values (7, 2)"),
            (0, "select last_insert_id()"),
            (0, "insert into t (v) values (3)"),
            (PAST, "alter table t auto_increment = 5000000100"),
            (0, "insert into t (v) values (4)"),
            (0, "insert into t (id, v) values (0, 4)"),
            (0, "insert into t (id, v) values (null, 4)"),
            (0, "insert into t (id, v) values (-5, 4)"),
            (0, "insert into t (id, v) values ('0', 4)"),
            (0, "insert into t (id, v) values (default, 4)"),
            (0, "prepare insert into t (id, v) values (?, ?)"),
            (0, "execute 0,5"),
            (0, "execute 200,5"),
            (0, "select last_insert_id()"),
            (
                PAST,
                "alter table t add u int, drop primary key, add primary key (u, id), add key (id)",
            ),
            (0, "insert into t (u, v) values (1, 6)"),
            (0, "insert into t (v) values (6)"),
            (PAST, "alter table t modify id bigint"),
            (0, "insert into t (u, v, id) values (3, 10, 0)"),
            (0, "insert into t (u, v) values (3, 10)"),
            (0, "select last_insert_id()"),
            (0, "select * from t order by v, id"),
        ],
    ),
    (
        "rights come and go",
        &[
            (PAST, "create table t (id int primary key, v int)"),
            (PAST, "grant select, insert on {db}.t to some@'%'"),
            (0, "as some"),
            (0, "insert into t (id, v) values (1, 1)"),
            (0, "prepare insert into t (id, v) values (?, ?)"),
            (0, "execute 2,1"),
            (0, "update t set v = 2 where id = 1"),
            (PAST, "revoke insert on {db}.t from some@'%'"),
            (0, "insert into t (id, v) values (3, 1)"),
            (0, "execute 4,1"),
            (0, "show warnings"),
            (PAST, "grant insert (id), update (v) on {db}.t to some@'%'"),
            (0, "insert into t (id, v) values (5, 1)"),
            (0, "insert into t (id) values (5)"),
            (0, "execute 6,1"),
            (0, "update t set v = 2 where id = 1"),
            (0, "update t set id = 7 where id = 1"),
            (0, "delete from t where id = 1"),
            (0, "select * from t"),
            (PAST, "revoke all privileges, grant option from some@'%'"),
        ],
    ),
    (
        "a parent and its children",
        &[
            (PAST, "create table p (id int primary key)"),
            (
                PAST,
                "create table c (id int primary key, p int, \
                    constraint of_p foreign key (p) references p (id) on delete cascade on update set null)",
            ),
            (0, "insert into c (id, p) values (1, 1)"),
            (1, "insert into p (id) values (1)"),
            (0, "insert into c (id, p) values (1, 1)"),
            (1, "update p set id = 2 where id = 1"),
            (0, "select * from c"),
            (0, "update c set p = 2 where id = 1"),
            (1, "delete from p where id = 2"),
            (0, "select * from c"),
            (0, "set foreign_key_checks = 0"),
            (0, "insert into c (id, p) values (3, 3)"),
            (1, "insert into c (id, p) values (4, 4)"),
            (0, "set foreign_key_checks = 1"),
            (0, "insert into c (id, p) values (5, 5)"),
            (PAST, "alter table c drop foreign key of_p"),
            (0, "insert into c (id, p) values (6, 6)"),
            (0, "select * from c"),
        ],
    ),
    (
        "values of one session are not another's",
        &[
            (
                PAST,
                "create table t (id int auto_increment primary key, v varchar(20), at timestamp null)",
            ),
            (0, "set time_zone = '+05:00'"),
            (1, "set time_zone = '-05:00'"),
            (0, "insert into t (at) values ('2026-01-01 00:00:00')"),
            (1, "insert into t (at) values ('2026-01-01 00:00:00')"),
            (0, "select at from t"),
            (1, "select at, last_insert_id() from t"),
            (0, "set sql_mode = ''"),
            (
                0,
                "insert into t (v) values ('much too long for this column')",
            ),
            (
                1,
                "insert into t (v) values ('much too long for this column')",
            ),
            (0, "show warnings"),
            (1, "show warnings"),
            (0, "select @@warning_count, @@error_count"),
            (1, "select @@warning_count, @@error_count"),
            (0, "insert into t (v) values ('short')"),
            (0, "show warnings"),
            (0, "insert into t (id, v) values (1, 'again')"),
            (0, "select last_insert_id(), row_count()"),
            (0, "show errors"),
            (
                0,
                "insert ignore into t (id, v) values (1, 'again and much too long')",
            ),
            (0, "show warnings"),
            (0, "select last_insert_id()"),
            (0, "insert into t (v) values ('much too long for this one')"),
            (0, "show warnings"),
            (0, "select row_count()"),
            (0, "select row_count()"),
            (0, "set last_insert_id = 99"),
            (0, "insert into t (id, v) values (50, last_insert_id())"),
            (0, "insert into t (id, v) values (51, 'x')"),
            (0, "select last_insert_id()"),
            (0, "set insert_id = 60"),
            (0, "insert into t (v) values ('sixty')"),
            (0, "insert into t (v) values ('more')"),
            (0, "select last_insert_id()"),
            (0, "set timestamp = 1000000000"),
            (0, "insert into t (id, at) values (70, now())"),
            (0, "set timestamp = default"),
            (0, "select * from t where id > 4"),
        ],
    ),
    (
        "transactions hide what they write",
        &[
            (PAST, "create table t (id int primary key, v int)"),
            (0, "insert into t values (1, 1)"),
            (0, "begin"),
            (0, "insert into t values (2, 1)"),
            (1, "select * from t"),
            (1, "insert into t values (3, 1)"),
            (0, "rollback"),
            (0, "insert into t values (4, 1)"),
            (0, "set autocommit = 0"),
            (0, "insert into t values (5, 1)"),
            (1, "select * from t"),
            (0, "set autocommit = 1"),
            (1, "select * from t"),
            (0, "set transaction read only"),
            (0, "insert into t values (6, 1)"),
            (0, "insert into t values (6, 1)"),
            (0, "begin"),
            (0, "select * from t"),
            (1, "insert into t values (7, 1)"),
            (1, "update t set v = 9 where id = 1"),
            (0, "select * from t"),
            (0, "insert into t values (8, 1)"),
            (0, "commit"),
            (0, "select * from t"),
        ],
    ),
    (
        "a view takes the place of a table, and a temporary table hides it",
        &[
            (PAST, "create table t (id int primary key, v int)"),
            (0, "insert into t (id, v) values (1, 1)"),
            (
                0,
                "create temporary table t (id int primary key, v varchar(9))",
            ),
            (0, "insert into t (id, v) values (1, 'mine')"),
            (1, "insert into t (id, v) values (2, 2)"),
            (0, "update t set v = 'other' where id = 1"),
            (0, "select * from t"),
            (0, "drop temporary table t"),
            (0, "insert into t (id, v) values (3, 3)"),
            (PAST, "rename table t to u"),
            (
                PAST,
                "create view t as select id, v from u where v < 5 with check option",
            ),
            (0, "insert into t (id, v) values (4, 4)"),
            (0, "insert into t (id, v) values (5, 5)"),
            (1, "update t set v = 7 where id = 4"),
            (PAST, "drop view t"),
            (
                PAST,
                "create table t (id int primary key, v int) partition by hash (id) partitions 3",
            ),
            (0, "insert into t (id, v) values (4, 4)"),
            (0, "update t set id = 5 where id = 4"),
            (0, "select * from t"),
            (0, "select * from u"),
            (PAST, "drop table t, u"),
            (0, "insert into t (id, v) values (4, 4)"),
        ],
    ),
];

/// Empties a database, whatever is in it.
async fn empty(database: &Target) -> io::Result<RawClient> {
    let (mut past, _) = RawClient::connect(database, &LoginForm::default()).await?;
    let name = &database.database;
    for text in [
        format!("drop database {name}"),
        format!("create database {name} character set utf8mb4"),
        format!("use {name}"),
        "create table busy (id bigint auto_increment primary key, n int)".to_owned(),
    ] {
        past.ok(&text).await;
    }
    Ok(past)
}

/// Plays a script.
async fn play(target: &Target, past: RawClient, steps: &[(u8, &str)]) -> io::Result<Transcript> {
    let mut transcript = Transcript::default();
    let mut sessions = HashMap::from([(PAST, past)]);
    for (of, text) in steps {
        let text = text.replace("{db}", &target.database);
        if let Some(user) = text.strip_prefix("as ") {
            let user = if user == "some" { "some" } else { "" };
            let form = LoginForm {
                user,
                ..LoginForm::default()
            };
            sessions.insert(*of, RawClient::connect(target, &form).await?.0);
            continue;
        }
        if !sessions.contains_key(of) {
            let (client, _) = RawClient::connect(target, &LoginForm::default()).await?;
            sessions.insert(*of, client);
        }
        let client = sessions.get_mut(of).unwrap();
        let answer = if let Some(text) = text.strip_prefix("prepare ") {
            client.prepare(0, text.as_bytes()).await?
        } else if text == "reset" {
            let id = client.id(0).unwrap();
            let reset = [&[command::STMT_RESET], &id[..]].concat();
            client.ask(&reset).await?
        } else if let Some(values) = text.strip_prefix("execute ") {
            let values: Vec<&str> = values.split(',').collect();
            client.ask(&execute(client.id(0).unwrap(), &values)).await?
        } else {
            client.ask(&query(text.as_bytes())).await?
        };
        transcript.add(format!("{of}: {text}"), answer);
    }
    Ok(transcript)
}

/// Keeps a gateway busy until the end.
async fn busy(target: Target, is_over: watch::Receiver<bool>) -> io::Result<()> {
    let (mut client, _) = RawClient::connect(&target, &LoginForm::default()).await?;
    while !*is_over.borrow() {
        client.put(&query(b"insert into busy (n) values (1)"));
        client.flush().await?;
        client.answer(command::QUERY).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_are_equal() {
    let gateway = Gateway::start();
    let plain = create(&gateway.server, PLAIN);
    gateway.exec("create user some@'%'");
    let pair = Pair {
        server: &gateway.server,
        tried: gateway.through.clone(),
        tried_direct: gateway.direct.clone(),
        plain,
    };
    let mut differences = Vec::new();
    for (name, steps) in SCRIPTS {
        let past = empty(&pair.tried_direct).await.unwrap();
        let (set, is_over) = watch::channel(false);
        let mut others = JoinSet::new();
        for _ in 0..BUSY {
            others.spawn(busy(pair.tried.clone(), is_over.clone()));
        }
        let tried = play(&pair.tried, past, steps).await.unwrap();
        set.send_replace(true);
        for other in others.join_all().await {
            other.unwrap();
        }
        let past = empty(&pair.plain).await.unwrap();
        let plain = play(&pair.plain, past, steps).await.unwrap();
        let difference = tried.difference(&plain);
        differences.extend(difference.map(|difference| format!("{name}: {difference}")));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    gateway.joins();
}
