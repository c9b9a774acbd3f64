//! What the one who applies a spool needs: units of many writes with the position that they move
//! on, and the tables for that.

use windrow_bookkeeping::{REJECTED, dead_letters, prepare};
use windrow_core::{FaultClass, Rung, Write};
use windrow_database::{Driver, Options};
use windrow_mysql::Mysql;
use windrow_testkit::mariadb::{is_mysql, shared};
use windrow_testkit::spooled::{self, Spooled};
use windrow_testkit::{left_out, row};

use crate::support::*;

const TABLES: &str = "create table one (id bigint primary key, a text);
    create table two (id bigint primary key, n bigint not null)";

async fn start() -> (Spooled, Bed) {
    let bed = Bed::new(TABLES).await;
    (Spooled::on(bed.sink.clone()).await, bed)
}

#[tokio::test]
async fn rows_that_are_numbered_together_keep_their_order() {
    let (mut spooled, bed) = start().await;
    if !server(&bed).0 {
        left_out::note("sequences: MySQL has none");
        return;
    }
    bed.sql(
        "create sequence shared; create table odd (n bigint default nextval(shared), at int); \
         create table even (n bigint default nextval(shared), at int)",
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
    let wrong =
        "select count(*) from (select * from odd union all select * from even) t where n <> at";
    assert_eq!(bed.sql(wrong), "0");
}

#[tokio::test]
async fn thousands_of_rows_are_few_statements_whether_they_are_good_or_not() {
    let (mut spooled, _bed) = start().await;
    let unit = spooled.unit(None, 2000, spooled.rows(0..2000));
    let report = spooled.succeed(unit).await;
    assert_eq!(rung(&report, Rung::Fused), 2000);
    assert!(report.tally.round_trips < 50, "{:?}", report.tally);
    let mut rows = spooled.rows(2000..4000);
    rows[1500] = spooled.rows(8..9).remove(0);
    let report = spooled
        .run(spooled.unit(Some(2000), 4000, rows.clone()))
        .await;
    let refused = told(report.verdicts.into_iter().next().unwrap()).unwrap_err();
    assert_eq!(
        (refused.at, refused.fault.class),
        (1502, FaultClass::Unique)
    );
    assert!(report.tally.round_trips < 100, "{:?}", report.tally);
    // Without it, all the others are written.
    rows.remove(1500);
    let unit = spooled.unit(Some(2000), 4000, rows);
    spooled.succeed(unit).await;
    assert_eq!(spooled.count(0..4000).await, 3999);
}

#[tokio::test]
async fn a_row_comes_behind_the_one_that_it_refers_to() {
    let (mut spooled, bed) = start().await;
    bed.sql("create table child (id bigint primary key, one bigint, foreign key (one) references one (id))");
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
    bed.sql("delete from child; delete from one; delete from two");
    let fault = spooled.refused(spooled.unit(Some(1), 2, writes)).await;
    assert_eq!(
        (fault.at, fault.fault.class),
        (3, FaultClass::ForeignKey),
        "{fault:?}"
    );
}

#[tokio::test]
async fn a_table_that_goes_by_two_names_is_written_in_order() {
    let (mut spooled, bed) = start().await;
    let database = bed.sql("select database()");
    let names = ["one".to_owned(), format!("{database}.one")];
    let shapes = names.map(|name| insert(&name, &["id", "a"]).upsert().shape());
    let writes = (0..100_i64).map(|n| {
        let shape = &shapes[usize::from(n % 3 == 0)];
        Write::new(shape.clone(), row![n % 7, format!("{n}")])
    });
    let unit = spooled.unit(None, 100, writes.collect());
    spooled.succeed(unit).await;
    let last = bed.sql("select group_concat(a order by a) from one");
    assert_eq!(last, "93,94,95,96,97,98,99");
}

#[tokio::test]
async fn who_may_not_make_tables_finds_them() {
    let (_spooled, bed) = start().await;
    let database = bed.sql("select database()");
    let clerk = format!("spooler_{}", &database[database.len().saturating_sub(8)..]);
    bed.sql(&format!(
        "create user {clerk}@'127.0.0.1'; grant select, insert, update, delete on {database}.* to {clerk}@'127.0.0.1'"
    ));
    let (scheme, rest) = bed.database.url().split_once("://").unwrap();
    let url = format!("{scheme}://{clerk}@{}", rest.split_once('@').unwrap().1);
    let sink = Driver::open(&Mysql, &url, &Options::default())
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
    bed.sql(&format!("drop user {clerk}@'127.0.0.1'"));
}

#[tokio::test]
async fn a_table_of_an_older_program_is_brought_up_to_date() {
    let mysql = is_mysql(shared().unwrap().url()).unwrap();
    let check = |column: &str| match mysql {
        true => String::new(),
        false => format!("check (json_valid(`{column}`))"),
    };
    let (key, row) = (check("key"), check("row"));
    let bed = Bed::new(&format!(
        "create table {REJECTED} (id bigint unsigned not null auto_increment primary key, \
         moved_at datetime(6) not null default current_timestamp(6), source varchar(255) not null, \
         destination longtext not null, `key` longtext not null {key}, \
         `row` longtext not null {row}, code varchar(16) not null, message longtext not null, \
         `constraint` text null) engine = InnoDB, character set utf8mb4; \
         insert into {REJECTED} (moved_at, source, destination, `key`, `row`, code, message) \
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
}
