//! What the one who applies a spool needs: units of many writes with the position that they move
//! on, and the tables for that.

use windrow_bookkeeping::{REJECTED, dead_letters, prepare};
use windrow_core::{FaultClass, Write};
use windrow_database::{Driver, Options};
use windrow_postgres::Postgres;
use windrow_testkit::row;
use windrow_testkit::spooled::{self, Spooled};

use crate::support::*;

const TABLES: &str = "create table one (id bigint primary key, a text);
    create table two (id bigint primary key, n bigint not null)";

async fn start() -> (Spooled, Bed) {
    let bed = Bed::new(TABLES).await;
    (Spooled::on(bed.sink.clone()).await, bed)
}

#[tokio::test]
async fn a_commit_that_fails_names_no_write_and_moves_nothing() {
    let (mut spooled, bed) = start().await;
    bed.sql("create table child (id bigint primary key, one bigint references one deferrable initially deferred)");
    let child = insert("child", &["id", "one"]).shape();
    // Children come before the rows that they refer to.
    let writes = |spooled: &Spooled, last: i64| {
        let mut writes: Vec<Write> = (0..100)
            .map(|id| Write::new(child.clone(), row![id, id * 2]))
            .collect();
        writes.push(Write::new(child.clone(), row![100, last]));
        writes.extend(spooled.rows(0..200));
        writes
    };
    let unit = spooled.unit(None, 1, writes(&spooled, 1));
    let fault = spooled.refused(unit).await;
    assert_eq!(
        (fault.at, fault.fault.class),
        (0, FaultClass::ForeignKey),
        "{fault:?}"
    );
    assert_eq!(spooled.position().await, None);
    assert_eq!(spooled.count(0..200).await, 0);
    let unit = spooled.unit(None, 1, writes(&spooled, 0));
    spooled.succeed(unit).await;
    assert_eq!(spooled.position().await, Some(1));
    assert_eq!(spooled.count(0..200).await, 200);
}

#[tokio::test]
async fn a_row_comes_behind_the_one_that_it_refers_to() {
    let (mut spooled, bed) = start().await;
    bed.sql("create table child (id bigint primary key, one bigint references one)");
    let child = insert("child", &["id", "one"]).shape();
    let mut writes = Vec::new();
    for (write, id) in spooled.rows(0..200).into_iter().zip(0_i64..) {
        writes.push(write);
        writes.push(Write::new(child.clone(), row![id, id / 2 * 2]));
    }
    let unit = spooled.unit(None, 1, writes.clone());
    spooled.succeed(unit).await;
    // A row that refers to a later one is refused, as it would be by itself.
    writes.swap(0, 4);
    bed.sql("truncate one, two, child");
    let fault = spooled.refused(spooled.unit(Some(1), 2, writes)).await;
    assert_eq!(
        (fault.at, fault.fault.class),
        (3, FaultClass::ForeignKey),
        "{fault:?}"
    );
}

#[tokio::test]
async fn rows_that_are_numbered_together_keep_their_order() {
    let (mut spooled, bed) = start().await;
    bed.sql(
        "create sequence shared; create table odd (n bigint default nextval('shared'), at int); \
         create table even (n bigint default nextval('shared'), at int)",
    );
    let (odd, even) = (
        insert("odd", &["at"]).shape(),
        insert("even", &["at"]).shape(),
    );
    let writes = (1_i64..=60).map(|at| {
        let shape = if at % 2 == 1 { &odd } else { &even };
        Write::new(shape.clone(), row![at])
    });
    let unit = spooled.unit(None, 60, writes.collect());
    spooled.succeed(unit).await;
    let wrong = "select count(*) from (table odd union all table even) t where n <> at";
    assert_eq!(bed.sql(wrong), "0");
}

#[tokio::test]
async fn who_may_not_make_tables_finds_them() {
    let (_spooled, bed) = start().await;
    let (_, name) = bed.database.url().rsplit_once('/').unwrap();
    let name = name.split('?').next().unwrap();
    let role = format!("spooler_{name}");
    bed.sql(&format!(
        "revoke create on schema public from public; create role \"{role}\" login; \
             grant select, insert, update, delete on all tables in schema public to \"{role}\""
    ));
    let url = as_role(bed.database.url(), &role);
    let sink = Driver::open(&Postgres, &url, &Options::default())
        .await
        .unwrap();
    let mut spooled = Spooled::on(sink.clone()).await;
    let mut writes = spooled.rows(0..20);
    writes.push(spooled::letter(None, Some(b"entry")).write());
    let unit = spooled.unit(None, 20, writes);
    spooled.succeed(unit).await;
    assert_eq!(spooled.kept(0, 10).await.len(), 1);
    bed.sql("drop table windrow_progress, windrow_rejected");
    let refused = prepare(&*sink.bookkeeping().unwrap()).await.unwrap_err();
    assert_eq!(refused.class, FaultClass::Denied, "{refused}");
    bed.sql(&format!("drop owned by \"{role}\"; drop role \"{role}\""));
}

/// The URL of the same database for another role.
fn as_role(url: &str, role: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (_, host) = rest.split_once('@').unwrap();
    format!("{scheme}://{role}@{host}")
}

#[tokio::test]
async fn a_table_of_an_older_program_is_brought_up_to_date() {
    let bed = Bed::new(&format!(
        "create table {REJECTED} (id bigint generated always as identity primary key, \
         moved_at timestamptz not null default now(), source text not null, destination text not null, key json not null, \
         \"row\" json not null, code text not null, message text not null, \"constraint\" text); \
         insert into {REJECTED} (moved_at, source, destination, key, \"row\", code, message) \
         values ('2020-01-02', 's', 'd', '[1]', '{{}}', '23505', 'm'); {TABLES}"
    ))
    .await;
    // Whoever only reads them finds them too.
    let bookkeeping = bed.sink.bookkeeping().unwrap();
    let kept = dead_letters(&*bookkeeping, 0, 10).await.unwrap();
    assert!(kept[0].rejected_at.starts_with("2020-01-02"), "{kept:?}");
    assert_eq!(
        (&*kept[0].letter.source, &kept[0].letter.entry),
        ("s", &None)
    );
    let mut spooled = Spooled::on(bed.sink.clone()).await;
    let letter = spooled::letter(Some("c"), Some(b"\\x00"));
    let unit = spooled.unit(None, 1, vec![letter.write()]);
    spooled.succeed(unit).await;
    assert_eq!(spooled.kept(1, 10).await[0].letter, letter);
    let old = format!(
        "select count(*) from information_schema.columns where table_name = '{REJECTED}' and column_name = 'moved_at'"
    );
    assert_eq!(bed.sql(&old), "0");
}
