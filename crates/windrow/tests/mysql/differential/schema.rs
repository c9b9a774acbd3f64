//! The tables. Each client has a set of its own, and all clients have one in common.

use std::io;

use windrow_mysqlwire::Target;
use windrow_testkit::mariadb::{MariaDb, MariaDbBuilder, is_mysql, sql};

use super::transcript::Transcript;
use crate::raw::{LoginForm, RawClient, error};
use crate::support::{create, url};

/// Clients of a program.
pub const CLIENTS: u8 = 8;

/// The user that may do little.
pub const LOW: &str = "low";

/// `{p}` is the prefix of a set. Generated numbers begin far from every other number, so that they
/// are known wherever they stand.
const TABLES: &str = "
create table {p}plain (id int primary key, owner int not null, label varchar(20),
  amount decimal(8,2), at datetime, flag tinyint default 0, key (owner));
create table {p}gen (gid bigint auto_increment primary key, owner int not null, k int not null,
  label varchar(8), unique (owner, k)) auto_increment = 5000000000;
create table {p}auto (gid bigint unsigned not null auto_increment primary key, owner int not null,
  note varchar(10) not null default 'none') auto_increment = 5100000000;
create table {p}strict (id int primary key, owner int not null default 0, qty smallint not null,
  tag char(3) not null, small tinyint unsigned, mood enum('sad', 'ok', 'happy'), kinds set('a', 'b'),
  day date, doc json, raw varbinary(6), approx double, few int check (few < 50), moment timestamp null,
  latin varchar(10) character set latin1);
create table {p}child (id int primary key, parent int, foreign key (parent) references {p}plain (id));
create table {p}dflt (id int primary key, note varchar(10) not null default 'none',
  made datetime not null default current_timestamp, twice int generated always as (id * 2) virtual,
  third int generated always as (id + 3) stored, must varchar(5) not null);
create table {p}log (gid bigint auto_increment primary key, id int) auto_increment = 5200000000;
create table {p}noisy (id int primary key, label varchar(20));
create table {p}pairs (owner int, k int, n bigint not null default 0, label varchar(10),
  primary key (owner, k));
create table {p}isam (id int primary key, label varchar(5)) engine = myisam;
create table {p}keyless (owner int, label varchar(5));
create table {db}2.{p}plain (id int primary key, owner int not null, label varchar(3));
create view {p}seen as select id, owner, label from {p}plain where owner >= 0;
grant insert, update (label), select on {db}.{p}plain to low@'%';
grant insert on {db}.{p}gen to low@'%';
";

/// Statements that the `mariadb` program would cut.
const ROUTINES: [&str; 2] = [
    "create trigger {p}shout before insert on {p}noisy for each row begin \
       insert into {p}log (id) values (new.id); \
       if new.label = 'drop' then signal sqlstate '45000' set message_text = 'dropped'; end if; \
       set new.label = upper(new.label); end",
    "create procedure {p}proc(in n int) begin \
       insert into {p}plain (id, owner, label) values (n, 0, 'proc'); select n; end",
];

/// All rows, in an order in which generated numbers do not matter.
const CONTENTS: [&str; 12] = [
    "select * from {db}2.{p}plain order by id",
    "select * from {p}plain order by id",
    "select if(gid < 5000000000, gid, 0) as gid, owner, k, label from {p}gen order by owner, gid",
    "select if(gid < 5000000000, gid, 0) as gid, owner, note from {p}auto order by owner, gid",
    "select * from {p}strict order by id",
    "select * from {p}child order by id",
    "select id, note, made is null, twice, third, must from {p}dflt order by id",
    "select id from {p}log order by id",
    "select * from {p}noisy order by id",
    "select * from {p}pairs order by owner, k",
    "select * from {p}isam order by id",
    "select * from {p}keyless order by owner, label",
];

const EMPTIED: [&str; 11] = [
    "child", "plain", "gen", "auto", "strict", "dflt", "log", "noisy", "pairs", "isam", "keyless",
];

/// Returns the prefix of a client's own tables; `None` for the tables of all.
pub fn prefix(client: Option<u8>) -> String {
    client.map_or_else(|| "s_".to_owned(), |client| format!("c{client}_"))
}

fn sets() -> impl Iterator<Item = String> {
    (0..CLIENTS).map(Some).chain([None]).map(prefix)
}

/// Prepares a server for the tables: for the connections of many lanes, and without MyISAM on
/// MySQL.
pub fn server() -> MariaDbBuilder {
    MariaDb::builder()
        .set("max-connections", "3000")
        .set("loose-disabled-storage-engines", "MyISAM")
}

/// Makes the tables in a database.
pub async fn lay(server: &MariaDb, database: &Target) {
    let fill = |text: &str, p: &str| text.replace("{p}", p).replace("{db}", &database.database);
    let second = format!("create database {}2", database.database);
    sql(&server.url(), &second).unwrap();
    let mut tables: String = sets().map(|p| fill(TABLES, &p)).collect();
    if is_mysql(&server.url()).unwrap() {
        // MySQL warns of them at some later statement.
        tables = tables.replace("engine = myisam", "");
    }
    sql(&url(database), &tables).unwrap();
    let mut judge = judge(database).await.unwrap();
    for p in sets() {
        for routine in ROUTINES {
            judge.ok(&fill(routine, &p)).await;
        }
    }
    let grant = format!("grant select on {}.* to low@'%'", database.database);
    sql(&server.url(), &grant).unwrap();
}

/// Makes a second database with the same tables.
pub async fn copies(server: &MariaDb, first: &Target, name: &str) -> Target {
    sql(&server.url(), "create user low@'%'").unwrap();
    let second = create(server, name);
    for database in [first, &second] {
        lay(server, database).await;
    }
    second
}

/// Returns a session past Windrow.
pub async fn judge(database: &Target) -> io::Result<RawClient> {
    Ok(RawClient::connect(database, &LoginForm::default()).await?.0)
}

/// Empties tables.
pub async fn reset(judge: &mut RawClient, database: &str, prefixes: &[String]) -> io::Result<()> {
    let mut text = "set foreign_key_checks = 0".to_owned();
    for p in prefixes {
        for table in EMPTIED {
            text.push_str(&format!("; delete from {p}{table}"));
        }
        let second = format!("{database}2.{p}");
        text.push_str(&format!("; delete from {second}plain"));
        text.push_str(&format!("; drop table if exists {p}extra, {second}extra"));
    }
    let answer = judge.query(&text).await?;
    assert_eq!(error(&answer), None);
    Ok(())
}

/// Reads all rows.
pub async fn contents(
    judge: &mut RawClient,
    database: &str,
    prefixes: &[String],
) -> io::Result<Transcript> {
    let mut transcript = Transcript::default();
    for p in prefixes {
        for question in CONTENTS {
            let question = question.replace("{p}", p).replace("{db}", database);
            let answer = judge.query(&question).await?;
            transcript.add(question, answer);
        }
    }
    Ok(transcript)
}
