//! Destinations that do not fit are told of before the first row is moved.

use crate::support::{Db, move_rows};

const PENDING: &str = "create table pending (id int primary key, v varchar(20) not null); insert into pending values (1, 'a'), (2, 'b')";

fn both(from: &Db, to: &Db) {
    from.sql(PENDING);
    let wide = match to {
        Db::Mariadb(_) => {
            "id int primary key, v varchar(20) not null, site int not null, kind enum('x', 'y') not null, n int not null default 7, k int not null auto_increment unique"
        }
        Db::Postgres(_) => {
            "id int primary key, v varchar(20) not null, site int not null, n int not null default 7, k int generated always as identity"
        }
        Db::Sqlite(_) => {
            "id int primary key, v varchar(20) not null, site int not null, n int not null default 7"
        }
    };
    to.sql(&format!("create table wide ({wide})"));
    to.sql("create table narrow (id int primary key)");
    let url = to.url();
    let more: &[&str] = if std::ptr::eq(from, to) {
        &[]
    } else {
        &["--to", &url]
    };
    let dry = [more, &["--dry-run"]].concat();
    let told = move_rows(from, "wide", &dry).ends(1);
    let wide =
        "columns that the source does not have, that may not be NULL and have no default: site;";
    assert!(told.out.contains(wide), "{}", told.out);
    let told = move_rows(from, "wide", more).ends(1);
    assert!(
        told.err.contains(wide) && told.err.lines().count() == 1,
        "{}",
        told.err
    );
    let told = move_rows(from, "narrow", more).ends(1);
    assert!(
        told.err.contains("lacks columns of the source: v"),
        "{}",
        told.err
    );
    let told = move_rows(from, "missing", more).ends(1);
    assert!(
        told.err.contains("there is no table missing") && told.err.contains("--create"),
        "{}",
        told.err
    );
    assert_eq!(from.count("pending"), 2);
    // Where the destination follows from the row, it is the row's own fault.
    to.sql("alter table wide rename to final_a; drop table narrow");
    let told = move_rows(from, "final_{v}", &[more, &["--dry-run"]].concat()).ends(3);
    assert!(
        told.out
            .contains("final_a  (to the dead letters: the table final_a has columns"),
        "{}",
        told.out
    );
    move_rows(from, "final_{v}", more).ends(3);
    let letters = from.sql("select destination, code from windrow_rejected order by id");
    assert_eq!(letters, "final_a|23502\nfinal_b|42P01");
}

#[test]
fn within_mariadb() {
    let db = Db::mariadb();
    both(&db, &db);
}

#[test]
fn within_postgresql() {
    let db = Db::postgres();
    both(&db, &db);
}

#[test]
fn within_a_file() {
    let db = Db::sqlite();
    both(&db, &db);
}

#[test]
fn to_mariadb() {
    both(&Db::sqlite(), &Db::mariadb());
}

#[test]
fn to_postgresql() {
    both(&Db::mariadb(), &Db::postgres());
}

#[test]
fn to_a_file() {
    both(&Db::postgres(), &Db::sqlite());
}

#[test]
fn what_a_trigger_fills_in_is_not_missed() {
    let (file, maria, postgres) = (Db::sqlite(), Db::mariadb(), Db::postgres());
    file.sql(PENDING);
    maria.sql("create table final (id int primary key, v varchar(20), site int not null); create trigger t before insert on final for each row set new.site = 3");
    postgres.sql("create table final (id int primary key, v varchar(20), site int not null);
        create function fill() returns trigger language plpgsql as $$ begin new.site := 3; return new; end $$;
        create trigger t before insert on final for each row execute function fill()");
    move_rows(&file, "final", &["--to", &maria.url(), "--limit", "1"]).ends(0);
    move_rows(&file, "final", &["--to", &postgres.url()]).ends(0);
    assert_eq!(
        (
            maria.sql("select id, site from final"),
            postgres.sql("select id, site from final")
        ),
        ("1|3".into(), "2|3".into())
    );
}
