//! The tables.

use windrow_testkit::pgclient::{Address, Client, backend};
use windrow_testkit::postgres::Postgres;

/// Sequences begin far from every other number, so that generated ids are known wherever they
/// stand.
const SCHEMA: &str = "
    create sequence gen_seq start 5000000000;
    create type mood as enum ('sad', 'ok', 'happy');
    create domain small as int check (value < 100);
    create table plain (id bigint primary key, owner int not null, label text, amount numeric(12,2), at timestamptz,
        flag boolean default false);
    create table gen (gid bigint primary key default nextval('gen_seq'), owner int not null, k int not null
        check (k >= 0), label varchar(8), unique (owner, k));
    create table ident (gid bigint generated always as identity (start 5100000000) primary key, owner int not null,
        k int, note text not null default 'none', made timestamptz default date_trunc('millennium', now()));
    create table strict (id int primary key, qty smallint not null constraint few check (qty < 50), tag char(3),
        size small, feeling mood, day date, doc jsonb, raw bytea, list int[]);
    create table child (id bigint primary key, parent bigint references plain (id));
    create table late (id bigint primary key, parent bigint references plain (id) deferrable initially deferred);
    create table noisy (id bigint primary key, label text);
    create function shout() returns trigger language plpgsql as $$ begin
        raise notice 'got %', new.label;
        if new.label = 'drop' then return null; end if;
        new.label = upper(new.label);
        return new;
    end $$;
    create trigger shout before insert or update on noisy for each row execute function shout();
    create table pairs (owner int, k int, n bigint not null default 0, label text, primary key (owner, k));
    create view seen as select id, owner, label from plain where owner >= 0;
    create schema other;
    create table other.plain (id bigint primary key, owner int not null, label varchar(3));
    create function doubled(x int) returns int language sql immutable as 'select x * 2';
    create table counters (name text primary key, n bigint not null default 0);
";

/// Every table, in an order in which generated ids do not matter.
const TABLES: [&str; 9] = [
    "select 'plain', id, owner, label, amount, at, flag from plain order by id",
    "select 'gen', owner, k, label, row_number() over (partition by owner order by gid) from gen order by owner, gid",
    "select 'ident', owner, k, note, made is null, row_number() over (partition by owner order by gid) from ident \
     order by owner, gid",
    "select 'strict', * from strict order by id",
    "select 'child', * from child order by id",
    "select 'late', * from late order by id",
    "select 'noisy', * from noisy order by id",
    "select 'pairs', * from pairs order by owner, k",
    "select 'other', * from other.plain order by id",
];

/// Makes the tables in a database, and a copy of it: object ids are the same in both.
pub fn copies(server: &Postgres, first: &Address) -> Address {
    windrow_testkit::postgres::psql(&first.url(), SCHEMA).unwrap();
    let copy = format!("{}_plain", first.database);
    let sql = format!("create database {copy} template {}", first.database);
    server.exec(&sql).unwrap();
    Address {
        database: copy,
        ..first.clone()
    }
}

/// Empties them.
pub fn reset(judge: &mut Client) {
    let sql = "truncate plain, gen, ident, strict, child, late, noisy, pairs, other.plain restart identity; \
        alter sequence gen_seq restart";
    let answer = judge.query(sql).unwrap();
    assert_eq!(backend::sqlstate(&answer), None, "{answer:?}");
}

/// All rows, one a line.
pub fn contents(judge: &mut Client) -> Vec<String> {
    let answers = TABLES.iter().map(|sql| judge.query(sql).unwrap());
    let rows = answers.flatten().filter(|m| m.tag == b'D');
    rows.map(|row| format!("{row:?}")).collect()
}
